"""Buffer of one model's outcomes, each held until everything predicted before it is settled."""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from streamwatch.core.ranges import LARGEST, require, require_all

SLACK_MS: Final = 2_000
"""Predictions expire at whole seconds, rounded up, so all are settled this long after the horizon."""
_NAME: Final = "prediction clock"
_NEVER: Final = np.iinfo(np.int64).min // 4
_EIGHTH: Final = 8
AGREEING: Final = 3
"""Number of successive outcomes that must have reached a time before the clock does.

So a single label with a time of its own in the far future does not move the clock.
"""
FEW = 256
"""Number of outcomes that may wait unsorted, beside an eighth of the number of the sorted ones.

So the sorted array is not moved for every new outcome.
"""
_Times = NDArray[np.int64]


class HeldState(msgspec.Struct, array_like=True, frozen=True):
    """State of a buffer; the same outcomes give the same state.

    Attributes
    ----------
    clock_ms, passed_ms
        The clock; the newest prediction time released.
    late, overflowed
        Number of outcomes released after newer predictions; number released early for lack of room.
    first_ms
        Oldest prediction time held; 0 if the buffer is empty.
    wide
        Whether the numbers in `held` have 8 bytes instead of 4.
    held
        2 × (time since the prediction before) + (1 for an error), little-endian, in the order of release.
    recent_ms
        Event times of the last outcomes that may still count towards `AGREEING`.
    """

    clock_ms: int
    passed_ms: int
    late: int
    overflowed: int
    first_ms: int
    wide: bool
    held: bytes
    recent_ms: Annotated[tuple[int, ...], msgspec.Meta(min_length=AGREEING - 1, max_length=AGREEING - 1)]


class ReleasedOutcomes(NamedTuple):
    """Released outcomes: arrays of equal length in the order of release."""

    predicted_ms: _Times
    miss: _Times
    cause: _Times
    """Position, among the outcomes just taken in, of the one that caused the release."""


