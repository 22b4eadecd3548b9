"""The end of alarms: the error is back within its bound, or it is the new level."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from streamwatch.core.alerting.incidents import is_back
from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.core.estimators.notifying.model_facts import Level, levels_of
from streamwatch.core.records.events import Alarm
from tests.core.alerting.watched_book import HOUR_MS, NOW_MS, WatchedBook, alarm


@pytest.mark.parametrize(
    ("error", "bound", "outcomes", "over"),
    [
        (0.131, 0.03, 3_000, False),
        (0.130, 0.03, 3_000, True),
        (0.05, 0.03, 3_000, True),
        (0.10, 0.03, 2_999, False),
    ],
    ids=["outside its bound", "within its bound", "better than before", "the level still shows the past"],
)
def test_an_alarm_is_over_when_the_faded_error_is_back_within_its_bound(
    watched: WatchedBook, error: float, bound: float, outcomes: int, *, over: bool
) -> None:
    (firing,) = watched.hears(alarm(before=0.1, outcome=1_000))
    watched.found["m"] = Level(error, bound, 2_000.0, outcomes)
    notifications = watched.reviews(NOW_MS + 60_000)
    assert [(n.kind, n.parts[0].reason, n.incident) for n in notifications] == (
        [("resolved", "back_to_level", firing.incident)] if over else []
    )
    if over:
        assert notifications[0].id != firing.id
        assert notifications[0].ended_at_ms == NOW_MS + 60_000
        assert watched.book.open_incidents() == []


def test_an_alarm_right_after_a_drift_is_not_over_though_the_faded_error_has_hardly_moved(
    watched: WatchedBook,
) -> None:
    """80 outcomes after the error rose from 0.1 to 0.4, the error faded with 0.999 is 0.12 ± 0.03."""
    watched.hears(alarm(outcome=10_080))
    watched.found["m"] = Level(0.123, 0.03, 1_999.0, 10_090)
    assert watched.reviews() == []


def test_a_fall_of_the_error_is_over_when_it_has_risen_back(watched: WatchedBook) -> None:
    (firing,) = watched.hears(alarm(before=0.4, after=0.1))
    assert not is_back(firing.parts[0], Level(0.1, 0.03, 2_000, 9_000))
    assert is_back(firing.parts[0], Level(0.38, 0.03, 2_000, 9_000))


def test_an_alarm_without_a_level_before_it_ends_by_its_time_only(watched: WatchedBook) -> None:
    (firing,) = watched.hears(alarm(before=float("nan")))
    assert not is_back(firing.parts[0], Level(0.0, 1.0, 2_000, 9_000))
    assert not is_back(firing.parts[0], None)


def test_an_error_that_never_comes_back_is_the_new_level_after_a_while(watched: WatchedBook) -> None:
    watched.hears(alarm())
    watched.found["m"] = Level(0.4, 0.03, 2_000, 90_000)
    assert watched.reviews(NOW_MS + 24 * HOUR_MS - 1) == []
    assert not watched.book.due(NOW_MS + 24 * HOUR_MS - 1, behind=False)
    assert watched.book.due(NOW_MS + 24 * HOUR_MS, behind=False), "though nothing is read any more"
    watched.hears(alarm("n"), now_ms=NOW_MS + 24 * HOUR_MS - 1)
    (notification,) = watched.reviews(NOW_MS + 24 * HOUR_MS)
    assert (notification.kind, notification.parts[0].reason, notification.series) == (
        "resolved",
        "accepted_as_new_level",
        "m",
    )


def test_a_new_alarm_of_an_open_one_gives_it_more_time(watched: WatchedBook) -> None:
    watched.hears(alarm())
    watched.hears(alarm(ordinal=2), now_ms=NOW_MS + 20 * HOUR_MS)
    assert watched.reviews(NOW_MS + 25 * HOUR_MS) == []
    assert len(watched.reviews(NOW_MS + 44 * HOUR_MS)) == 1


def test_levels_are_asked_for_once_for_all_open_models(watched: WatchedBook) -> None:
    watched.reviews()
    assert watched.asked == [], "nothing is open"
    watched.hears(alarm("b"), alarm("a"), alarm("a", "adwin"))
    watched.reviews()
    assert watched.asked == [["a", "b"]]


def test_levels_follow_from_totals_and_leave_out_models_without_outcomes() -> None:
    n = np.array([2_000.0, 0.0])
    zeros = np.zeros((2, 2))
    totals = Totals(n, np.array([1_500.0, 0.0]), n, n, n, zeros, zeros, zeros)
    levels = levels_of(["a", "b"], totals, np.array([9_000, 0]), np.array([900, 0]), 0.05)
    assert list(levels) == ["a"]
    assert levels["a"].error == pytest.approx(0.25)
    assert levels["a"].bound == pytest.approx(np.sqrt(np.log(2 / 0.05) / 4_000))
    assert (levels["a"].n_eff, levels["a"].outcomes) == (2_000.0, 9_000)


LUCKY_LOW = 0.06
"""Mean that a detector splits off before the drift, of a model that errs with 0.1 on average."""


def drift(outcome: int, errors: int | None, **more: float) -> Alarm:
    return msgspec.structs.replace(alarm(outcome=outcome, before=LUCKY_LOW, **more), errors=errors)  # type: ignore[arg-type]


def test_a_recovered_model_resolves_by_its_mean_between_drifts_not_by_a_lucky_low(
    watched: WatchedBook,
) -> None:
    (firing,) = watched.hears(drift(5_000, 500))
    assert firing.parts[0].before == 0.1
    watched.found["m"] = Level(0.1, 0.03, 2_000, 9_000, 1_700)
    (over,) = watched.reviews()
    assert over.parts[0].reason == "back_to_level"


def test_the_mean_begins_where_the_drift_before_ended_also_after_a_restart(watched: WatchedBook) -> None:
    watched.hears(drift(5_000, 500))
    watched.found["m"] = Level(0.1, 0.03, 2_000, 9_000, 1_700)
    watched.reviews()
    state = watched.book.state()
    watched.__post_init__()
    watched.book.restore(state)
    later_ms = NOW_MS + HOUR_MS
    (again,) = watched.hears(drift(19_000, 1_700 + 2_000, event_ms=later_ms), now_ms=later_ms)
    assert again.parts[0].before == 0.2
    (joined,) = watched.hears(
        msgspec.structs.replace(drift(19_100, 3_800, event_ms=later_ms), detector="adwin"), now_ms=later_ms
    )
    assert joined.parts[1].before == 0.2, "one drift has one level before it"


@pytest.mark.parametrize(
    ("outcome", "errors"), [(999, 99), (5_000, None)], ids=["too few outcomes", "errors are not counted"]
)
def test_otherwise_the_detector_gives_the_level_before(
    watched: WatchedBook, outcome: int, errors: int | None
) -> None:
    (firing,) = watched.hears(drift(outcome, errors))
    assert firing.parts[0].before == LUCKY_LOW


def test_a_retired_model_of_the_same_name_has_no_earlier_drift(watched: WatchedBook) -> None:
    watched.hears(drift(5_000, 500))
    watched.found["m"] = Level(0.1, 0.03, 2_000, 9_000, 1_700)
    watched.reviews()
    watched.book.retire("m", NOW_MS)
    (firing,) = watched.hears(drift(4_000, 1_200, event_ms=NOW_MS + HOUR_MS))
    assert firing.parts[0].before == 0.3
