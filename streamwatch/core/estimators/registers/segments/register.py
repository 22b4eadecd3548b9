"""Register of segments, with a table of estimators that has a row for each value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.measures.measures import accuracy
from streamwatch.core.estimators.names import Batch, Details, Slice
from streamwatch.core.estimators.registers.segments import (
    AVAILABLE,
    SegmentChange,
    SegmentEstimates,
    SegmentsSpec,
    extra_errors,
    named_change,
    table_spec,
    with_previous_of_stream,
)
from streamwatch.core.estimators.registers.segments import observe as loop
from streamwatch.core.estimators.registers.segments.observe import CANDIDATES, NONE, exchanged
from streamwatch.core.estimators.registers.segments.state import Given, SegmentState
from streamwatch.core.metrics.series import Sample
from streamwatch.core.ranges import LARGEST, require
from streamwatch.core.records.events import OTHER, SEPARATOR, ErrorChange, Name
from streamwatch.core.specs import UtilitySpec

# Snapshot of a model's segments, ordered by name, each with its values, and of its latest label.


class KeptValue(msgspec.Struct, frozen=True, array_like=True):
    """State of a value with estimates of its own; see `state.VALUE`."""

    name: Name
    outcomes: int
    in_epoch: int
    weight: float
    at: int
    sections: dict[Name, bytes]
    """Sections of its estimates, as `ModelTable.snapshot` encodes them."""


class KeptSegment(msgspec.Struct, frozen=True, array_like=True):
    """State of a segment; see `state.SEGMENT`. Candidates and values are ordered by name."""

    name: Name
    counted: int
    candidates: list[tuple[Name, int]]
    values: list[KeptValue]
    left_out: int = 0


class KeptSegments(msgspec.Struct, frozen=True, array_like=True):
    """State of a model; `segments` are ordered by name."""

    last: int
    """Local class index of the model's latest label, which the next outcome of any value follows; or NONE."""
    segments: list[KeptSegment]


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(KeptSegments)
_NAME: Final = "segments"


def encode(kept: KeptSegments) -> bytes:
    """Encode the segments of a model."""
    return _ENCODER.encode(kept)


def decode(state: bytes, max_classes: int) -> KeptSegments:
    """Decode the result of `encode`.

    Raises
    ------
    ValueError
        If the bytes cannot be such a result.
    """
    found = _DECODER.decode(state)
    if not NONE <= found.last <= max_classes:
        raise ValueError(
            f"expected a class index up to {max_classes}, got {found.last} in the snapshot of a model"
        )
    for segment in found.segments:
        require(_NAME, "outcomes", segment.counted, 0, LARGEST)
        require(_NAME, "outcomes left out", segment.left_out, 0, LARGEST)
        for value in segment.values:
            require(_NAME, "outcomes of a value", value.outcomes, 0, LARGEST)
            require(_NAME, "outcomes of a value in an epoch", value.in_epoch, 0, LARGEST)
            require(_NAME, "last outcome of a value", value.at, 0, segment.counted)
        for _, count in segment.candidates:
            require(_NAME, "outcomes of a value without estimates", count, 0, LARGEST)
        if len(segment.candidates) > CANDIDATES:
            raise ValueError(
                f"expected at most {CANDIDATES} values of segment {segment.name!r} without estimates of "
                f"their own, got {len(segment.candidates)} in the snapshot of a model"
            )
    return found


_LANDMARK, _FADED, _LATE = range(3)
"""Mechanisms of the table, in the order of `table_spec`."""
_VERSION: Final = 2
_UNKNOWN, _WHOLE, _FOLD = range(3)
"""Kinds of a row's model: not known yet, one that sees its whole stream, or a fold that does not."""
_SHOWN: Final = 20
"""Number of values of a segment in the details of a model: those with the most traffic."""