class HeldOutcomes:
    """Outcomes ordered by the time of their prediction, ties in the order of resolution.

    The clock is the newest time that three successive outcomes of the model had reached. An outcome is
    released when the clock is `horizon_ms` and two seconds past its prediction: then every earlier prediction
    has its label or will get none. If more than `maximum` outcomes are held, the oldest eighth is released at
    once. An outcome that arrives after newer ones have been released (a topic's own times may be out of
    order) is released at its time and counted as late. What is released, and when, depends only on the
    outcomes and their order.
    """

    __slots__ = (
        "_clock_ms",
        "_fresh_miss",
        "_fresh_ms",
        "_horizon_ms",
        "_maximum",
        "_miss",
        "_passed_ms",
        "_predicted_ms",
        "_recent_ms",
        "counts",
    )

    def __init__(self, horizon_ms: int, maximum: int) -> None:
        self._horizon_ms = horizon_ms + SLACK_MS
        self._maximum = maximum
        self._predicted_ms: _Times = np.zeros(0, np.int64)
        self._miss: _Times = np.zeros(0, np.int64)
        self._fresh_ms: _Times = np.zeros(0, np.int64)  # in the order of resolution, not sorted yet
        self._fresh_miss: _Times = np.zeros(0, np.int64)
        self._clock_ms = _NEVER
        self._passed_ms = _NEVER
        self._recent_ms: _Times = np.full(AGREEING - 1, _NEVER, np.int64)
        self.counts = {"late": 0, "overflowed": 0}

    def __len__(self) -> int:
        return len(self._predicted_ms) + len(self._fresh_ms)

    def take(self, predicted_ms: _Times, miss: _Times, event_ms: _Times) -> ReleasedOutcomes:
        """Take in n outcomes, int64 (n,) each, in the order of resolution.

        Return those released, by their times or for lack of room.
        """
        parts: list[ReleasedOutcomes] = []
        start, n = 0, len(predicted_ms)
        while start < n:
            # Few enough that `maximum` can be exceeded only after the last one.
            stop = min(n, start + max(0, self._maximum - len(self)) + 1)
            chosen = slice(start, stop)
            parts.append(self._due(predicted_ms[chosen], miss[chosen], event_ms[chosen], start))
            if len(self) > self._maximum:
                parts.append(self._make_room(stop - 1))
            start = stop
        if len(parts) == 1:
            return parts[0]
        empty = np.zeros(0, np.int64)
        return ReleasedOutcomes(*(np.concatenate([empty, *columns]) for columns in zip(*parts, strict=True)))

    def _due(self, predicted_ms: _Times, miss: _Times, event_ms: _Times, start: int) -> ReleasedOutcomes:
        """Hold outcomes, all of which have room, and release what is due after each."""
        times = np.concatenate([self._recent_ms, event_ms])
        self._recent_ms = times[len(event_ms) :]
        agreed = sliding_window_view(times, AGREEING).min(axis=1)
        clock = np.maximum(np.maximum.accumulate(agreed), self._clock_ms)
        self._clock_ms = int(clock[-1])
        due_ms = self._clock_ms - self._horizon_ms
        came = np.concatenate([np.zeros(len(self._fresh_ms), np.int64), np.arange(len(predicted_ms))])
        fresh_ms = np.concatenate([self._fresh_ms, predicted_ms])
        fresh_miss = np.concatenate([self._fresh_miss, miss])
        goes = fresh_ms <= due_ms
        many = int(np.searchsorted(self._predicted_ms, due_ms, side="right"))
        gone_ms = np.concatenate([self._predicted_ms[:many], fresh_ms[goes]])
        gone_miss = np.concatenate([self._miss[:many], fresh_miss[goes]])
        came = np.concatenate([np.zeros(many, np.int64), came[goes]])
        leaves = np.maximum(came, np.searchsorted(clock, gone_ms + self._horizon_ms))
        order = np.lexsort((gone_ms, leaves))
        self._predicted_ms, self._miss = self._predicted_ms[many:], self._miss[many:]
        self._fresh_ms, self._fresh_miss = fresh_ms[~goes], fresh_miss[~goes]
        if len(self._fresh_ms) > FEW + len(self._predicted_ms) // _EIGHTH:
            self._sort()
        return self._pass(ReleasedOutcomes(gone_ms[order], gone_miss[order], leaves[order] + start))

    def _sort(self) -> None:
        """Sort the unsorted outcomes into the sorted ones."""
        if not len(self._fresh_ms):
            return
        predicted_ms = np.concatenate([self._predicted_ms, self._fresh_ms])
        order = np.argsort(predicted_ms, kind="stable")
        self._predicted_ms = predicted_ms[order]
        self._miss = np.concatenate([self._miss, self._fresh_miss])[order]
        self._fresh_ms = self._fresh_miss = np.zeros(0, np.int64)

    def _make_room(self, cause: int) -> ReleasedOutcomes:
        """Release the oldest eighth, or more if more were held before a restart with a lower `maximum`."""
        self._sort()
        many = max(1, self._maximum // _EIGHTH, len(self) - self._maximum)
        oldest = ReleasedOutcomes(
            self._predicted_ms[:many], self._miss[:many], np.full(many, cause, np.int64)
        )
        self._predicted_ms, self._miss = self._predicted_ms[many:], self._miss[many:]
        self.counts["overflowed"] += many
        return self._pass(oldest)

    def _pass(self, left: ReleasedOutcomes) -> ReleasedOutcomes:
        if len(left.predicted_ms):
            newest = np.maximum(np.maximum.accumulate(left.predicted_ms), self._passed_ms)
            before = np.concatenate([[self._passed_ms], newest[:-1]])
            self.counts["late"] += int(np.count_nonzero(left.predicted_ms < before))
            self._passed_ms = int(newest[-1])
        return left

    @property
    def passed_ms(self) -> int | None:
        """Newest prediction time released; None before the first release."""
        return None if self._passed_ms == _NEVER else self._passed_ms

    def state(self) -> HeldState:
        """State from which `restore` continues."""
        self._sort()
        first_ms = int(self._predicted_ms[0]) if len(self) else 0
        steps = 2 * np.diff(self._predicted_ms, prepend=first_ms) + self._miss
        wide = bool((steps >> 32).any())
        packed: bytes = steps.astype("<u8" if wide else "<u4").tobytes()
        counts = self.counts
        return HeldState(
            self._clock_ms,
            self._passed_ms,
            counts["late"],
            counts["overflowed"],
            first_ms,
            wide,
            packed,
            tuple(self._recent_ms.tolist()),
        )

    def restore(self, state: HeldState) -> None:
        """Continue from a state; raises ValueError if `held` does not hold numbers, or times are none."""
        steps: NDArray[Any] = np.frombuffer(state.held, "<u8" if state.wide else "<u4").astype(np.int64)
        for what, time_ms in (
            ("first time", state.first_ms),
            ("clock", state.clock_ms),
            ("newest time", state.passed_ms),
        ):
            require(_NAME, what, time_ms, _NEVER, LARGEST)
        require_all(_NAME, "time since the one before", steps, 0, LARGEST)
        require_all(_NAME, "time", np.cumsum(steps >> 1, dtype=np.float64), 0, LARGEST - state.first_ms)
        self._predicted_ms = state.first_ms + np.cumsum(steps >> 1)
        self._miss = steps & 1
        self._fresh_ms = self._fresh_miss = np.zeros(0, np.int64)
        self._clock_ms, self._passed_ms = state.clock_ms, state.passed_ms
        self._recent_ms = np.array(state.recent_ms, np.int64)
        self.counts = {"late": state.late, "overflowed": state.overflowed}
