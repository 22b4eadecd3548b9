"""Which values of a segment have estimates of their own, decided by their traffic alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

OTHER: Final = "__other__"
"""All values without estimates of their own, together."""
EPOCH: Final = 10_000
"""Outcomes of a segment after which `judge` is to be called."""
CANDIDATES: Final = 1_000
"""Values without estimates that are counted within an epoch; later ones wait for the next."""
_OUTWEIGHS: Final = 2
"""A value takes the place of another if it had more than so many times its outcomes within an epoch."""


class Value(msgspec.Struct, gc=False):
    """A value with estimates of its own."""

    row: int
    """Its row in the register's table; another one after a restart."""
    outcomes: int = 0
    in_epoch: int = 0
    weight: float = 0.0
    """Faded share of the segment's traffic, in outcomes, as of `at`."""
    at: int = 0
    """1-based index, among the segment's outcomes of the model, of its last one."""


class SegmentValues:
    """Values of one segment of one model.

    The first `most` values have estimates of their own. Every `EPOCH` outcomes, the value without estimates
    that had the most outcomes since the last time takes the place of the one with the fewest, if it had more
    than twice as many, and so on with the next; what is forgotten so begins anew should it return. `claim`
    gives a row of the table (or raises TableFull), `release` takes one back.
    """

    __slots__ = ("_claim", "_most", "_release", "candidates", "counted", "left_out", "values")

    def __init__(self, most: int, claim: Callable[[], int], release: Callable[[int], None]) -> None:
        self._most = most
        self._claim = claim
        self._release = release
        self.values: dict[str, Value] = {}
        """By value, `OTHER` among them once it is needed."""
        self.candidates: dict[str, int] = {}
        """Outcomes in this epoch of values without estimates of their own."""
        self.counted = 0
        """Outcomes of the segment."""
        self.left_out = 0
        """Outcomes that count in no value, not even in `OTHER`, because the table had no row left."""

    def row_of(self, value: str, alpha: float) -> int:
        """Count an outcome of a value; the row that it counts in."""
        found = self.values.get(value)
        if found is None:
            found = self._new(value)
        self.counted += 1
        at = self.counted
        found.weight = found.weight * alpha ** (at - found.at) + 1.0
        found.at = at
        found.outcomes += 1
        found.in_epoch += 1
        return found.row

    def share_of_traffic(self, value: Value, alpha: float) -> float:
        """Faded outcomes of a value as of the segment's last outcome."""
        return value.weight * alpha ** (self.counted - value.at)

    def _new(self, value: str) -> Value:
        if value != OTHER and len(self.values) - (OTHER in self.values) < self._most:
            return self._enter(value)
        if value in self.candidates or len(self.candidates) < CANDIDATES:
            self.candidates[value] = self.candidates.get(value, 0) + 1
        return self.values.get(OTHER) or self._enter(OTHER)

    def _enter(self, value: str) -> Value:
        entered = self.values[value] = Value(self._claim(), at=self.counted)
        return entered

    def judge(self) -> None:
        """Let frequent values take the places of rare ones, and begin a new epoch.

        All outcomes so far must have been evaluated: rows that are released are used again.
        """
        self.candidates.pop(OTHER, None)
        coming = sorted(self.candidates.items(), key=lambda each: (-each[1], each[0]))
        own = ((name, value) for name, value in self.values.items() if name != OTHER)
        going = sorted(own, key=lambda each: (each[1].in_epoch, each[0]))
        for (newcomer, outcomes), (name, value) in zip(coming, going, strict=False):
            if outcomes <= _OUTWEIGHS * value.in_epoch:
                break
            del self.values[name]
            self._release(value.row)
            self._enter(newcomer)
        self.candidates = {}
        for value in self.values.values():
            value.in_epoch = 0
