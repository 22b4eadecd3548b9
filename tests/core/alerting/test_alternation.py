"""Verdicts that alternate: notified once, counted, and over when one side has held for a week."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from streamwatch.core.alerting.alternation import MOST_KEPT, WINDOW_MS, Alternation, Sides, hour_of_day
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.rules import AlarmRule
from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.records.events import Alarm, Judgement
from streamwatch.core.specs import DAY_MS
from streamwatch.edge.receivers.texts import description, title
from tests.core.alerting.watched_book import HOUR_MS, WatchedBook, alarm

MIDNIGHT_MS = 20_000 * DAY_MS
BECOMES_WORSE, BECOMES_BETTER = 8, 20
"""Hours of the day at which a daily rhythm takes the model from one side to the other."""


def verdict(side: int, at_ms: int, ordinal: int = 1) -> Alarm:
    """A change of verdict that holds since an hour before it was found."""
    made = alarm("m", "verdict", ordinal, 1_000 + ordinal, at_ms, before=-float(side), after=float(side))
    judgement = Judgement("persistent", side, 900 + ordinal, at_ms - HOUR_MS)  # type: ignore[arg-type]
    return msgspec.structs.replace(made, judgement=judgement)


def daily(days: int) -> list[Alarm]:
    """Worse by day and better by night."""
    found: list[Alarm] = []
    for day in range(days):
        for side, hour in ((-1, BECOMES_WORSE), (1, BECOMES_BETTER)):
            at_ms = MIDNIGHT_MS + day * DAY_MS + (hour + 1) * HOUR_MS
            found.append(verdict(side, at_ms, len(found) + 1))
    return found


def hear(watched: WatchedBook, alarms: list[Alarm]) -> list[Notification]:
    """Each change as it happens, with a review after it, and a restart after that."""
    heard: list[Notification] = []
    for each in alarms:
        heard += watched.hears(each, now_ms=each.event_ms)
        heard += watched.reviews(each.event_ms)
        state = watched.book.state()
        watched.__post_init__()
        watched.book.restore(state)
    return heard


def test_ten_days_of_a_daily_rhythm_are_three_notifications_and_the_third_says_the_rhythm(
    watched: WatchedBook,
) -> None:
    changes = daily(10)
    heard = hear(watched, changes)
    assert [n.kind for n in heard] == ["firing", "resolved", "firing"]
    assert heard[2].issued_ms == changes[2].event_ms
    assert watched.counted("alarms_suppressed_total")["alternates",] == len(changes) - 3
    (open_now,) = watched.book.open_incidents()
    assert open_now.parts[0].alternation == Alternation(
        20,
        changes[0].event_ms - HOUR_MS,
        worse=False,
        period_ms=DAY_MS,
        worse_from_hour=8,
        worse_until_hour=20,
    )
    expected = "m alternates between worse than no change and not worse, about once a day: "
    expected += "worse from 08:00 to 20:00 UTC"
    assert title(open_now) == expected
    assert expected in description(open_now)
    assert "has changed sides 20 times" in description(open_now)


@pytest.mark.parametrize("days", [3, 10])
def test_a_week_on_the_better_side_resolves_it_and_the_next_change_is_notified_plainly(
    watched: WatchedBook, days: int
) -> None:
    changes = daily(days)
    hear(watched, changes)
    last_ms = changes[-1].event_ms
    assert not watched.book.due(last_ms + WINDOW_MS - 1, behind=False)
    assert watched.reviews(last_ms + WINDOW_MS - 1) == []
    assert watched.book.due(last_ms + WINDOW_MS, behind=False)
    (over,) = watched.reviews(last_ms + WINDOW_MS)
    assert (over.kind, over.parts[0].reason) == ("resolved", "verdict_changed")
    assert title(over).startswith("m is better than no change since")
    later = verdict(-1, last_ms + 2 * WINDOW_MS, 99)
    (again,) = watched.hears(later, now_ms=later.event_ms)
    assert (again.kind, again.parts[0].alternation) == ("firing", None)


def test_a_week_on_the_worse_side_is_notified_as_plainly_worse(watched: WatchedBook) -> None:
    changes = daily(3)[:-1]
    hear(watched, changes)
    late_ms = changes[-1].event_ms + WINDOW_MS
    (worse,) = watched.reviews(late_ms)
    assert (worse.kind, worse.parts[0].alternation) == ("updated", None)
    assert title(worse).startswith("Update: m is worse than no change since")
    assert watched.reviews(late_ms) == []
    assert not watched.book.due(late_ms + 10 * WINDOW_MS, behind=False)


def test_retraining_counts_from_the_last_change_of_what_has_alternated() -> None:
    after_ms = 10 * DAY_MS
    watched = WatchedBook(replace(WatchedBook().spec, retraining_after_ms=after_ms))
    changes = daily(30)[:-1]
    assert "retraining" not in {n.kind for n in hear(watched, changes)}
    last = changes[-1].judgement
    assert last is not None
    (worse,) = watched.reviews(changes[-1].event_ms + WINDOW_MS)
    assert worse.parts[0].started_at_ms == last.since_ms
    assert watched.reviews(last.since_ms + after_ms - 1) == []
    (due,) = watched.reviews(last.since_ms + after_ms)
    assert (due.kind, due.started_at_ms) == ("retraining", last.since_ms)


def test_an_open_verdict_whose_third_change_is_for_the_better_stays_open_and_says_so(
    watched: WatchedBook,
) -> None:
    start_ms = MIDNIGHT_MS
    sides = [Sides().changed(start_ms, start_ms, worse=True)]
    for hours, worse in ((200, False), (210, True), (220, False)):
        sides.append(sides[-1].changed(start_ms + hours * HOUR_MS, start_ms, worse=worse))
    assert [each.alternates for each in sides] == [False, False, False, True]
    heard = hear(
        watched,
        [
            verdict(side, start_ms + hours * HOUR_MS, n)
            for n, (hours, side) in enumerate(((0, -1), (200, 1), (210, -1), (220, 1)), 1)
        ],
    )
    assert [n.kind for n in heard] == ["firing", "resolved", "firing", "updated"]
    assert heard[-1].parts[0].alternation is not None


def test_changes_further_apart_than_a_week_never_alternate(watched: WatchedBook) -> None:
    alarms = [verdict(-1 if n % 2 else 1, MIDNIGHT_MS + n * 4 * DAY_MS, n) for n in range(1, 9)]
    assert [n.kind for n in hear(watched, alarms)] == ["firing", "resolved"] * 4


def test_a_verdict_that_only_opens_and_is_better_again_changes_no_side() -> None:
    sides = Sides()
    for n in range(9):
        sides = sides.changed(MIDNIGHT_MS + n, MIDNIGHT_MS + n, worse=False)
    assert sides == Sides()


def test_old_changes_are_counted_and_not_kept() -> None:
    sides = Sides()
    for n in range(3 * MOST_KEPT):
        sides = sides.changed(MIDNIGHT_MS + n * HOUR_MS, MIDNIGHT_MS + n * HOUR_MS, worse=n % 2 == 0)
    assert len(sides.recent) == MOST_KEPT
    found = sides.alternation()
    assert found is not None
    assert (found.changes, found.period_ms) == (3 * MOST_KEPT, 2 * HOUR_MS)
    assert found.first_ms == MIDNIGHT_MS  # all changes are counted from the first


def test_hours_lie_around_midnight_or_around_none() -> None:
    around = [MIDNIGHT_MS + n * DAY_MS + offset for n, offset in enumerate((-HOUR_MS, 0, HOUR_MS))]
    assert hour_of_day(around) == 0
    assert hour_of_day([MIDNIGHT_MS + 6 * n * HOUR_MS for n in range(4)]) is None
    assert hour_of_day([]) is None


@pytest.mark.parametrize("hour", range(24))
def test_the_hour_of_equal_times_is_theirs_on_the_clock(hour: int) -> None:
    times_ms = [MIDNIGHT_MS + day * DAY_MS + hour * HOUR_MS for day in range(3)]
    assert hour_of_day(times_ms) == datetime.fromtimestamp(times_ms[0] / 1000, UTC).hour
    assert hour_of_day([each + 29 * HOUR_MS // 60 for each in times_ms]) == hour
    assert hour_of_day([each - 29 * HOUR_MS // 60 for each in times_ms]) == hour


@pytest.mark.parametrize(
    ("period_ms", "called"),
    [
        (None, ""),
        (20 * HOUR_MS - 1, ""),
        (20 * HOUR_MS, "daily"),
        (28 * HOUR_MS, "daily"),
        (28 * HOUR_MS + 1, ""),
        (6 * DAY_MS - 1, ""),
        (6 * DAY_MS, "weekly"),
        (8 * DAY_MS, "weekly"),
        (8 * DAY_MS + 1, ""),
    ],
)
def test_a_period_is_called_daily_or_weekly_within_its_limits(period_ms: int | None, called: str) -> None:
    found = Alternation(3, MIDNIGHT_MS, worse=True, period_ms=period_ms)
    assert "daily" * found.is_daily + "weekly" * found.is_weekly == called


def test_a_change_a_whole_week_ago_counts_no_longer() -> None:
    sides = Sides().changed(0, 0, worse=True).changed(1, 1, worse=False)
    assert sides.changed(WINDOW_MS - 1, WINDOW_MS - 1, worse=True).alternates
    assert not sides.changed(WINDOW_MS, WINDOW_MS, worse=True).alternates


def test_a_retired_model_begins_anew(watched: WatchedBook) -> None:
    hear(watched, daily(5))
    watched.book.retire("m", MIDNIGHT_MS + 6 * DAY_MS)
    later = verdict(-1, MIDNIGHT_MS + 6 * DAY_MS, 50)
    (fires,) = watched.hears(later, now_ms=later.event_ms)
    assert fires.parts[0].alternation is None


def test_an_alternation_found_in_a_backlog_is_over_a_week_after_its_last_change(watched: WatchedBook) -> None:
    changes = daily(3)
    last_ms = changes[-1].event_ms
    for each in changes:  # old ones go into the digest, so that no alarm opens whose review would end it
        assert watched.hears(each, now_ms=last_ms + 10 * DAY_MS, behind=True) == []
    early = verdict(-1, last_ms + WINDOW_MS - 1, 99)
    late = verdict(-1, last_ms + WINDOW_MS, 99)
    state = watched.book.state()
    for again, alternates in ((early, True), (late, False)):
        watched.book.restore(state)
        (fires,) = watched.hears(again, now_ms=again.event_ms)
        assert (fires.parts[0].alternation is not None) is alternates


def test_a_verdict_that_is_worse_again_within_the_cooldown_is_told_as_one_that_alternates(
    watched: WatchedBook,
) -> None:
    changes = [verdict(side, MIDNIGHT_MS + n * 60_000, n) for n, side in enumerate((-1, 1, -1), 1)]
    heard = hear(watched, changes)
    assert [n.kind for n in heard] == ["firing", "resolved", "firing"]
    assert heard[-1].parts[0].alternation is not None
    (open_now,) = watched.book.open_incidents()
    assert open_now.model == "m"


def test_a_verdict_before_the_least_outcomes_that_is_confirmed_after_them_is_told_once(
    watched: WatchedBook,
) -> None:
    early = msgspec.structs.replace(verdict(-1, MIDNIGHT_MS), outcome=99)
    watched.found["m"] = Level(0.1, 0.3, 99, 99)
    assert hear(watched, [early]) == []
    assert watched.counted("alarms_suppressed_total")["min_outcomes",] == 1.0
    assert watched.reviews(MIDNIGHT_MS + 9 * DAY_MS) == []
    confirmed = msgspec.structs.replace(verdict(-1, MIDNIGHT_MS + HOUR_MS, 2), before=1.0, after=1.0)
    (told,) = hear(watched, [confirmed])
    assert (told.kind, told.parts[0].alternation) == ("firing", None)
    watched.found["m"] = Level(0.1, 0.3, 9_000, 9_000)
    assert watched.reviews(MIDNIGHT_MS + 2 * HOUR_MS) == []


def test_a_verdict_within_the_cooldown_that_does_not_alternate_is_not_told_later(
    watched: WatchedBook,
) -> None:
    weeks = AlarmRule(cooldown_ms=3 * WINDOW_MS, min_outcomes=100)
    watched.spec = replace(watched.spec, otherwise=weeks)
    watched.__post_init__()
    changes = [verdict(side, MIDNIGHT_MS + n * (WINDOW_MS + 1), n) for n, side in enumerate((-1, 1, -1), 1)]
    assert [n.kind for n in hear(watched, changes)] == ["firing", "resolved"]
    assert watched.counted("alarms_suppressed_total")["cooldown",] == 1.0
    assert watched.reviews(MIDNIGHT_MS + 9 * WINDOW_MS) == []
