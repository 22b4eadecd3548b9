"""Pacing of notifications: few go out as they are, many become one digest, none is lost by a restart."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.pacing import Orphans, Pacing, PacingSpec
from streamwatch.core.join.durable.columns import PackedError
from tests.core.alerting.stored import stored
from tests.edge.receivers.notifications import NOW_MS, digest, firing, resolved

SPEC = PacingSpec(group_wait_ms=10_000, max_per_minute=5, listed=20)
WAITED = NOW_MS + 10_000


def pacing(spec: PacingSpec = SPEC, *receivers: str, closing: Collection[str] = ()) -> Pacing:
    return Pacing(spec, receivers or ("oncall",), "state-1", closing)


def fleet(models: int, **changes: object) -> list[Notification]:
    return [firing(f"firing_{n}", f"fraud-{n:03d}", **changes) for n in range(models)]


def released(
    paced: Pacing, notifications: Sequence[Notification], at_ms: int = WAITED, taken_ms: int = NOW_MS
) -> list[Notification]:
    for each in notifications:
        paced.take("oncall", each, taken_ms)
    return paced.release("oncall", at_ms, ())


def test_an_outage_of_500_models_is_one_notification() -> None:
    (digest,) = released(pacing(), fleet(500))
    assert digest.kind == "digest"
    assert digest.gathered is not None
    assert (digest.gathered.notifications, digest.gathered.models) == (500, 500)
    assert len(digest.gathered.listed) == 20
    assert stored(digest) == digest


def test_ten_drifts_at_once_are_ten_lines_of_one_notification() -> None:
    (digest,) = released(pacing(), fleet(10))
    assert digest.gathered is not None
    assert [each.model for each in digest.gathered.listed] == [f"fraud-{n:03d}" for n in range(10)]


def test_a_few_are_issued_as_they_are_once_they_have_waited_for_others() -> None:
    paced, few = pacing(), fleet(3)
    for each in few:
        paced.take("oncall", each, NOW_MS)
    assert paced.release("oncall", WAITED - 1, ()) == []
    assert not paced.due(WAITED - 1, lambda _: ())
    assert paced.due(WAITED, lambda _: ())
    assert paced.release("oncall", WAITED, ()) == few
    assert not paced.due(WAITED + 3_600_000, lambda _: ())


def test_without_a_wait_the_first_are_issued_at_once() -> None:
    paced = pacing(PacingSpec(group_wait_ms=0, max_per_minute=2))
    assert len(released(paced, fleet(2), NOW_MS)) == 2


def test_once_a_minute_is_used_up_what_comes_is_gathered_until_it_is_over() -> None:
    paced = pacing()
    assert len(released(paced, fleet(5))) == 5
    more = [firing(f"more_{n}", f"loan-{n}") for n in range(2)]
    assert released(paced, more, WAITED + 20_000, WAITED + 5_000) == []
    assert not paced.due(WAITED + 59_999, lambda _: ())
    assert paced.release("oncall", WAITED + 60_000, ()) == more, "the minute before is over"


def test_never_more_than_so_many_within_any_minute() -> None:
    paced, issued = pacing(PacingSpec(group_wait_ms=1_000, max_per_minute=3)), list[int]()
    for second in range(600):
        now_ms = NOW_MS + 1_000 * second
        paced.take("oncall", firing(f"n{second}", f"m{second}"), now_ms)
        issued += [now_ms] * len(paced.release("oncall", now_ms, ()))
    assert max(sum(begin <= at < begin + 60_000 for at in issued) for begin in issued) == 3
    assert len(issued) >= 27


def test_of_an_incident_the_newest_is_listed_and_the_most_severe_come_first() -> None:
    over = [resolved(each) for each in fleet(3)]
    bad = firing("bad", "loan", severity="critical")
    (digest,) = released(pacing(), [*fleet(10), *over, bad])
    assert digest.gathered is not None
    assert digest.severity == "critical"
    listed = digest.gathered.listed
    assert listed[0] == bad
    assert [each.kind for each in listed[1:4]] == ["resolved"] * 3
    assert len(listed) == 11
    assert (digest.gathered.firing, digest.gathered.resolved) == (11, 3)


def test_beyond_what_can_be_listed_the_more_severe_are_kept() -> None:
    (digest,) = released(pacing(), [*fleet(100), firing("bad", "loan", severity="critical")])
    assert digest.gathered is not None
    assert digest.gathered.listed[0].model == "loan"
    assert digest.gathered.notifications == 101
    assert len(digest.gathered.listed) == 20


def test_a_digest_waits_for_what_was_issued_before_it_and_everything_waits_for_a_digest() -> None:
    paced = pacing()
    (first, *_) = released(paced, fleet(1))
    for each in fleet(100):
        paced.take("oncall", each, WAITED)
    later = WAITED + 120_000
    assert paced.release("oncall", later, (first,)) == []
    assert not paced.due(later, lambda _: (first,))
    (digest,) = paced.release("oncall", later, ())
    ends = resolved(fleet(1)[0])
    paced.take("oncall", ends, later)
    assert paced.release("oncall", later + 60_000, (digest,)) == []
    assert paced.release("oncall", later + 60_000, ()) == [ends]


def test_an_outage_of_hours_ends_in_a_digest_however_few_came_in_each_minute() -> None:
    paced, pending = pacing(), list[Notification]()
    for minute in range(180):
        now_ms = NOW_MS + 60_000 * minute
        paced.take("oncall", firing(f"n{minute}", f"m{minute}"), now_ms)
        pending += paced.release("oncall", now_ms + 10_000, pending)
    assert [each.id for each in pending] == [f"n{minute}" for minute in range(5)]
    back_ms = NOW_MS + 60_000 * 180
    assert paced.release("oncall", back_ms, ()) == [], "five were delivered now"
    assert paced.release("oncall", back_ms + 59_999, ()) == []
    (digest,) = paced.release("oncall", back_ms + 60_000, ())
    assert digest.gathered is not None
    assert digest.gathered.notifications == 175


def test_retraining_that_is_not_delivered_does_not_count() -> None:
    paced, first = pacing(), firing()
    paced.take("oncall", first, NOW_MS)
    pending = [firing(f"retraining_{n}", f"m{n}", kind="retraining") for n in range(9)]
    assert paced.release("oncall", WAITED, pending) == [first]


def test_what_a_receiver_keeps_open_is_ended_by_itself_however_much_ends() -> None:
    paced, begun = pacing(closing={"oncall"}), fleet(5)
    assert released(paced, begun) == begun
    ends = [resolved(each) for each in begun]
    assert not any(paced.paces("oncall", end) for end in ends)


@pytest.mark.parametrize(("told", "left_out"), [(("oncall",), False), (("chat",), True), (None, False)])
def test_the_end_of_what_was_only_in_a_digest_is_left_out(
    told: tuple[str, ...] | None, *, left_out: bool
) -> None:
    paced = pacing(SPEC, "oncall", "chat", closing={"oncall"})
    end = resolved(firing(), told=told)
    assert paced.has_nothing_open("oncall", end) is left_out
    assert not paced.has_nothing_open("chat", end), "it reads of the end in a digest, too"
    assert not paced.has_nothing_open("oncall", firing(told=told))


def test_the_end_of_what_waits_is_issued_after_it_also_if_that_is_a_digest() -> None:
    paced, begun = pacing(closing={"oncall"}), fleet(1)
    assert released(paced, begun) == begun
    news = firing("news", begun[0].model, kind="updated")
    end, other = resolved(begun[0], told=("oncall",)), firing("other", "loan")
    for each in (other, resolved(other, told=()), news, *fleet(50)[1:]):
        assert paced.paces("oncall", each)
        paced.take("oncall", each, WAITED)
    assert paced.paces("oncall", end)
    paced.take("oncall", end, WAITED)
    kept = paced.state()
    first, digest = paced.release("oncall", WAITED + 60_000, ())
    assert first == end, "and not that of other, of which this digest is all that was sent"
    assert digest.gathered is not None
    paced.restore(kept)
    for each in fleet(50, severity="critical")[1:]:
        paced.take("oncall", each, WAITED)
    assert end in paced.release("oncall", WAITED + 60_000, ()), "the more severe do not displace it"


def test_a_receiver_that_was_removed_and_added_again_has_digests_of_other_ids() -> None:
    (before,) = released(pacing(), fleet(9))
    (after,) = released(pacing(), fleet(9), WAITED + 3_600_000, NOW_MS + 3_600_000)
    assert before.id != after.id


def test_what_was_issued_at_the_same_moment_counts_for_the_minute() -> None:
    paced = pacing(PacingSpec(group_wait_ms=0, max_per_minute=2))
    assert len(released(paced, fleet(2), NOW_MS)) == 2
    assert released(paced, [firing("late")], NOW_MS) == []


def test_of_equally_severe_ones_the_first_are_kept_and_no_more_than_are_listed() -> None:
    paced, many = pacing(), fleet(50)
    for each in many:
        paced.take("oncall", each, NOW_MS)
    (kept,) = msgspec.msgpack.decode(paced.state())["receivers"]
    assert (len(kept["waiting"]), kept["more"]) == (20, 30)
    (digest,) = paced.release("oncall", WAITED, ())
    assert digest.gathered is not None
    assert list(digest.gathered.listed) == many[:20]


def test_kinds_are_counted_beyond_those_that_are_kept() -> None:
    begun = fleet(30)
    (digest,) = released(pacing(), [*begun, *map(resolved, begun[:7])])
    assert digest.gathered is not None
    assert (digest.gathered.firing, digest.gathered.resolved) == (30, 7)


def test_no_two_digests_have_one_id() -> None:
    paced = pacing()
    (first,) = released(paced, fleet(9))
    (second,) = released(paced, fleet(9), WAITED + 60_000, WAITED)
    assert first.id != second.id


def test_one_receiver_that_is_due_is_enough_for_a_commit() -> None:
    paced = pacing(SPEC, "chat", "oncall", "pager")
    paced.take("oncall", firing(), NOW_MS)
    assert paced.due(WAITED, lambda _: ())
    paced.take("chat", firing(), WAITED)
    assert paced.due(WAITED, lambda _: ())


def test_receivers_have_minutes_of_their_own() -> None:
    paced = pacing(SPEC, "oncall", "chat")
    assert len(released(paced, fleet(5))) == 5
    paced.take("chat", firing(), NOW_MS)
    assert len(paced.release("chat", WAITED, ())) == 1
    assert paced.paces("chat", firing())
    assert not paced.paces("alertmanager", firing())


def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    paced = pacing()
    assert len(released(paced, fleet(5))) == 5
    paced.take("oncall", firing("late"), NOW_MS - 86_400_000)
    assert len(paced.release("oncall", NOW_MS - 86_390_000, ())) == 1


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 8)), max_size=15), st.integers(0, 14))
def test_a_restart_between_any_two_commits_changes_nothing(
    steps: list[tuple[int, int]], restart: int
) -> None:
    def run(kill_at: int | None) -> list[Notification]:
        paced, watched, now_ms, number = pacing(), list[Notification](), NOW_MS, 0
        for step, (passes_ms, comes) in enumerate(steps):
            if step == kill_at:
                state = paced.state()
                paced = pacing()
                paced.restore(state)
                assert paced.state() == state
            now_ms += passes_ms
            for _ in range(comes):
                number += 1
                paced.take("oncall", firing(f"n{number}", f"m{number % 30}"), now_ms)
            watched += paced.release("oncall", now_ms, ())
        return watched

    assert run(restart) == run(None)


def test_a_digest_of_a_backlog_waits_through_a_restart_too_and_counts_as_no_model() -> None:
    paced = pacing()
    for each in (digest(), *fleet(5)):
        paced.take("oncall", each, NOW_MS)
    again = pacing()
    again.restore(paced.state())
    (found,) = again.release("oncall", WAITED, ())
    assert found.gathered is not None
    assert (found.gathered.notifications, found.gathered.models) == (6, 5)


def test_what_waited_for_a_receiver_that_is_gone_is_handed_over() -> None:
    paced = pacing(SPEC, "gone")
    paced.take("gone", firing(), NOW_MS)
    again = pacing()
    again.restore(paced.state())
    assert again.take_orphans() == [Orphans("gone", [firing()], 0)]
    assert again.take_orphans() == []


def test_of_what_waited_for_a_receiver_that_is_gone_nothing_is_left_out() -> None:
    paced, waiting = pacing(SPEC, "gone", "idle"), fleet(500)
    for notification in waiting:
        paced.take("gone", notification, NOW_MS)
    again = pacing()
    again.restore(paced.state())
    assert again.take_orphans() == [Orphans("gone", waiting[: SPEC.listed], 500 - SPEC.listed)]


def test_what_is_only_counted_is_in_a_digest_also_if_a_start_has_raised_the_limit() -> None:
    few = pacing(PacingSpec(group_wait_ms=10_000, max_per_minute=3, listed=2))
    for each in fleet(7):
        few.take("oncall", each, NOW_MS)
    many = pacing(PacingSpec(group_wait_ms=10_000, max_per_minute=50, listed=20))
    many.restore(few.state())
    (digest,) = many.release("oncall", WAITED, ())
    assert digest.gathered is not None
    assert (digest.gathered.notifications, digest.gathered.models) == (7, 7)


def test_other_bytes_are_refused() -> None:
    with pytest.raises(PackedError, match="the section 'pacing'"):
        pacing().restore(b"nonsense")
    state = msgspec.msgpack.decode(pacing().state())
    state = {**state, "version": 99} if isinstance(state, dict) else [99, *state[1:]]
    with pytest.raises(PackedError, match=r"the section 'pacing' cannot be read: .* got 99"):
        pacing().restore(msgspec.msgpack.encode(state))


def test_it_is_counted_what_waits_and_what_was_gathered() -> None:
    paced = pacing()
    paced.take("oncall", firing(), NOW_MS)
    assert {f.name: f.samples[0][1] for f in paced.families()} == {
        "notifications_waiting": 1.0,
        "notifications_gathered_total": 0.0,
    }
    released(paced, fleet(30))
    assert {f.name: f.samples[0][1] for f in paced.families()} == {
        "notifications_waiting": 0.0,
        "notifications_gathered_total": 31.0,
    }
