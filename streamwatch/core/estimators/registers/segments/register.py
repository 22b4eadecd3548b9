"""The register of segments: a table of estimators of its own, a row for each value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.rows import TableFull
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.measures.catalogue import MEASURES
from streamwatch.core.estimators.measures.measures import accuracy
from streamwatch.core.estimators.names import Batch, Classes
from streamwatch.core.estimators.registers.segments import SegmentsSpec, table_spec
from streamwatch.core.estimators.registers.segments.change import SegmentChange, extra_errors, named_change
from streamwatch.core.estimators.registers.segments.values import EPOCH, OTHER, SegmentValues, Value
from streamwatch.core.estimators.samples import Sample, Slice
from streamwatch.core.events import ErrorChange
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.specs import UtilitySpec

_LANDMARK, _FADED, _LATE = range(3)
"""Mechanisms of the table, in the order of `table_spec`."""
_VERSION: Final = 1
_SHOWN: Final = 20
"""Values of a segment in the details of a model, those with the most traffic."""


class _Said(NamedTuple):
    """Estimates of a segment's values; arrays of shape (n,)."""

    values: Sequence[str]
    outcomes: NDArray[np.int64]
    weights: NDArray[np.float64]
    before: NDArray[np.float64]
    now: NDArray[np.float64]
    shares: NDArray[np.float64]
    measured: Mapping[str, NDArray[np.float64]]


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


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(list[_KeptSegment])


