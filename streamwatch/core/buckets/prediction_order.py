"""Order of predictions in one model bucket: `OrderBuffer` with the windows of all buckets.

An outcome is released when the window of any outcome, of any model, with a prediction at least as new is
over. So every id bucket sends, for every time, the newest of the predictions resolved then.
"""

from __future__ import annotations

from heapq import heappop, heappush

import msgspec

from streamwatch.core.buckets.parts import Windows
from streamwatch.core.buckets.places import Place
from streamwatch.core.events import Outcome


class HeldOutcome(msgspec.Struct, array_like=True, frozen=True, gc=False, order=True):
    """Outcome, its prediction's own time, and the place of its resolution."""

    own_ms: int
    resolved: Place
    outcome: Outcome


class OrderState(msgspec.Struct, array_like=True, frozen=True):
    """State of the order, sorted."""

    held: list[HeldOutcome]
    windows: list[tuple[int, int, Place]]
    bound: tuple[int, Place]


class PredictionOrder:
    """Holds outcomes until they are released in the order of predictions.

    Parameters
    ----------
    window_ms
        `join.reorder_window` in milliseconds.
    maximum
        Largest number of outcomes held; beyond it those of the oldest predictions are released at once.
    """

    def __init__(self, window_ms: int, maximum: int) -> None:
        self._window_ms = window_ms
        self._maximum = maximum
        self._held: list[tuple[int, Place, Outcome]] = []
        self._windows: list[tuple[int, int, Place]] = []
        self._bound: tuple[int, Place] = (-1, ())

    def __len__(self) -> int:
        return len(self._held)

    def open_window(self, window: Windows) -> None:
        """Add a window, which ends `window_ms` after the time of its place."""
        heappush(self._windows, (window.place[0] + self._window_ms, window.own_ms, window.resolved))

    def hold(self, own_ms: int, resolved: Place, outcome: Outcome) -> list[Outcome]:
        """Hold an outcome, and return those released because there are too many."""
        heappush(self._held, (own_ms, resolved, outcome))
        released: list[Outcome] = []
        while len(self._held) > self._maximum:
            self._bound = max(self._bound, self._held[0][:2])
            released.append(heappop(self._held)[2])
        return released

    def release(self, clock_ms: int) -> list[Outcome]:
        """Remove and return what may be released at this time, in order."""
        while self._windows and self._windows[0][0] <= clock_ms:
            self._bound = max(self._bound, heappop(self._windows)[1:])
        released: list[Outcome] = []
        while self._held and self._held[0][:2] <= self._bound:
            released.append(heappop(self._held)[2])
        return released

    def release_all(self) -> list[Outcome]:
        """Remove and return everything, in order."""
        released: list[Outcome] = []
        while self._held:
            self._bound = max(self._bound, self._held[0][:2])
            released.append(heappop(self._held)[2])
        self._windows = []
        return released

    def state(self) -> OrderState:
        """State from which `restore` continues."""
        held = [HeldOutcome(*each) for each in sorted(self._held, key=lambda each: each[:2])]
        return OrderState(held, sorted(w for w in self._windows if w[1:] > self._bound), self._bound)

    def restore(self, state: OrderState) -> None:
        """Continue from a state."""
        self._held = [(each.own_ms, each.resolved, each.outcome) for each in state.held]
        self._windows = list(state.windows)
        self._bound = state.bound
