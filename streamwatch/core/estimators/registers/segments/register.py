"""Register of segments, with a table of estimators that has a row for each value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.measures.catalogue import MEASURES
from streamwatch.core.estimators.measures.measures import accuracy
from streamwatch.core.estimators.names import Batch, Classes
from streamwatch.core.estimators.registers.segments import SegmentsSpec, table_spec
from streamwatch.core.estimators.registers.segments import observe as loop
from streamwatch.core.estimators.registers.segments.change import SegmentChange, extra_errors, named_change
from streamwatch.core.estimators.registers.segments.estimates import SegmentEstimates
from streamwatch.core.estimators.registers.segments.numbers import Given
from streamwatch.core.estimators.registers.segments.snapshot import KeptSegment, KeptValue, decode, encode
from streamwatch.core.estimators.registers.segments.state import SegmentState
from streamwatch.core.estimators.registers.segments.values import CANDIDATES, OTHER, exchanged
from streamwatch.core.estimators.samples import Slice
from streamwatch.core.events import ErrorChange
from streamwatch.core.series import Sample
from streamwatch.core.specs import UtilitySpec

_LANDMARK, _FADED, _LATE = range(3)
"""Mechanisms of the table, in the order of `table_spec`."""
_VERSION: Final = 1
_SHOWN: Final = 20
"""Number of values of a segment in the details of a model: those with the most traffic."""


class Segments:
    """Estimates by segment of up to `capacity` models."""

    def __init__(self, spec: SegmentsSpec, capacity: int) -> None:
        known = {measure.name: measure for measure in MEASURES}
        self._spec = spec
        self._measures = [known[name] for name in spec.measures]
        self._table = ModelTable(table_spec(spec))
        self._state = SegmentState(capacity)
        self.section = f"segments(alpha={spec.alpha!r},max_values={spec.max_values}) v{_VERSION}"
        self.title = f"segments, fading:{spec.alpha!r}"

    def observe(self, batch: Batch) -> None:
        """Evaluate outcomes by the segments of their predictions, in order."""
        self._state.release_values()
        given = self._state.numbers.of(batch.outcomes)
        if given is None:
            return
        total = int(given.lengths.sum())
        rows, positions = np.empty(total, np.int32), np.empty(total, np.int64)
        cursor = np.zeros(3, np.int64)
        limits = self._spec.alpha, self._spec.max_values
        while True:
            room = self._table.room > 0
            reason = self._state.observe(batch.rows, given, limits, room, cursor, (rows, positions))
            if reason in (loop.DONE, loop.EPOCH_ENDED):
                placed = int(cursor[loop.PLACED])
                self._fold(batch, rows[:placed], positions[:placed])
                cursor[loop.PLACED] = 0
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

    def _fold(self, batch: Batch, rows: NDArray[np.int32], at: NDArray[np.int64]) -> None:
        if not len(rows):
            return
        self._table.fold(
            rows,
            batch.true_class[at],
            batch.predicted_class[at],
            batch.label_at_prediction[at],
            event_ms=batch.event_ms[at],
        )

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        for freed in self._state.remove(row):
            self._table.retire(freed)

    def snapshot(self, row: int) -> bytes:
        """Encode all segments of a model with their values and estimates, ordered by name."""
        return encode([self._kept(name, number) for name, number in self._state.segments_of(row)])

    def _kept(self, name: str, number: int) -> KeptSegment:
        state = self._state
        segment = state.segments[number]
        values: list[KeptValue] = []
        for value, row in sorted(state.rows[number].items()):
            counted: tuple[int, int, float, int] = state.values[row].item()
            values.append(KeptValue(value, *counted, self._table.snapshot(row)))
        candidates = sorted(state.candidates(number).items())
        return KeptSegment(name, int(segment["counted"]), candidates, values, int(segment["left_out"]))

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; values for which there is no room are left out and counted.

        The row of `__other__` is restored first, as later outcomes of values without room count there.

        Raises
        ------
        ValueError
            If the bytes are not a snapshot.
        """
        for kept in decode(state):
            number = self._state.add_segment(row, self._state.numbers.name_of(kept.name))
            segment = self._state.segments[number]
            segment["counted"], segment["left_out"] = kept.counted, kept.left_out
            for value in sorted(kept.values, key=lambda each: each.name != OTHER):
                if not self._table.room:
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
                said = self._said(number)
                columns = {f"segment_{measure}": values for measure, values in said.measured.items()}
                columns["segment_outcomes_total"] = said.outcomes.astype(np.float64)
                columns["segment_extra_errors_ratio"] = said.shares
                for metric, values in columns.items():
                    samples[metric] += [
                        ((one.model, name, value), estimate)
                        for value, estimate in zip(said.values, values.tolist(), strict=True)
                        if math.isfinite(estimate)
                    ]
        return samples

    def details(self, row: int, classes: Classes) -> Mapping[str, object]:
        """Values of each segment with the most traffic, the largest first."""
        del classes
        found: dict[str, object] = {}
        for name, number in self._state.segments_of(row):
            said = self._said(number)
            order = np.lexsort((np.arange(len(said.values)), -said.weights))[:_SHOWN].tolist()
            found[name] = {
                "outcomes": int(self._state.segments[number]["counted"]),
                "values": [said.document(k) for k in order],
                "values_left_out": max(0, len(said.values) - _SHOWN),
            }
        return {"segments": found} if found else {}

    def change_at(self, batch: Batch, position: int) -> ErrorChange | None:
        """Return None, as this register does not know when predictions were made."""
        del batch, position

    def only_quick_labels(self, age_ms: int) -> bool:
        """Return False, as this register knows no horizon."""
        del age_ms
        return False

    def change_of(self, row: int) -> SegmentChange | None:
        """Find the segment value with most of the model's additional errors; None if none stands out."""
        found: list[SegmentChange] = []
        for name, number in self._state.segments_of(row):
            said = self._said(number)
            change = named_change(name, said.values, said.weights, said.shares, said.before, said.now)
            if change is not None and change.value != OTHER:
                found.append(change)
        return max(found, key=lambda change: change.share, default=None)

    def _said(self, number: int) -> SegmentEstimates:
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
        faded = self._table.totals(rows, _FADED)
        return SegmentEstimates(
            names,
            outcomes,
            weights,
            before,
            now,
            extra_errors(weights, outcomes, before, now),
            {measure.name: measure.of(faded) for measure in self._measures},
        )