class Segments:
    """Estimates by segment of up to `capacity` models."""

    def __init__(self, spec: SegmentsSpec, capacity: int) -> None:
        known = {measure.name: measure for measure in MEASURES}
        self._spec = spec
        self._measures = [known[name] for name in spec.measures]
        self._table = ModelTable(table_spec(spec, capacity))
        self._models: dict[int, dict[str, SegmentValues]] = {}
        self.section = f"segments(alpha={spec.alpha!r},max_values={spec.max_values}) v{_VERSION}"
        self.title = f"segments, fading:{spec.alpha!r}"

    def observe(self, batch: Batch) -> None:
        """Evaluate outcomes by the segments of their predictions, in order."""
        outcomes = batch.outcomes
        if isinstance(outcomes, OutcomeBatch):
            found = outcomes.segment_values()
            if found is None:
                return
        else:
            found = [outcome.segments for outcome in outcomes]
        rows: list[int] = []
        positions: list[int] = []
        alpha, kept = self._spec.alpha, self._models
        model = -1
        segments: dict[str, SegmentValues] = {}
        for position, (row, given) in enumerate(zip(batch.rows.tolist(), found, strict=True)):
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
                if segment.counted % EPOCH == 0:
                    self._fold(batch, rows, positions)
                    rows, positions = [], []
                    segment.judge()
        self._fold(batch, rows, positions)

    def _segment(self) -> SegmentValues:
        return SegmentValues(self._spec.max_values, self._claim, self._table.retire)

    def _claim(self) -> int:
        return self._table.add_model(UtilitySpec())

    def _fold(self, batch: Batch, rows: Sequence[int], positions: Sequence[int]) -> None:
        if not rows:
            return
        at = np.array(positions, np.int64)
        self._table.fold(
            np.array(rows, np.int32),
            batch.true_class[at],
            batch.predicted_class[at],
            batch.label_at_prediction[at],
            event_ms=batch.event_ms[at],
        )

    def clear(self, row: int) -> None:
        """Forget a row, before it is used and after its model has retired."""
        for segment in self._models.pop(row, {}).values():
            for value in segment.values.values():
                self._table.retire(value.row)

    def snapshot(self, row: int) -> bytes:
        """Values of every segment with their estimates, by name."""
        return _ENCODER.encode(
            [
                _KeptSegment(
                    name,
                    segment.counted,
                    sorted(segment.candidates.items()),
                    [
                        _KeptValue(value, v.outcomes, v.in_epoch, v.weight, v.at, self._table.snapshot(v.row))
                        for value, v in sorted(segment.values.items())
                    ],
                    segment.left_out,
                )
                for name, segment in sorted(self._models.get(row, {}).items())
            ]
        )

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot.

        Raises
        ------
        ValueError
            For bytes that are none.
        """
        found: dict[str, SegmentValues] = {}
        for kept in _DECODER.decode(state):
            segment = found[kept.name] = self._segment()
            segment.counted, segment.candidates = kept.counted, dict(kept.candidates)
            segment.left_out = kept.left_out
            for value in kept.values:
                claimed = self._claim()
                self._table.restore(claimed, value.sections)
                segment.values[value.name] = Value(
                    claimed, value.outcomes, value.in_epoch, value.weight, value.at
                )
        if found:
            self._models[row] = found

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """Measures of every value with estimates of its own, and of the others together."""
        samples: dict[str, list[Sample]] = {"segment_outcomes_total": [], "segment_extra_errors_ratio": []}
        samples["segment_outcomes_left_out_total"] = []
        for measure in self._measures:
            samples[f"segment_{measure.name}"] = []
        for one in chosen:
            for name, segment in sorted(self._models.get(one.row, {}).items()):
                if segment.left_out:
                    sample = (one.model, name), float(segment.left_out)
                    samples["segment_outcomes_left_out_total"].append(sample)
                said = self._said(segment)
                columns = {f"segment_{measure}": values for measure, values in said.measured.items()}
                columns["segment_outcomes_total"] = said.outcomes.astype(np.float64)
                columns["segment_extra_errors_ratio"] = said.shares
                for metric, values in columns.items():
                    samples[metric] += [
                        ((one.model, name, value), number)
                        for value, number in zip(said.values, values.tolist(), strict=True)
                        if math.isfinite(number)
                    ]
        return samples

    def details(self, row: int, classes: Classes) -> Mapping[str, object]:
        """Values of each segment with the most traffic, the busiest first."""
        del classes
        found: dict[str, object] = {}
        for name, segment in sorted(self._models.get(row, {}).items()):
            said = self._said(segment)
            order = np.lexsort((np.arange(len(said.values)), -said.weights))[:_SHOWN].tolist()
            found[name] = {
                "outcomes": segment.counted,
                "values": [self._document(said, k) for k in order],
                "values_left_out": max(0, len(said.values) - _SHOWN),
            }
        return {"segments": found} if found else {}

    def change_at(self, batch: Batch, position: int) -> ErrorChange | None:
        """Nothing: when predictions were made is not known here."""
        del batch, position

    def only_quick_labels(self, age_ms: int) -> bool:
        """Tell nothing of the age of labels: False."""
        del age_ms
        return False

    def change_of(self, row: int) -> SegmentChange | None:
        """Find the value of a segment in which most of a changed error sits; None where none stands out."""
        found: list[SegmentChange] = []
        for name, segment in sorted(self._models.get(row, {}).items()):
            said = self._said(segment)
            change = named_change(name, said.values, said.weights, said.shares, said.before, said.now)
            if change is not None and change.value != OTHER:
                found.append(change)
        return max(found, key=lambda change: change.share, default=None)

    def _said(self, segment: SegmentValues) -> _Said:
        """Read the estimates of a segment's values, in the order of their names."""
        names = sorted(segment.values)
        kept = [segment.values[name] for name in names]
        rows = np.array([value.row for value in kept], np.int64)
        weights = np.array([segment.share_of_traffic(value, self._spec.alpha) for value in kept])
        outcomes = np.array([value.outcomes for value in kept], np.int64)
        before = 1.0 - accuracy(self._table.totals(rows, _LANDMARK))
        now = 1.0 - accuracy(self._table.totals(rows, _LATE))
        faded = self._table.totals(rows, _FADED)
        return _Said(
            names,
            outcomes,
            weights,
            before,
            now,
            extra_errors(weights, outcomes, before, now),
            {measure.name: measure.of(faded) for measure in self._measures},
        )

    @staticmethod
    def _document(said: _Said, k: int) -> dict[str, object]:
        """One value as the API gives it; what is undefined is left out."""
        numbers = {name: float(values[k]) for name, values in said.measured.items()}
        numbers |= {
            "traffic_ratio": float(said.weights[k] / said.weights.sum()),
            "error_before_ratio": float(said.before[k]),
            "error_now_ratio": float(said.now[k]),
            "extra_errors_ratio": float(said.shares[k]),
        }
        return {
            "value": said.values[k],
            "outcomes": int(said.outcomes[k]),
            **{name: number for name, number in numbers.items() if math.isfinite(number)},
        }
