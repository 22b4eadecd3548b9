"""What is held back leaves as a plain list of outcomes, looked at after each of them, says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.estimators.registers.prediction_clock import register as held_outcomes
from streamwatch.core.estimators.registers.prediction_clock.register import (
    SLACK_MS,
    HeldOutcomes,
    HeldState,
    ReleasedOutcomes,
)

HORIZON_MS = 50
_Taken = list[tuple[int, int, int]]
"""(prediction time, 1 for an error, event time) of outcomes, in the order of their resolution."""

OUTCOMES: st.SearchStrategy[_Taken] = st.lists(
    st.tuples(st.integers(0, 3 * SLACK_MS), st.integers(0, 1), st.integers(0, 6 * SLACK_MS)), max_size=60
)
LONG = 2**40


def _plain(taken: _Taken, maximum: int) -> tuple[list[tuple[int, int, int]], int, int, list[tuple[int, int]]]:
    """Outcomes that left as (prediction time, error, cause); late ones, overflowed ones; what is held."""
    held: list[tuple[int, int, int]] = []
    left: list[tuple[int, int, int]] = []
    clock, newest, late, overflowed = -math.inf, -math.inf, 0, 0
    for cause, (predicted, miss, event) in enumerate(taken):
        held = sorted([*held, (predicted, cause, miss)])
        if cause >= 2:
            clock = max(clock, min(event, taken[cause - 1][2], taken[cause - 2][2]))
        due = [each for each in held if each[0] + HORIZON_MS + SLACK_MS <= clock]
        held = held[len(due) :]
        if len(held) > maximum:
            room = max(1, maximum // 8)
            due += held[:room]
            overflowed += room
            held = held[room:]
        for predicted_ms, _, error in due:
            late += predicted_ms < newest
            newest = max(newest, predicted_ms)
            left.append((predicted_ms, error, cause))
    return left, late, overflowed, [(predicted, miss) for predicted, _, miss in held]


def _take(held: HeldOutcomes, taken: _Taken) -> ReleasedOutcomes:
    return held.take(*np.array(taken, np.int64).reshape(-1, 3).T)


@contextmanager
def _unsorted(most: int) -> Iterator[None]:
    """So many may wait unsorted, beside an eighth of the others."""
    before, held_outcomes.FEW = held_outcomes.FEW, most
    try:
        yield
    finally:
        held_outcomes.FEW = before


@given(
    OUTCOMES,
    st.integers(1, 20),
    st.lists(st.integers(1, 60), max_size=5),
    st.sampled_from([0, LONG]),
    st.sampled_from([0, 2, 256]),
    st.sampled_from(["cut", "restored"]),
)
def test_what_leaves_is_what_a_plain_list_lets_go_however_it_is_cut_and_restored(
    taken: _Taken, maximum: int, cuts: list[int], away_ms: int, few: int, how: str
) -> None:
    with _unsorted(few):
        _compare(taken, maximum, cuts, away_ms, restored=how == "restored")


def _compare(taken: _Taken, maximum: int, cuts: list[int], away_ms: int, *, restored: bool) -> None:
    taken = [(p + (0 if i % 7 else away_ms), miss, event) for i, (p, miss, event) in enumerate(taken)]
    held = HeldOutcomes(HORIZON_MS, maximum)
    found: list[tuple[int, int, int]] = []
    bounds = sorted({0, *(cut for cut in cuts if cut < len(taken)), len(taken)})
    for start, stop in pairwise(bounds):
        left = _take(held, taken[start:stop])
        found += zip(
            left.predicted_ms.tolist(), left.miss.tolist(), (left.cause + start).tolist(), strict=True
        )
        if restored:
            again = HeldOutcomes(HORIZON_MS, maximum)
            again.restore(held.state())
            assert again.state() == held.state()
            held = again
    left, late, overflowed, waiting = _plain(taken, maximum)
    assert found == left
    assert held.counts == {"late": late, "overflowed": overflowed}
    assert len(held) == len(waiting)
    if len(waiting) + 3 <= maximum:
        rest = _take(held, 3 * [(0, 0, 3 * LONG)])
        released = list(zip(rest.predicted_ms.tolist(), rest.miss.tolist(), strict=True))
        assert sorted(released) == sorted([*3 * [(0, 0)], *waiting])


def test_labels_with_times_in_the_far_future_let_nothing_go_too_early() -> None:
    """Two at a time: milliseconds taken for seconds, say."""
    taken = [(1_000 * i, i % 2, 1_000 * i + 40) for i in range(60)]
    wrong = [(*each[:2], LONG if i % 20 in (7, 8) else each[2]) for i, each in enumerate(taken)]
    right, held = HeldOutcomes(HORIZON_MS, 1_000), HeldOutcomes(HORIZON_MS, 1_000)
    expected, found = _take(right, taken), _take(held, wrong)
    assert found.predicted_ms.tolist() == expected.predicted_ms.tolist()
    assert held.counts == right.counts == {"late": 0, "overflowed": 0}
    noticed_ms = np.array([event for *_, event in taken])[found.cause]
    assert (noticed_ms >= found.predicted_ms + HORIZON_MS + SLACK_MS).all()
    assert (expected.cause - found.cause <= 2).all()


def test_one_that_comes_does_not_move_the_thousands_that_are_held() -> None:
    """A batch has few outcomes of a model, of which 100,000 may be held."""
    held = HeldOutcomes(HORIZON_MS, 100_000)
    _take(held, [(60_000 * i, 0, 0) for i in range(50_000)])
    before = held._predicted_ms
    for i in range(100):
        _take(held, [(60_000 * 7 * i, 1, 0)])
    assert np.shares_memory(before, held._predicted_ms)
    assert len(held) == 50_100


def test_in_a_snapshot_an_outcome_takes_four_bytes() -> None:
    held = HeldOutcomes(HORIZON_MS, 1_000)
    _take(held, [(1_700_000_000_000 + 60_000 * i, i % 2, 0) for i in range(500)])
    assert len(held.state().held) == 4 * 500


@pytest.mark.parametrize("recent_ms", [(), (1,), (1, 2, 3)])
def test_a_state_with_another_number_of_recent_times_is_refused(recent_ms: tuple[int, ...]) -> None:
    state = HeldOutcomes(HORIZON_MS, 1_000).state()
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=HeldState) == state
    damaged = msgspec.msgpack.encode(msgspec.structs.replace(state, recent_ms=recent_ms))
    with pytest.raises(ValueError, match="length"):
        msgspec.msgpack.decode(damaged, type=HeldState)
