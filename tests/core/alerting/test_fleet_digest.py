"""Digests of the models that are worse: at times of a grid, over restarts, backlogs and clocks set back."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification, NotifiedFleet, RivalPair
from streamwatch.core.alerting.rules import AlarmsSpec, FleetDigestSpec
from streamwatch.core.estimators.registers.fleet import WorseList, WorsePair
from tests.core.alerting.stored import stored
from tests.core.alerting.watched_book import SPEC, WatchedBook
from tests.tiers import by_tier

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
MIDNIGHT_MS = 1_000 * DAY_MS
NOON_MS = MIDNIGHT_MS + 12 * HOUR_MS
DAILY = AlarmsSpec(fleet_digest=FleetDigestSpec())
"""At midnight."""


class Fleet:
    """A book that makes digests, and the models that are worse as a test sets them."""

    def __init__(
        self, spec: AlarmsSpec, identity: str = "state-1", worse_now: WorseList | None = None
    ) -> None:
        self.spec, self.identity = spec, identity
        self.worse_now = worse_now or worse()
        self.shares: list[float] = []
        self.book = AlarmBook(spec, identity)

    def reviews(self, now_ms: int, *, behind: bool = False) -> list[Notification]:
        return self.book.review(WatchedBook(), now_ms, behind=behind, list_worse=self._list)

    def _list(self, share: float) -> WorseList:
        self.shares.append(share)
        return self.worse_now


def worse(*models: str, opponent: str = "majority") -> WorseList:
    """A list of these models, the first with most evidence, of a fleet of 100 models."""
    pairs = [
        WorsePair(model, opponent, 1e9 - index, "worse", NOON_MS - DAY_MS, None, NOON_MS)
        for index, model in enumerate(models)
    ]
    return WorseList(200, tuple(pairs))


def begun(spec: AlarmsSpec = DAILY, *models: str) -> Fleet:
    """A book that was turned on at noon."""
    watched = Fleet(spec, worse_now=worse(*models))
    assert watched.reviews(NOON_MS) == []
    return watched


def again(watched: Fleet) -> Fleet:
    """The book of the next life of the state."""
    next_life = Fleet(watched.spec, watched.identity, worse_now=watched.worse_now)
    next_life.book.restore(watched.book.state())
    return next_life


def fleet(notifications: list[Notification]) -> NotifiedFleet:
    (only,) = notifications
    assert (only.kind, only.severity, only.model, only.series) == ("digest", "info", "", "")
    assert only.fleet is not None
    assert stored(only) == only
    return only.fleet


def names(pairs: tuple[RivalPair, ...]) -> list[str]:
    return [pair.model for pair in pairs]


def test_lists_are_made_at_times_of_the_grid_and_not_when_models_become_worse() -> None:
    watched = begun()
    watched.worse_now = worse("a", "b")
    assert watched.reviews(MIDNIGHT_MS + DAY_MS - 1) == []
    assert not watched.book.due(MIDNIGHT_MS + DAY_MS - 1, behind=False)
    assert watched.shares == [], "the list costs nothing between the times"
    assert watched.book.due(MIDNIGHT_MS + DAY_MS + 5, behind=False)
    first = fleet(watched.reviews(MIDNIGHT_MS + DAY_MS + 5))
    assert (first.at_ms, first.before_ms, first.share) == (MIDNIGHT_MS + DAY_MS, None, 0.05)
    assert (first.pairs, first.models, first.number) == (200, 2, 2)
    assert first.listed == watched.worse_now.pairs
    assert not watched.book.due(MIDNIGHT_MS + DAY_MS + 5, behind=False)
    assert watched.reviews(MIDNIGHT_MS + 2 * DAY_MS - 1) == []
    assert fleet(watched.reviews(MIDNIGHT_MS + 2 * DAY_MS)).before_ms == MIDNIGHT_MS + DAY_MS


def test_a_digest_says_what_was_added_and_what_has_left() -> None:
    watched = begun(DAILY, "a", "b")
    assert names(fleet(watched.reviews(MIDNIGHT_MS + DAY_MS)).added) == ["a", "b"]
    watched.worse_now = worse("c", "b")
    second = fleet(watched.reviews(MIDNIGHT_MS + 2 * DAY_MS))
    assert (names(second.added), names(second.left)) == (["c"], ["a"])
    assert (second.number_added, second.number_left) == (1, 1)
    watched.worse_now = WorseList(
        200, (*worse("b").pairs, *worse("b", opponent="persistent_at_prediction").pairs)
    )
    third = fleet(watched.reviews(MIDNIGHT_MS + 3 * DAY_MS))
    assert third.added == (RivalPair("b", "persistent_at_prediction"),)
    assert third.left == (RivalPair("c", "majority"),)
    assert (third.models, third.number) == (1, 2)


def test_an_empty_list_is_sent_once_something_has_left_and_else_only_on_demand() -> None:
    watched = begun()
    assert watched.reviews(MIDNIGHT_MS + DAY_MS) == []
    watched.worse_now = worse("a")
    assert names(fleet(watched.reviews(MIDNIGHT_MS + 2 * DAY_MS)).added) == ["a"]
    watched.worse_now = worse()
    over = fleet(watched.reviews(MIDNIGHT_MS + 3 * DAY_MS))
    assert (over.number, over.listed, names(over.left)) == (0, (), ["a"])
    assert watched.reviews(MIDNIGHT_MS + 4 * DAY_MS) == []
    asked = begun(AlarmsSpec(fleet_digest=FleetDigestSpec(send_empty=True)))
    assert fleet(asked.reviews(MIDNIGHT_MS + DAY_MS)).number == 0


def test_a_long_list_names_the_first_and_counts_all() -> None:
    models = [f"m{n:02d}" for n in range(30)]
    watched = begun(AlarmsSpec(fleet_digest=FleetDigestSpec(size=3)), *models)
    first = fleet(watched.reviews(MIDNIGHT_MS + DAY_MS))
    assert (first.number, len(first.listed), first.number_added, len(first.added)) == (30, 3, 30, 3)
    watched.worse_now = worse(models[0])
    second = fleet(watched.reviews(MIDNIGHT_MS + 2 * DAY_MS))
    assert (second.number_left, names(second.left)) == (29, ["m01", "m02", "m03"])


def test_a_restart_neither_repeats_nor_forgets() -> None:
    watched = begun(DAILY, "a")
    (sent,) = watched.reviews(MIDNIGHT_MS + DAY_MS)
    watched = again(watched)
    assert watched.reviews(MIDNIGHT_MS + DAY_MS + 1) == []
    watched.worse_now = worse("b")
    second = watched.reviews(MIDNIGHT_MS + 2 * DAY_MS)
    assert (names(fleet(second).added), names(fleet(second).left)) == (["b"], ["a"])
    assert second[0].id != sent.id


def test_what_was_not_committed_is_decided_again_under_the_same_id() -> None:
    watched = begun(DAILY, "a")
    lost = again(watched)
    assert watched.reviews(MIDNIGHT_MS + DAY_MS)[0].id == lost.reviews(MIDNIGHT_MS + DAY_MS + HOUR_MS)[0].id
    other = Fleet(DAILY, "state-2", worse_now=worse("a"))
    other.reviews(NOON_MS)
    assert other.reviews(MIDNIGHT_MS + DAY_MS)[0].id != watched.reviews(MIDNIGHT_MS + 2 * DAY_MS)[0].id


def test_who_was_off_for_days_makes_one_list_and_none_while_a_backlog_is_read() -> None:
    watched = again(begun(DAILY, "a"))
    late_ms = MIDNIGHT_MS + 5 * DAY_MS + HOUR_MS
    assert not watched.book.due(late_ms, behind=True)
    assert watched.reviews(late_ms, behind=True) == []
    assert watched.shares == []
    assert watched.book.due(late_ms, behind=False)
    assert fleet(watched.reviews(late_ms)).at_ms == MIDNIGHT_MS + 5 * DAY_MS
    assert watched.reviews(late_ms) == []


def test_digests_begin_in_an_idle_stream_and_a_backlog_is_not_the_past_of_the_first() -> None:
    watched = Fleet(DAILY, worse_now=worse("a"))
    assert watched.book.due(NOON_MS, behind=False)
    assert watched.reviews(NOON_MS, behind=True) == []
    assert not watched.book.due(NOON_MS, behind=False)
    assert fleet(watched.reviews(MIDNIGHT_MS + DAY_MS)).before_ms is None


def test_a_clock_that_is_set_back_neither_repeats_a_list_nor_silences_lists_for_long() -> None:
    watched = begun(DAILY, "a")
    assert watched.reviews(MIDNIGHT_MS + DAY_MS)
    assert watched.reviews(MIDNIGHT_MS + DAY_MS - 1) == []
    assert watched.reviews(MIDNIGHT_MS + DAY_MS + 1) == [], "of one midnight once"
    assert watched.reviews(MIDNIGHT_MS + 400 * DAY_MS), "a clock of next year"
    assert watched.reviews(MIDNIGHT_MS + DAY_MS + 2) == []
    assert fleet(watched.reviews(MIDNIGHT_MS + 2 * DAY_MS)).at_ms == MIDNIGHT_MS + 2 * DAY_MS


def test_turned_off_all_is_forgotten_and_without_a_receiver_no_list_is_made() -> None:
    watched = begun(DAILY, "a")
    assert watched.reviews(MIDNIGHT_MS + DAY_MS)
    silent = Fleet(SPEC, worse_now=worse("a"))
    silent.book.restore(watched.book.state())
    assert not silent.book.due(MIDNIGHT_MS + 9 * DAY_MS, behind=False)
    assert silent.reviews(MIDNIGHT_MS + 9 * DAY_MS) == []
    assert silent.shares == []
    assert silent.book.state() == AlarmBook(SPEC, "state-1").state()
    watched.book.restore(silent.book.state())
    assert watched.reviews(NOON_MS + 9 * DAY_MS) == []
    assert fleet(watched.reviews(MIDNIGHT_MS + 10 * DAY_MS)).before_ms is None


@pytest.mark.parametrize(("before", "after"), [(DAY_MS, HOUR_MS), (HOUR_MS, DAY_MS)])
def test_another_interval_goes_on_at_the_next_time_of_its_grid(before: int, after: int) -> None:
    watched = begun(AlarmsSpec(fleet_digest=FleetDigestSpec(every_ms=before)), "a")
    assert watched.reviews(NOON_MS + before)
    changed = Fleet(AlarmsSpec(fleet_digest=FleetDigestSpec(every_ms=after)), worse_now=worse("a"))
    changed.book.restore(watched.book.state())
    found = [
        n.fleet.at_ms
        for at in range(0, 3 * after, HOUR_MS // 4)
        for n in changed.reviews(NOON_MS + before + at)
        if n.fleet
    ]
    assert found == sorted(set(found))
    assert found
    assert all(at_ms % after == 0 for at_ms in found)


Step = tuple[int, set[str], bool, bool]
"""Time since the step before, models that are worse, whether behind, and whether after a restart."""


def require_as_by_a_plain_account(steps: list[Step]) -> Counter[str]:
    """Compare what digests say after every step with a plain account; return what was seen."""
    watched, now_ms = begun(), NOON_MS
    last, last_day = set[str](), NOON_MS // DAY_MS
    seen = Counter[str]()
    for wait_ms, models, behind, restarts in steps:
        now_ms += wait_ms
        watched.worse_now = worse(*sorted(models))
        if restarts:
            watched = again(watched)
        sent = watched.reviews(now_ms, behind=behind)
        if behind or now_ms // DAY_MS == last_day:
            assert sent == []
            continue
        last_day = now_ms // DAY_MS
        seen["after a restart"] += restarts
        seen["empty after some"] += bool(last and not models)
        if models or last:
            found = fleet(sent)
            assert found.at_ms == last_day * DAY_MS
            assert [pair.model for pair in found.listed] == sorted(models)
            seen["digests"] += 1
            assert (set(names(found.added)), set(names(found.left))) == (models - last, last - models)
        else:
            assert sent == []
            seen["nothing to say"] += 1
        last = models
    return seen


@given(
    st.lists(
        st.tuples(
            st.integers(1, 3 * DAY_MS),
            st.sets(st.sampled_from("abcde")),
            st.booleans(),
            st.booleans(),
        ),
        max_size=20,
    )
)
def test_what_digests_say_is_what_a_plain_account_says(steps: list[Step]) -> None:
    require_as_by_a_plain_account(steps)


MANY = 100
"""Accounts drawn from one seed: hypothesis takes longer to draw their steps than they take to test."""


@settings(max_examples=by_tier(fast=100, rotating=1_000, default=10_000, everything=20_000) // MANY)
@given(st.integers(0, 2**64))
def test_it_is_so_of_accounts_drawn_by_the_thousand(seed: int) -> None:
    chance = Random(seed)
    seen = Counter[str]()
    for _ in range(MANY):
        seen += require_as_by_a_plain_account(
            [
                (
                    chance.choice((chance.randint(1, 3 * DAY_MS), chance.randint(1, HOUR_MS), DAY_MS)),
                    {model for model in "abcde" if chance.random() < 0.3},
                    chance.random() < 0.3,
                    chance.random() < 0.3,
                )
                for _ in range(chance.randint(0, 20))
            ]
        )
    assert (
        min(seen[what] for what in ("digests", "nothing to say", "after a restart", "empty after some")) > 5
    )
