"""Verdicts as alarms: announced while a model is worse, and ended by nothing but a verdict."""

from __future__ import annotations

import msgspec
import pytest

from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.records.events import Alarm, Judgement
from tests.core.alerting.watched_book import HOUR_MS, NOW_MS, RULE, SPEC, WatchedBook, alarm


def judged(verdict: int, ordinal: int = 1, since: int = 900, model: str = "m") -> Alarm:
    judgement = Judgement("persistent", verdict, since, NOW_MS - 9_000)  # type: ignore[arg-type]
    made = alarm(model, "verdict", ordinal, before=0.0, after=float(verdict))
    return msgspec.structs.replace(made, judgement=judgement)


def test_a_model_that_becomes_worse_is_announced_until_it_is_so_no_longer(watched: WatchedBook) -> None:
    (fires,) = watched.hears(judged(-1))
    assert (fires.kind, fires.started_at_ms) == ("firing", NOW_MS - 9_000)
    (ends,) = watched.hears(judged(1, ordinal=2, since=4_000))
    (part,) = ends.parts
    assert (ends.kind, part.reason, ends.incident) == ("resolved", "verdict_changed", fires.incident)
    assert part.alarm == judged(1, ordinal=2, since=4_000)
    assert watched.book.open_incidents() == []


@pytest.mark.parametrize("verdict", [0, 1])
def test_a_verdict_that_is_not_worse_announces_nothing(watched: WatchedBook, verdict: int) -> None:
    assert watched.hears(judged(verdict)) == []
    assert sum(watched.counted("alarms_suppressed_total").values()) == 0


def test_neither_time_nor_the_level_of_the_error_ends_a_verdict(watched: WatchedBook) -> None:
    watched.found["m"] = Level(0.0, 0.5, 10.0, 100_000)
    watched.hears(judged(-1))
    late = NOW_MS + 10 * SPEC.resolve_timeout_ms
    assert watched.reviews(late) == []
    assert not watched.book.due(late, behind=False)
    (ends,) = watched.book.retire("m", late)
    assert ends.parts[0].reason == "model_retired"


def test_a_verdict_survives_a_restart(watched: WatchedBook) -> None:
    (fires,) = watched.hears(judged(-1))
    again = WatchedBook()
    again.book.restore(watched.book.state())
    assert again.book.open_incidents() == [fires]
    (ends,) = again.hears(judged(0, ordinal=2))
    assert ends.incident == fires.incident


def test_a_verdict_on_a_model_that_accuracy_misjudges_is_information_unless_a_severity_was_chosen():
    def judged(model: str) -> Alarm:
        made = alarm(model, "verdict", before=0.0, after=-1.0)
        return msgspec.structs.replace(made, judgement=Judgement("persistent", -1, 900, NOW_MS))

    chosen = AlarmRule(model="chosen", severity="critical", severity_given=True)
    watched = WatchedBook(AlarmsSpec(rules=(chosen,), otherwise=RULE), misled={"fraud", "chosen"})
    heard = watched.hears(judged("fraud"), judged("chosen"), judged("plain"))
    severities = {n.model: n.severity for n in heard}
    assert severities == {"fraud": "info", "chosen": "critical", "plain": "warning"}
    assert {n.model for n in heard if n.parts[0].accuracy_misleads} == {"fraud", "chosen"}
    (drift,) = watched.hears(alarm("fraud", "adwin", outcome=9_000))
    assert drift.severity == "warning", "a change of its error is one whatever the classes are"


def by_cohorts(
    verdict: int, status: str, ordinal: int, before: int = 0, opponent: str = "majority", outcome: int = 1_000
) -> Alarm:
    judgement = Judgement(opponent, verdict, 900, NOW_MS - 9_000, False, "cohorts", status)  # type: ignore[arg-type]
    made = alarm("m", "verdict", ordinal, outcome, before=float(before), after=float(verdict))
    return msgspec.structs.replace(made, judgement=judgement)


EARLY = by_cohorts(-1, "early", 1)


def test_an_early_verdict_that_is_confirmed_updates_its_notification_and_does_not_begin_another(
    watched: WatchedBook,
) -> None:
    (fires,) = watched.hears(EARLY)
    confirmed = by_cohorts(-1, "confirmed", 2, before=-1, outcome=1_200)
    (updates,) = watched.hears(confirmed)
    assert (fires.kind, updates.kind) == ("firing", "updated")
    assert updates.incident == fires.incident
    assert updates.started_at_ms == fires.started_at_ms
    (part,) = updates.parts
    assert (part.alarm, part.alarms, part.is_open) == (confirmed, 1, True)
    assert sum(watched.counted("alarms_suppressed_total").values()) == 0


