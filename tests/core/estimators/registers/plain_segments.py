"""Segments one outcome at a time, in objects: what the compiled register must equal to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.table import ModelTable, TableFull
from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.segments import SegmentsSpec, table_spec
from streamwatch.core.records.outcomes import OutcomeBatch
from streamwatch.core.specs import UtilitySpec

OTHER: Final = "__other__"
EPOCH: Final = 10_000
CANDIDATES: Final = 1_000
_OUTWEIGHS: Final = 2


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

    The first `most` values have estimates of their own, as long as the table has room; without any, a value
    is one of the others if these have a row. Every `EPOCH` outcomes, the value without estimates
    that had the most outcomes since the last time replaces the one with the fewest, if it had more
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
            try:
                entered = self._enter(value)
            except TableFull:
                if OTHER not in self.values:
                    raise
            else:
                self.candidates.pop(value, None)
                return entered
        if value in self.candidates or len(self.candidates) < CANDIDATES:
            self.candidates[value] = self.candidates.get(value, 0) + 1
        return self.values.get(OTHER) or self._enter(OTHER)

    def _enter(self, value: str) -> Value:
        entered = self.values[value] = Value(self._claim(), at=self.counted)
        return entered

    def judge(self) -> None:
        """Replace rare values by frequent ones, and begin a new epoch.

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


class _KeptValue(msgspec.Struct, frozen=True, array_like=True):
    name: str
    outcomes: int
    in_epoch: int
    weight: float
    at: int
    sections: dict[str, bytes]


class _KeptSegment(msgspec.Struct, frozen=True, array_like=True):
    name: str
    counted: int
    candidates: list[tuple[str, int]]
    values: list[_KeptValue]
    left_out: int = 0


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    last: int
    segments: list[_KeptSegment]


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(_Kept)


class PlainSegments:
    """Estimates by segment of models in rows."""

    def __init__(self, spec: SegmentsSpec) -> None:
        self._spec = spec
        self._table = ModelTable(table_spec(spec))
        self._models: dict[int, dict[str, SegmentValues]] = {}
        self._last: dict[int, int] = {}
        """Class of each model's latest label, whichever outcome it belonged to."""

    def observe(self, batch: Batch) -> None:
        """Evaluate outcomes by the segments of their predictions, in order."""
        outcomes = batch.outcomes
        if isinstance(outcomes, OutcomeBatch):
            found = outcomes.segment_values() or [None] * len(outcomes)
        else:
            found = [outcome.segments for outcome in outcomes]
        rows: list[int] = []
        positions: list[int] = []
        previous: list[int] = []
        alpha, kept = self._spec.alpha, self._models
        model = -1
        segments: dict[str, SegmentValues] = {}
        for position, (row, given) in enumerate(zip(batch.rows.tolist(), found, strict=True)):
            before = self._last.get(row, -1)
            self._last[row] = int(batch.true_class[position])
            if given is None:
                continue
            if row != model:
                model, segments = row, kept.setdefault(row, {})
            for name, value in given.items():
                segment = segments.get(name)
                if segment is None:
                    segment = segments[name] = self._segment()
                try:
                    rows.append(segment.row_of(value, alpha))
                except TableFull:
                    segment.left_out += 1
                    continue
                positions.append(position)
                previous.append(before)
                if segment.counted % EPOCH == 0:
                    self._fold(batch, rows, positions, previous)
                    rows, positions, previous = [], [], []
                    segment.judge()
        self._fold(batch, rows, positions, previous)

    def _segment(self) -> SegmentValues:
        return SegmentValues(self._spec.max_values, self._claim, self._table.retire)

    def _claim(self) -> int:
        return self._table.add_model(UtilitySpec())

    def _fold(
        self, batch: Batch, rows: Sequence[int], positions: Sequence[int], previous: Sequence[int]
    ) -> None:
        if not rows:
            return
        at = np.array(positions, np.int64)
        self._table.fold(
            np.array(rows, np.int32),
            batch.true_class[at],
            batch.predicted_class[at],
            np.array(previous, np.int32),
            event_ms=batch.event_ms[at],
        )

    def clear(self, row: int) -> None:
        """Forget a row, before it is used and after its model has retired."""
        self._last.pop(row, None)
        for segment in self._models.pop(row, {}).values():
            for value in segment.values.values():
                self._table.retire(value.row)

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[bytes]:
        """Values of every segment of some rows with their estimates, by name."""
        return [self._snapshot(row) for row in rows.tolist()]

    def _snapshot(self, row: int) -> bytes:
        return _ENCODER.encode(
            _Kept(
                self._last.get(row, -1),
                [
                    _KeptSegment(
                        name,
                        segment.counted,
                        sorted(segment.candidates.items()),
                        [
                            _KeptValue(
                                value, v.outcomes, v.in_epoch, v.weight, v.at, self._table.snapshot(v.row)
                            )
                            for value, v in sorted(segment.values.items())
                        ],
                        segment.left_out,
                    )
                    for name, segment in sorted(self._models.get(row, {}).items())
                ],
            )
        )

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; outcomes of values without room are left out.

        Raises
        ------
        ValueError
            For bytes that are none.
        """
        found: dict[str, SegmentValues] = {}
        decoded = _DECODER.decode(state)
        if decoded.last >= 0:
            self._last[row] = decoded.last
        for kept in decoded.segments:
            segment = found[kept.name] = self._segment()
            segment.counted, segment.candidates = kept.counted, dict(kept.candidates)
            segment.left_out = kept.left_out
            for value in sorted(kept.values, key=lambda each: each.name != OTHER):
                try:
                    claimed = self._claim()
                except TableFull:
                    segment.left_out += value.outcomes
                    continue
                self._table.restore(claimed, value.sections)
                segment.values[value.name] = Value(
                    claimed, value.outcomes, value.in_epoch, value.weight, value.at
                )
        if found:
            self._models[row] = found
