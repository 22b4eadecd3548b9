"""Alarms of a rise are unconfirmed until cohorts of predictions have shown whether predictions err more."""

from __future__ import annotations

import msgspec
import pytest

from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.records.events import Confirmation
from tests.core.alerting.watched_book import HOUR_MS, NOW_MS, WatchedBook, alarm

ERRS_MORE = Confirmation(is_confirmed=True, since_ms=NOW_MS - HOUR_MS, before=0.1, after=0.35)
ERRS_AS_BEFORE = Confirmation(is_confirmed=False, since_ms=NOW_MS - HOUR_MS, before=0.1, after=0.11)


@pytest.fixture
def late() -> WatchedBook:
    """A book on a model whose cohorts are judged after three days."""
    return WatchedBook(ages={"m": 72 * HOUR_MS})


def test_an_alarm_begins_unconfirmed_and_is_updated_once_when_predictions_err_more(late: WatchedBook) -> None:
    (firing,) = late.hears(alarm(before=0.1, after=0.4))
    assert firing.kind == "firing"
    assert firing.parts[0].is_unconfirmed
    assert firing.parts[0].expected_ms == NOW_MS + 72 * HOUR_MS
    assert late.counted("alarms_unconfirmed") == {("m",): 1.0}
    assert late.reviews() == []
    late.confirmations["m"] = ERRS_MORE
    (updated,) = late.reviews()
    assert (updated.kind, updated.incident, updated.news) == ("updated", firing.incident, ("page_hinkley",))
    assert updated.parts[0].confirmation == ERRS_MORE
    assert not updated.parts[0].is_unconfirmed
    assert late.reviews() == []
    assert late.counted("alarms_unconfirmed") == {("m",): 0.0}
    assert late.counted("alarms_contradicted_total") == {(): 0.0}


def test_it_is_resolved_as_a_change_of_labels_when_they_do_not(late: WatchedBook) -> None:
    (firing,) = late.hears(alarm(before=0.1, after=0.4))
    late.confirmations["m"] = ERRS_AS_BEFORE
    (resolved,) = late.reviews()
    assert (resolved.kind, resolved.incident) == ("resolved", firing.incident)
    assert resolved.parts[0].reason == "labels_changed"
    assert late.counted("alarms_contradicted_total") == {(): 1.0}
    assert late.book.open_incidents() == []


@pytest.mark.parametrize("stated_later_ms", [0, -240 * HOUR_MS, 240 * HOUR_MS])
def test_what_is_asked_is_the_clock_of_the_alarm_and_the_rise_from_the_level_before_it(
    late: WatchedBook, stated_later_ms: int
) -> None:
    first = alarm(before=0.1, after=0.4, event_ms=NOW_MS + stated_later_ms)
    (firing,) = late.hears(msgspec.structs.replace(first, resolved_ms=NOW_MS))
    assert firing.parts[0].expected_ms == NOW_MS + 72 * HOUR_MS
    late.hears(alarm(before=0.1, after=0.5, ordinal=2, outcome=1_500, event_ms=NOW_MS + HOUR_MS))
    late.reviews()
    ((model, at_ms, rise),) = late.rises
    assert (model, at_ms) == ("m", NOW_MS)
    assert rise == pytest.approx(0.4), "by its newest alarm"


def test_alarms_of_a_fall_and_those_in_the_order_of_predictions_are_not_in_question(
    late: WatchedBook,
) -> None:
    by_prediction = msgspec.structs.replace(alarm(detector="page_hinkley_by_prediction"), predicted_ms=NOW_MS)
    for each in (alarm(detector="adwin", before=0.4, after=0.1), by_prediction):
        (notification,) = late.hears(each)
        assert not notification.parts[-1].is_unconfirmed
    assert late.reviews() == []
    assert late.rises == []


def test_alarms_of_models_whose_labels_come_at_once_are_not_in_question() -> None:
    watched = WatchedBook()
    (firing,) = watched.hears(alarm(before=0.1, after=0.4))
    assert not firing.parts[0].is_unconfirmed
    watched.confirmations["m"] = ERRS_AS_BEFORE
    assert watched.reviews() == []


def test_an_unconfirmed_alarm_ends_when_the_error_is_back(late: WatchedBook) -> None:
    late.hears(alarm(before=0.1, after=0.4, outcome=1_000))
    late.found["m"] = Level(0.1, 0.03, 2_000.0, 4_000)
    (resolved,) = late.reviews()
    assert resolved.parts[0].reason == "back_to_level"


def test_a_restart_knows_what_is_in_question_and_what_was_contradicted(late: WatchedBook) -> None:
    late.hears(alarm(model="n", before=0.1, after=0.4))
    late.ages["n"] = HOUR_MS
    late.hears(alarm(model="m", before=0.1, after=0.4))
    late.confirmations["m"] = ERRS_AS_BEFORE
    late.reviews()
    late.hears(alarm(model="m", ordinal=2, before=0.1, after=0.4, event_ms=NOW_MS + HOUR_MS))
    again = WatchedBook(ages=late.ages, confirmations={"m": ERRS_MORE})
    again.book.restore(late.book.state())
    assert again.book.state() == late.book.state()
    assert again.counted("alarms_contradicted_total") == {(): 1.0}
    (updated,) = again.reviews()
    assert updated.model == "m"
    assert updated.parts[0].confirmation == ERRS_MORE


def test_it_is_no_new_level_before_it_could_be_confirmed(late: WatchedBook) -> None:
    day = 24 * HOUR_MS
    late.hears(alarm(before=0.1, after=0.4))
    assert late.reviews(NOW_MS + 3 * day) == []
    assert not late.book.due(NOW_MS + 3 * day, behind=False)
    late.confirmations["m"] = ERRS_MORE
    (updated,) = late.reviews(NOW_MS + 3 * day)
    assert updated.kind == "updated"
    assert late.reviews(NOW_MS + 4 * day - 1) == []
    (resolved,) = late.reviews(NOW_MS + 4 * day)
    assert resolved.parts[0].reason == "accepted_as_new_level"


def test_one_that_cohorts_never_decide_is_the_new_level_a_day_after_they_could(late: WatchedBook) -> None:
    late.hears(alarm(before=0.1, after=0.4))
    assert late.reviews(NOW_MS + 96 * HOUR_MS - 1) == []
    assert late.book.due(NOW_MS + 96 * HOUR_MS, behind=False)
    (resolved,) = late.reviews(NOW_MS + 96 * HOUR_MS)
    assert resolved.parts[0].reason == "accepted_as_new_level"
