"""Outcomes of one model bucket in the order of predictions: `OrderBuffer`, with the windows of all buckets.

An outcome goes when the window of any outcome whose prediction is not older is over, whatever model it is of.
So every id bucket says of every time which was the newest of the predictions resolved then.
"""

from __future__ import annotations

from heapq import heappop, heappush

import msgspec

from streamwatch.core.buckets.parts import Windows
from streamwatch.core.buckets.places import Place
from streamwatch.core.events import Outcome


class HeldOutcome(msgspec.Struct, array_like=True, frozen=True, gc=False, order=True):
    """An outcome, its prediction's own time, and the place where it was resolved."""

    own_ms: int
    resolved: Place
    outcome: Outcome


class OrderState(msgspec.Struct, array_like=True, frozen=True):
    """State of the order, sorted."""

    held: list[HeldOutcome]
    windows: list[tuple[int, int, Place]]
    bound: tuple[int, Place]


class PredictionOrder:
    """Holds outcomes until their turn has come.

    Parameters
    ----------
    window_ms
        As `join.reorder_window`.
    maximum
        Outcomes held at most; beyond it the oldest predictions leave at once.
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
        """Note a window; it ends `window_ms` after the time of its place."""
        heappush(self._windows, (window.place[0] + self._window_ms, window.own_ms, window.resolved))

    def hold(self, own_ms: int, resolved: Place, outcome: Outcome) -> list[Outcome]:
        """Take in an outcome; those that leave because there are too many."""
        heappush(self._held, (own_ms, resolved, outcome))
        released: list[Outcome] = []
        while len(self._held) > self._maximum:
            self._bound = max(self._bound, self._held[0][:2])
            released.append(heappop(self._held)[2])
        return released

    def release(self, clock_ms: int) -> list[Outcome]:
        """Take out what the clock allows, in order."""
        while self._windows and self._windows[0][0] <= clock_ms:
            self._bound = max(self._bound, heappop(self._windows)[1:])
        released: list[Outcome] = []
        while self._held and self._held[0][:2] <= self._bound:
            released.append(heappop(self._held)[2])
        return released

    def release_all(self) -> list[Outcome]:
        """Take out everything, in order."""
        released: list[Outcome] = []
        while self._held:
            self._bound = max(self._bound, self._held[0][:2])
            released.append(heappop(self._held)[2])
        self._windows = []
        return released

    def state(self) -> OrderState:
        """State that `restore` continues from."""
        held = [HeldOutcome(*each) for each in sorted(self._held, key=lambda each: each[:2])]
        return OrderState(held, sorted(w for w in self._windows if w[1:] > self._bound), self._bound)

    def restore(self, state: OrderState) -> None:
        """Continue from a `state`."""
        self._held = [(each.own_ms, each.resolved, each.outcome) for each in state.held]
        self._windows = list(state.windows)
        self._bound = state.bound
