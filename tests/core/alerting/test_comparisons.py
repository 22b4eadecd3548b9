"""Verdicts on challengers that people are notified of, against a plain account of what was notified."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.alerting.book import AlarmBook, details_with_incidents
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.estimators.comparisons.set import ComparisonVerdict
from tests.core.alerting.stored import stored
from tests.core.alerting.watched_book import WatchedBook
from tests.tiers import examples

HOUR_MS = 3_600_000
NOW_MS = 1_000 * HOUR_MS
COOLDOWN_MS = 600_000
SPEC = AlarmsSpec(
    rules=(AlarmRule("comparison", "loud", "critical", cooldown_ms=0, severity_given=True),),
    otherwise=AlarmRule(severity="warning", cooldown_ms=COOLDOWN_MS),
    stale_after_ms=HOUR_MS,
)


def verdict(
    side: int = 1,
    status: Any = "early",
    last_ms: int = NOW_MS,
    pair: tuple[str, str] = ("old", "new"),
    basis: Any = "cohorts",
) -> ComparisonVerdict:
    since_ms = last_ms - HOUR_MS if side else None
    return ComparisonVerdict(*pair, side, since_ms, last_ms, basis, status if side else "")


def review(
    book: AlarmBook, *verdicts: ComparisonVerdict, now_ms: int = NOW_MS, behind: bool = False
) -> list[Notification]:
    return book.review(WatchedBook(), now_ms, behind=behind, comparisons=verdicts)


def suppressed(book: AlarmBook) -> float:
    [found] = [family for family in book.families() if family.name == "alarms_suppressed_total"]
    return next(float(value) for key, value in found.samples if key == ("cooldown",))  # type: ignore[arg-type]


def test_a_verdict_is_notified_once_when_confirmed_and_when_it_no_longer_holds() -> None:
    book = AlarmBook(SPEC, "s")
    assert review(book, verdict(0)) == []
    (begun,) = review(book, verdict())
    assert (begun.kind, begun.severity, begun.model, begun.series) == ("firing", "info", "new", "new")
    assert begun.comparison is not None
    assert (begun.comparison.champion, begun.comparison.verdict, begun.comparison.status) == (
        "old",
        1,
        "early",
    )
    assert (begun.started_at_ms, begun.ended_at_ms, begun.parts) == (NOW_MS - HOUR_MS, None, ())
    assert stored(begun) == begun
    assert review(book, verdict(last_ms=NOW_MS + 9)) == []
    assert book.open_incidents() == [begun]
    (confirmed,) = review(book, verdict(status="confirmed", last_ms=NOW_MS + 10), now_ms=NOW_MS + 11)
    assert (confirmed.kind, confirmed.incident) == ("updated", begun.incident)
    assert review(book, verdict(status="confirmed")) == []
    (over,) = review(book, verdict(0), now_ms=NOW_MS + 20)
    assert (over.kind, over.incident, over.ended_at_ms) == ("resolved", begun.incident, NOW_MS + 20)
    assert over.comparison is not None
    assert over.comparison.reason == "verdict_changed"
    assert len({begun.id, confirmed.id, over.id}) == 3
    assert book.open_incidents() == []
    assert review(book, verdict(0)) == []


def test_an_early_verdict_that_is_not_confirmed_is_retracted() -> None:
    book = AlarmBook(SPEC, "s")
    review(book, verdict())
    (over,) = review(book, verdict(0))
    assert over.comparison is not None
    assert over.comparison.reason == "retracted"


def test_a_change_of_sides_ends_one_verdict_and_begins_the_other() -> None:
    book = AlarmBook(SPEC, "s")
    review(book, verdict(pair=("old", "loud")))
    over, begun = review(book, verdict(-1, pair=("old", "loud")))
    assert (over.kind, begun.kind, begun.severity) == ("resolved", "firing", "critical")
    assert over.incident != begun.incident
    assert begun.comparison is not None
    assert begun.comparison.verdict == -1


def test_within_the_cooldown_a_verdict_waits_and_is_counted_once() -> None:
    book = AlarmBook(SPEC, "s")
    review(book, verdict())
    review(book, verdict(0))
    for after_ms in (1, 2, COOLDOWN_MS - 1):
        assert review(book, verdict(last_ms=NOW_MS + after_ms)) == []
    assert suppressed(book) == 1.0
    (begun,) = review(book, verdict(last_ms=NOW_MS + COOLDOWN_MS))
    assert begun.kind == "firing"


def test_two_verdicts_within_one_cooldown_are_counted_as_two() -> None:
    book = AlarmBook(SPEC, "s")
    review(book, verdict())
    for at_ms, side in enumerate((0, 1, 1, 0, -1, -1, 0), NOW_MS):
        review(book, verdict(side, last_ms=at_ms))
    assert suppressed(book) == 2.0


def test_an_old_verdict_of_a_backlog_waits_until_it_has_been_read() -> None:
    book = AlarmBook(SPEC, "s")
    old = verdict(last_ms=NOW_MS - 2 * HOUR_MS)
    assert review(book, old, behind=True) == []
    assert not book.due(NOW_MS, behind=True)
    assert book.due(NOW_MS, behind=False)
    (begun,) = review(book, old)
    assert begun.kind == "firing"
    assert not book.due(NOW_MS, behind=False)


@pytest.mark.parametrize("silent", [True, False])
def test_what_is_no_longer_compared_or_wanted_is_over(silent: bool) -> None:  # noqa: FBT001
    book = AlarmBook(SPEC, "s")
    review(book, verdict())
    (over,) = book.review(WatchedBook(), NOW_MS, behind=False, comparisons=None if silent else ())
    assert over.comparison is not None
    assert over.comparison.reason == "no_longer_compared"
    (again,) = review(book, verdict(last_ms=NOW_MS + 5))  # nothing of the pair is left, and no cooldown
    assert again.kind == "firing"
    assert again.incident != over.incident


def test_comparisons_are_no_open_incidents_of_a_model() -> None:
    book = AlarmBook(SPEC, "s")
    review(book, verdict())
    assert details_with_incidents({"new": {}}, book.open_incidents()) == {"new": {}}


@dataclass
class Account:
    """What should be open, by pair, as a person would note it."""

    open: dict[tuple[str, str], tuple[int, bool]] = field(default_factory=dict)
    notified_ms: dict[tuple[str, str], int] = field(default_factory=dict)

    def hears(self, now: dict[tuple[str, str], ComparisonVerdict]) -> list[tuple[tuple[str, str], str]]:
        expected: list[tuple[tuple[str, str], str]] = []
        for pair in sorted(self.open):
            if pair not in now:
                expected.append((pair, "resolved"))
                del self.open[pair]
        self.notified_ms = {pair: ms for pair, ms in self.notified_ms.items() if pair in now}
        for pair, each in sorted(now.items()):
            if pair in self.open and self.open[pair][0] != each.verdict:
                expected.append((pair, "resolved"))
                del self.open[pair]
            elif pair in self.open and each.status == "confirmed" and not self.open[pair][1]:
                expected.append((pair, "updated"))
                self.open[pair] = each.verdict, True
            recent = pair in self.notified_ms and abs(each.last_ms - self.notified_ms[pair]) < COOLDOWN_MS
            if each.verdict and pair not in self.open and not recent:
                expected.append((pair, "firing"))
                self.open[pair] = each.verdict, each.status == "confirmed"
                self.notified_ms[pair] = each.last_ms
        return expected


PAIRS = [("old", "a"), ("old", "b"), ("a", "b")]
LOOKS = st.lists(
    st.dictionaries(
        st.sampled_from(PAIRS),
        st.tuples(st.sampled_from([-1, 0, 1]), st.sampled_from(["early", "confirmed"])),
    ),
    max_size=25,
)


@given(looks=LOOKS, steps=st.integers(60_000, 400_000), cuts=st.sets(st.integers(0, 24)))
@settings(max_examples=examples(2), deadline=None)
def test_what_is_notified_is_what_a_plain_account_says_over_restarts(
    looks: list[dict[tuple[str, str], tuple[int, Any]]], steps: int, cuts: set[int]
) -> None:
    book, account, ids = AlarmBook(SPEC, "s"), Account(), set[str]()
    clock = count(NOW_MS, steps)
    for number, look in enumerate(looks):
        at = next(clock)
        now = {pair: verdict(side, status, at, pair) for pair, (side, status) in look.items()}
        found = review(book, *now.values(), now_ms=at)
        expected = [((n.comparison.champion, n.comparison.challenger), n.kind) for n in found if n.comparison]
        assert expected == account.hears(now)
        assert ids.isdisjoint(n.id for n in found)
        ids |= {n.id for n in found}
        assert len(book.open_incidents()) == len(account.open)
        if number in cuts:
            state = book.state()
            book = AlarmBook(SPEC, "s")
            book.restore(state)
            assert book.state() == state
