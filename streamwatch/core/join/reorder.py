"""`OrderBuffer`: puts outcomes back into the order of their predictions (`join.order: prediction_time`).

Numbers that depend on order (κ_per, every detector) live in the order in which outcomes are evaluated. A
label dump sorted by class turns the order of resolution into nonsense; predictions come in the order the
model worked in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from struct import Struct
from typing import Final

import msgspec

from streamwatch.core.events import Outcome

_KEY: Final = Struct(">QQ")
_SHIFT: Final = 2**63  # times before 1970 sort first
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[int, Outcome])


@dataclass(frozen=True, slots=True)
class OrderState:
    """State of an order buffer, in canonical order."""

    held: list[tuple[int, int, Outcome]]
    windows: list[tuple[int, int, int]]
    bound: tuple[int, int]
    sequence: int


class OrderBuffer:
    """Outcomes by prediction time, ties in the order of resolution.

    When the clock is `window_ms` past the resolution of an outcome, it is released together with
    everything held whose prediction is not newer. So nothing waits longer than its window, and what is
    resolved within one window leaves in the order of predictions, however often time passes meanwhile. One
    that comes after newer ones have left goes when time passes next. Beyond `maximum` the oldest predictions
    leave at once.
    """

    __slots__ = (
        "_bound",
        "_fresh",
        "_gone",
        "_held",
        "_maximum",
        "_sequence",
        "_window_ms",
        "_windows",
        "assumed",
    )

    def __init__(self, window_ms: int, maximum: int) -> None:
        self._window_ms = window_ms
        self._maximum = maximum
        self._sequence = 0
        self._held: list[tuple[int, int, Outcome]] = []  # heap by (prediction time, sequence)
        self._windows: list[
            tuple[int, int, int]
        ] = []  # heap by end of window, of the same and of some released
        self._fresh: dict[tuple[int, int], tuple[int, Outcome]] | None = None  # end of window, outcome
        self._gone: list[tuple[int, int]] = []
        self._bound = (-1, -1)  # the newest (prediction time, sequence) whose window is over
        self.assumed = 0
        """Number of those held that were assumed at expiry."""

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, outcome: Outcome, prediction_ms: int, resolved_ms: int) -> None:
        """Take in an outcome resolved at this record time."""
        sequence = self._sequence
        self._sequence = sequence + 1
        end_ms = resolved_ms + self._window_ms
        heappush(self._held, (prediction_ms, sequence, outcome))
        heappush(self._windows, (end_ms, prediction_ms, sequence))
        if self._fresh is not None:
            self._fresh[prediction_ms, sequence] = (end_ms, outcome)
        if outcome.assumed:
            self.assumed += 1

    def _take(self) -> Outcome:
        prediction_ms, sequence, outcome = heappop(self._held)
        if self._fresh is not None and self._fresh.pop((prediction_ms, sequence), None) is None:
            self._gone.append((prediction_ms, sequence))
        if outcome.assumed:
            self.assumed -= 1
        return outcome

    def overflow(self) -> list[Outcome]:
        """Remove and return the outcomes beyond the maximum, oldest prediction first."""
        released: list[Outcome] = []
        while len(self._held) > self._maximum:
            self._bound = max(self._bound, self._held[0][:2])
            released.append(self._take())
        if len(self._windows) > 2 * len(self._held) + 1024:
            self._windows = self._open_windows()
        return released

    def release(self, clock_ms: int) -> list[Outcome]:
        """Remove and return the outcomes whose turn it is at the clock, in order."""
        windows, held = self._windows, self._held
        bound = self._bound
        while windows and windows[0][0] <= clock_ms:
            bound = max(bound, heappop(windows)[1:])
        self._bound = bound
        released: list[Outcome] = []
        while held and held[0][:2] <= bound:
            released.append(self._take())
        return released

    def release_all(self) -> list[Outcome]:
        """Remove and return all outcomes, in order."""
        released: list[Outcome] = []
        while self._held:
            self._bound = max(self._bound, self._held[0][:2])
            released.append(self._take())
        self._windows = []
        return released

    def _open_windows(self) -> list[tuple[int, int, int]]:
        return sorted(window for window in self._windows if window[1:] > self._bound)

    def changes(self) -> dict[bytes, bytes | None]:
        """Outcomes held since the last call and still held, and None for those held before it that left.

        Changes are tracked from the first call on; keys sort like predictions.
        """
        fresh, gone = self._fresh, self._gone
        self._fresh, self._gone = {}, []
        changes: dict[bytes, bytes | None] = {_key_of(*place): None for place in gone}
        for place, held in (fresh or {}).items():
            changes[_key_of(*place)] = _ENCODER.encode(held)
        return changes

    def take_back(self, held: Mapping[bytes, bytes]) -> None:
        """Hold again, after `restore` of a state without them, what all `changes` so far left, in order."""
        self._fresh, self._gone = {}, []
        windows: list[tuple[int, int, int]] = []
        for key, value in held.items():
            shifted_ms, sequence = _KEY.unpack(key)
            end_ms, outcome = _DECODER.decode(value)
            self._held.append((shifted_ms - _SHIFT, sequence, outcome))
            windows.append((end_ms, shifted_ms - _SHIFT, sequence))
            self.assumed += outcome.assumed
        self._windows = windows
        self._windows = self._open_windows()

    def state(self, *, held: bool = True) -> OrderState:
        """State that `restore` continues from."""
        if not held:
            return OrderState([], [], self._bound, self._sequence)
        return OrderState(sorted(self._held, key=_key), self._open_windows(), self._bound, self._sequence)

    def restore(self, state: OrderState) -> None:
        """Continue from a `state`."""
        self._held = list(state.held)
        self._windows = list(state.windows)
        self._bound = state.bound
        self._sequence = state.sequence
        self.assumed = sum(outcome.assumed for _, _, outcome in state.held)


def _key_of(prediction_ms: int, sequence: int) -> bytes:
    return _KEY.pack(prediction_ms + _SHIFT, sequence)


def _key(held: tuple[int, int, Outcome]) -> tuple[int, int]:
    return held[:2]