def test_an_early_verdict_that_is_retracted_is_resolved_as_such(watched: WatchedBook) -> None:
    (fires,) = watched.hears(EARLY)
    (ends,) = watched.hears(by_cohorts(0, "retracted", 2, before=-1))
    assert (ends.kind, ends.parts[0].reason, ends.incident) == ("resolved", "retracted", fires.incident)


@pytest.mark.parametrize("status", ["early", "confirmed"])
def test_a_better_verdict_resolves_it_as_a_change_whatever_its_status(
    watched: WatchedBook, status: str
) -> None:
    watched.hears(EARLY)
    (ends,) = watched.hears(by_cohorts(1, status, 2, before=-1))
    assert ends.parts[0].reason == "verdict_changed"


def test_a_verdict_in_the_order_of_labels_that_cohorts_share_goes_on_as_one(watched: WatchedBook) -> None:
    (fires,) = watched.hears(judged(-1))
    (updates,) = watched.hears(by_cohorts(-1, "early", 2, before=-1))
    assert (updates.kind, updates.incident) == ("updated", fires.incident)


def test_a_claim_and_its_confirmation_in_one_batch_are_one_notification(watched: WatchedBook) -> None:
    confirmed = by_cohorts(-1, "confirmed", 2, before=-1)
    (fires,) = watched.hears(EARLY, confirmed)
    assert (fires.kind, fires.parts[0].alarm) == ("firing", confirmed)


def test_a_confirmation_of_what_nobody_was_notified_of_begins_an_alarm(watched: WatchedBook) -> None:
    assert watched.hears(by_cohorts(-1, "early", 1, outcome=RULE.min_outcomes - 1)) == []
    (fires,) = watched.hears(by_cohorts(-1, "confirmed", 2, before=-1))
    assert fires.kind == "firing"


TOO_SOON = by_cohorts(-1, "early", 1, outcome=RULE.min_outcomes - 1)


def _has(watched: WatchedBook, outcomes: int) -> None:
    watched.found["m"] = Level(0.4, 0.01, 900.0, outcomes, 0)


def test_a_verdict_that_holds_is_announced_once_the_model_has_the_least_number_of_outcomes(
    watched: WatchedBook,
) -> None:
    watched.judged["m"] = -1
    _has(watched, RULE.min_outcomes - 1)
    assert watched.hears(TOO_SOON) == watched.reviews() == []
    again = WatchedBook(found=watched.found, judged=watched.judged)
    again.book.restore(watched.book.state())
    _has(again, RULE.min_outcomes)
    assert again.reviews(behind=True) == []
    (fires,) = again.reviews()
    assert (fires.kind, fires.parts[0].alarm) == ("firing", TOO_SOON)
    assert again.reviews() == []
    (ends,) = again.hears(by_cohorts(0, "retracted", 2, before=-1))
    assert (ends.kind, ends.incident) == ("resolved", fires.incident)


def test_a_verdict_that_no_longer_holds_by_then_is_not_announced(watched: WatchedBook) -> None:
    watched.judged["m"] = -1
    watched.hears(TOO_SOON)
    watched.hears(by_cohorts(0, "retracted", 2, before=-1))
    _has(watched, RULE.min_outcomes)
    assert watched.reviews() == []


def test_a_verdict_that_settings_have_changed_by_then_is_not_announced(watched: WatchedBook) -> None:
    watched.hears(TOO_SOON)
    watched.judged["m"] = 0
    _has(watched, RULE.min_outcomes)
    assert watched.reviews() == []
    watched.judged["m"] = -1
    assert watched.reviews() == []


def test_a_verdict_on_a_model_that_has_retired_is_not_announced(watched: WatchedBook) -> None:
    watched.hears(TOO_SOON)
    watched.book.retire("m", NOW_MS)
    watched.judged["m"] = -1
    _has(watched, RULE.min_outcomes)
    assert watched.reviews() == []


def test_notifications_of_a_claim_have_the_same_ids_when_notified_again_after_a_restart(
    watched: WatchedBook,
) -> None:
    alarms = (EARLY, by_cohorts(-1, "confirmed", 2, before=-1), by_cohorts(0, "", 3, before=-1))
    whole = [notification for each in alarms for notification in watched.hears(each)]
    again = WatchedBook()
    resumed = []
    for each in alarms:
        resumed += again.hears(each)
        state = again.book.state()
        again = WatchedBook()
        again.book.restore(state)
    assert resumed == whole
    assert len({notification.id for notification in whole}) == 3


