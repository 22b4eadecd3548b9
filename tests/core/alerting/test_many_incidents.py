"""What an alarm and a commit cost does not grow with the number of incidents that are open."""

from __future__ import annotations

from tests.core.alerting.watched_book import NOW_MS, WatchedBook, alarm
from tests.interpreter_calls import calls_of


def book_of(incidents: int) -> WatchedBook:
    """A book with an open alarm in each of so many models."""
    watched = WatchedBook()
    for number in range(incidents):
        watched.hears(alarm(f"model-{number}"))
    return watched


def alarms_cost(incidents: int) -> int:
    watched = book_of(incidents)
    found = [alarm("new", detector) for detector in ("page_hinkley", "adwin", "ddm")]
    calls = calls_of(lambda: watched.hears(*found))
    assert [part.alarm.detector for part in watched.book.open_incidents()[-1].parts] == [
        each.detector for each in found
    ]
    return calls


def due_costs(incidents: int) -> int:
    watched = book_of(incidents)
    watched.book.due(NOW_MS, behind=False)
    return calls_of(lambda: watched.book.due(NOW_MS, behind=False))


def retiring_costs(incidents: int) -> int:
    watched = book_of(incidents)
    return calls_of(lambda: watched.book.retire("model-3", NOW_MS))


def listing_costs(incidents: int) -> int:
    watched = book_of(incidents)
    assert len(watched.book.open_incidents()) == incidents
    watched.hears(alarm("model-3", "adwin"))
    calls = calls_of(watched.book.open_incidents)
    changed = [each for each in watched.book.open_incidents() if len(each.parts) == 2]
    assert [each.model for each in changed] == ["model-3"]
    return calls


def test_listing_open_incidents_asks_only_those_that_have_changed() -> None:
    assert listing_costs(1_000) == listing_costs(10)


def test_alarms_of_a_model_take_no_longer_beside_other_incidents() -> None:
    assert alarms_cost(1_000) == alarms_cost(10)


def test_asking_whether_something_is_due_takes_no_longer_with_more_incidents() -> None:
    assert due_costs(1_000) == due_costs(10)


def test_a_model_retires_in_no_more_time_beside_other_incidents() -> None:
    assert retiring_costs(1_000) == retiring_costs(10)