class Segments:
    """Estimates by segment of up to `capacity` models."""

    def __init__(self, spec: SegmentsSpec, capacity: int) -> None:
        known = {measure.name: measure for measure in AVAILABLE}
        self._spec = spec
        self._measures = [known[name] for name in spec.measures]
        self._table = ModelTable(table_spec(spec))
        self._state = SegmentState(capacity, spec.names)
        self._kinds = np.full(capacity, _UNKNOWN, np.int8)
        """Kinds of rows; read only where folds share a stream."""
        self.section = f"segments(alpha={spec.alpha!r},max_values={spec.max_values}) v{_VERSION}"
        self.title = f"segments, fading:{spec.alpha!r}"

    def observe(self, batch: Batch) -> None:
        """Evaluate outcomes by the segments of their predictions, in order."""
        self._state.release_values()
        given = self._state.numbers.of(batch.outcomes)
        if given is None:
            self._state.last[batch.rows] = batch.true_class  # of several labels of a row, the last one stays
            return
        if self._spec.folds_share_stream:
            self._learn_kinds(batch)
        total = int(given.lengths.sum())
        found = loop.FoundRows(
            np.empty(total, np.int32), np.empty(total, np.int64), np.empty(total, np.int32)
        )
        cursor = np.zeros(3, np.int64)
        while True:
            limits = loop.Limits(self._spec.alpha, self._spec.max_values, self._table.rows.room > 0)
            reason = self._state.observe(batch.rows, batch.true_class, given, limits, cursor, found)
            if reason in (loop.DONE, loop.EPOCH_ENDED):
                self._fold(batch, found, int(cursor[loop.WRITTEN]))
                cursor[loop.WRITTEN] = 0
            if reason == loop.DONE:
                return
            self._resolve(reason, batch, given, cursor)

    def _resolve(self, reason: int, batch: Batch, given: Given, cursor: NDArray[np.int64]) -> None:
        """Provide what the loop is missing, by the reason for which it returned."""
        state = self._state
        model = int(batch.rows[cursor[loop.OUTCOME]])
        which = given.starts[cursor[loop.OUTCOME]] + cursor[loop.ENTRY]
        if reason == loop.EPOCH_ENDED:
            self._exchange(state.number_of(model, int(given.names[which - 1])))
            return
        name, value = int(given.names[which]), int(given.values[which])
        if reason == loop.NEW_SEGMENT:
            state.add_segment(model, name)
            return
        number = state.number_of(model, name)
        if reason == loop.NEW_VALUE:
            text = state.numbers.text(value)
            candidates = state.candidates(number)
            if candidates.pop(text, None) is not None:  # counted there while there was no room
                state.set_candidates(number, candidates)
            state.enter(number, text, self._claim())
        elif reason == loop.NEW_OTHERS:
            if value == loop.OTHERS:  # like other values, it is counted as a candidate until it has a row
                candidates = state.candidates(number)
                if OTHER in candidates or len(candidates) < CANDIDATES:
                    state.set_candidates(number, {**candidates, OTHER: candidates.get(OTHER, 0) + 1})
            state.enter(number, OTHER, self._claim())
        elif reason == loop.NEW_CANDIDATES:
            state.reserve_candidates(number)
        else:
            state.make_room()

    def _exchange(self, number: int) -> None:
        """Replace rare values by frequent candidates, and start a new epoch.

        All outcomes so far must have been evaluated, since released rows are used again.
        """
        state = self._state
        own = {value: row for value, row in state.rows[number].items() if value != OTHER}
        in_epoch = dict(zip(own, state.values["in_epoch"][list(own.values())].tolist(), strict=True))
        exchanges = exchanged(state.candidates(number), in_epoch)
        state.set_candidates(number, {})
        for newcomer, value in exchanges:
            self._table.retire(state.leave(number, value))
            state.enter(number, newcomer, self._claim())
        state.values["in_epoch"][list(state.rows[number].values())] = 0

    def _claim(self) -> int:
        return self._table.add_model(UtilitySpec())

    def _learn_kinds(self, batch: Batch) -> None:
        """Note which rows belong to folds that share a stream; a row has one model until it is cleared."""
        unknown = np.flatnonzero(self._kinds[batch.rows] == _UNKNOWN)
        rows, first = np.unique(batch.rows[unknown], return_index=True)
        for row, position in zip(rows.tolist(), unknown[first].tolist(), strict=True):
            self._kinds[row] = _FOLD if SEPARATOR in batch.outcomes[position].model else _WHOLE

    def _fold(self, batch: Batch, found: loop.FoundRows, written: int) -> None:
        """Evaluate `written` outcomes, with the stream's previous label in place of the one at prediction.

        The row of a value gets only that value's labels, so it cannot know the stream's previous one.
        Outcomes of folds that share a stream carry it as their label at prediction already.
        """
        if not written:
            return
        at, previous = found.positions[:written], found.previous[:written]
        if self._spec.folds_share_stream:
            of_folds = self._kinds[batch.rows[at]] == _FOLD
            previous = np.where(of_folds, batch.label_at_prediction[at], previous)
        self._table.fold(
            found.rows[:written],
            batch.true_class[at],
            batch.predicted_class[at],
            previous,
            event_ms=batch.event_ms[at],
        )

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        self._kinds[row] = _UNKNOWN
        for freed in self._state.remove(row):
            self._table.retire(freed)

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[bytes]:
        """Encode all segments of some models with their values and estimates, ordered by name."""
        return [self._snapshot(row) for row in rows.tolist()]

    def _snapshot(self, row: int) -> bytes:
        kept = [self._kept(name, number) for name, number in self._state.segments_of(row)]
        return encode(KeptSegments(int(self._state.last[row]), kept))

    def _kept(self, name: str, number: int) -> KeptSegment:
        state = self._state
        segment = state.segments[number]
        values: list[KeptValue] = []
        rows = sorted(state.rows[number].items())
        taken = self._table.snapshots(np.array([row for _, row in rows], np.int64))
        for (value, row), sections in zip(rows, taken, strict=True):
            counted: tuple[int, int, float, int] = state.values[row].item()
            values.append(KeptValue(value, *counted, sections))
        candidates = sorted(state.candidates(number).items())
        return KeptSegment(name, int(segment["counted"]), candidates, values, int(segment["left_out"]))

    def begin_after(self, row: int, label: int) -> None:
        """Begin empty in a cleared row of a model that has outcomes, whose last label is of this class."""
        self._state.last[row] = label

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; values for which there is no room are left out and counted.

        Segments that no mapping names any more are dropped.
        The row of `__other__` is restored first, as later outcomes of values without room count there.

        Raises
        ------
        ValueError
            If the bytes are not a snapshot.
        """
        decoded = decode(state, self._spec.max_classes)
        self._state.last[row] = decoded.last
        for kept in decoded.segments:
            if not self._state.numbers.counts(kept.name):
                continue
            number = self._state.add_segment(row, self._state.numbers.name_of(kept.name))
            segment = self._state.segments[number]
            segment["counted"], segment["left_out"] = kept.counted, kept.left_out
            for value in sorted(kept.values, key=lambda each: each.name != OTHER):
                if not self._table.rows.room:
                    segment["left_out"] += value.outcomes
                    continue
                claimed = self._claim()
                self._table.restore(claimed, value.sections)
                self._state.enter(number, value.name, claimed)
                self._state.values[claimed] = (value.outcomes, value.in_epoch, value.weight, value.at)
            self._state.set_candidates(number, dict(kept.candidates))

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """Measures of every value with estimates of its own, and of `__other__`."""
        samples: dict[str, list[Sample]] = {"segment_outcomes_total": [], "segment_extra_errors_ratio": []}
        samples["segment_outcomes_left_out_total"] = []
        for measure in self._measures:
            samples[f"segment_{measure.name}"] = []
        for one in chosen:
            for name, number in self._state.segments_of(one.row):
                left_out = float(self._state.segments[number]["left_out"])
                if left_out:
                    samples["segment_outcomes_left_out_total"].append(((one.model, name), left_out))
                of_values = self._estimates(number)
                columns = {f"segment_{measure}": values for measure, values in of_values.measured.items()}
                columns["segment_outcomes_total"] = of_values.outcomes.astype(np.float64)
                columns["segment_extra_errors_ratio"] = of_values.shares
                for metric, values in columns.items():
                    samples[metric] += [
                        ((one.model, name, value), estimate)
                        for value, estimate in zip(of_values.values, values.tolist(), strict=True)
                        if math.isfinite(estimate)
                    ]
        return samples

    def details(self, chosen: Sequence[Slice]) -> Details:
        """Values of each segment with the most traffic, the largest first."""
        return [self._details(one.row) for one in chosen].__getitem__

    def _details(self, row: int) -> Mapping[str, object]:
        found: dict[str, object] = {}
        for name, number in self._state.segments_of(row):
            of_values = self._estimates(number)
            order = np.lexsort((np.arange(len(of_values.values)), -of_values.weights))[:_SHOWN].tolist()
            found[name] = {
                "outcomes": int(self._state.segments[number]["counted"]),
                "values": [of_values.document(k) for k in order],
                "values_left_out": max(0, len(of_values.values) - _SHOWN),
            }
        return {"segments": found} if found else {}

    def changes_at(self, batch: Batch, positions: Sequence[int]) -> Sequence[ErrorChange | None]:
        """Return None for each, as this register does not know when predictions were made."""
        del batch
        return [None] * len(positions)

    def only_quick_labels(self, age_ms: int) -> bool:
        """Return False, as this register knows no horizon."""
        del age_ms
        return False

    def change_of(self, row: int) -> SegmentChange | None:
        """Find the segment value with most of the model's additional errors; None if none stands out."""
        found: list[SegmentChange] = []
        for name, number in self._state.segments_of(row):
            of_values = self._estimates(number)
            change = named_change(
                name, of_values.values, of_values.weights, of_values.shares, of_values.before, of_values.now
            )
            if change is not None and change.value != OTHER:
                found.append(change)
        return max(found, key=lambda change: change.share, default=None)

    def _estimates(self, number: int) -> SegmentEstimates:
        """Read the estimates of a segment's values, in the order of their names."""
        names = sorted(self._state.rows[number])
        rows = np.array([self._state.rows[number][name] for name in names], np.int64)
        kept = self._state.values[rows]
        ages = self._state.segments[number]["counted"] - kept["at"]
        alpha = self._spec.alpha
        # Powers computed as in the loop; numpy's may differ in the last bit.
        weights = kept["weight"] * np.array([alpha**age for age in ages.tolist()])
        outcomes = kept["outcomes"]
        before = 1.0 - accuracy(self._table.totals(rows, _LANDMARK))
        now = 1.0 - accuracy(self._table.totals(rows, _LATE))
        faded = with_previous_of_stream(self._table.totals(rows, _FADED))
        return SegmentEstimates(
            names,
            outcomes,
            weights,
            before,
            now,
            extra_errors(weights, outcomes, before, now),
            {measure.name: measure.of(faded) for measure in self._measures},
        )