def test_a_verdict_that_the_headline_gives_no_longer_ends_although_no_change_was_notified(
    watched: WatchedBook,
) -> None:
    watched.hears(EARLY)
    assert watched.reviews() == []
    watched.judged["m"] = -1
    assert watched.reviews() == []
    watched.judged["m"] = 0
    (ends,) = watched.reviews()
    assert (ends.kind, ends.parts[0].reason) == ("resolved", "verdict_changed")


def test_a_verdict_that_alternates_is_not_notified_of_confirmations(watched: WatchedBook) -> None:
    sides = ((-1, 0), (1, -1), (-1, 1))
    for ordinal, (side, before) in enumerate(sides, 1):
        at_ms = NOW_MS + ordinal * HOUR_MS
        change = msgspec.structs.replace(by_cohorts(side, "early", ordinal, before=before), event_ms=at_ms)
        watched.hears(change, now_ms=at_ms)
    (opened,) = watched.book.open_incidents()
    assert opened.parts[0].alternation is not None
    confirmed = by_cohorts(-1, "confirmed", 4, before=-1)
    assert watched.hears(confirmed) == []
    (opened,) = watched.book.open_incidents()
    assert opened.parts[0].alarm == confirmed
    assert opened.parts[0].alternation is not None
    assert opened.parts[0].alternation.changes == 3


DAY_MS = 86_400_000
RETRAINING = AlarmsSpec(otherwise=RULE, retraining_after_ms=DAY_MS)


def test_retraining_is_announced_once_when_a_model_has_been_worse_for_long() -> None:
    watched = WatchedBook(RETRAINING)
    (fires,) = watched.hears(judged(-1))
    since_ms = fires.started_at_ms
    assert watched.reviews(since_ms + DAY_MS - 1) == []
    assert watched.book.due(since_ms + DAY_MS, behind=False)
    (due,) = watched.reviews(since_ms + DAY_MS)
    assert (due.kind, due.incident, due.model) == ("retraining", fires.incident, "m")
    assert due.started_at_ms == since_ms
    assert watched.reviews(since_ms + 9 * DAY_MS) == []
    assert not watched.book.due(since_ms + 9 * DAY_MS, behind=False)


def test_retraining_is_not_announced_again_after_a_restart_but_of_the_next_verdict() -> None:
    watched = WatchedBook(RETRAINING)
    (fires,) = watched.hears(judged(-1))
    (due,) = watched.reviews(fires.started_at_ms + DAY_MS)
    again = WatchedBook(RETRAINING)
    again.book.restore(watched.book.state())
    assert again.reviews(fires.started_at_ms + 2 * DAY_MS) == []
    again.hears(judged(1, ordinal=2, since=4_000))
    later = msgspec.structs.replace(judged(-1, ordinal=3, since=90_000), event_ms=NOW_MS + 9 * DAY_MS)
    again.hears(later)
    (next_due,) = again.reviews(NOW_MS + 99 * DAY_MS)
    assert next_due.id != due.id


@pytest.mark.parametrize("of", ["a drift", "a model that accuracy misjudges", "a backlog", "no such setting"])
def test_retraining_is_not_announced_of(of: str) -> None:
    spec = AlarmsSpec(otherwise=RULE, retraining_after_ms=None if of == "no such setting" else DAY_MS)
    watched = WatchedBook(spec, misled={"m"} if of.startswith("a model") else set())
    watched.hears(alarm("m") if of == "a drift" else judged(-1))
    late = NOW_MS + 2 * DAY_MS
    found = watched.book.review(watched, late, behind=of == "a backlog")
    assert [each for each in found if each.kind == "retraining"] == []


def test_an_early_verdict_says_which_delays_have_moved_until_it_is_confirmed(watched: WatchedBook) -> None:
    watched.moved = {"m": ("hits",)}
    (fires,) = watched.hears(by_cohorts(-1, "early", 1))
    assert fires.parts[0].delays_moved == ("hits",)
    (confirmed,) = watched.hears(by_cohorts(-1, "confirmed", 2, before=-1))
    assert confirmed.parts[0].delays_moved == ()
    other = WatchedBook(moved={"m": ("hits",)})
    (plain,) = other.hears(by_cohorts(-1, "confirmed", 1))
    assert plain.parts[0].delays_moved == ()
