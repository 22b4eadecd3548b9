"""Steps of a model bucket in columns, each at its place in the sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.columns.histories import ColumnHistories
from streamwatch.core.buckets.columns.id_join import PlacedOutcomes
from streamwatch.core.buckets.model_sequence import ModelSequence
from streamwatch.core.buckets.places import DUE, RECORD
from streamwatch.core.buckets.spec import BucketsSpec
from streamwatch.core.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch, joined_pairs
from streamwatch.core.words import joined

_SECOND_MS: Final = 1_000
_NOTHING: Final = OutcomeBatch(np.zeros(0, OUTCOME), (), (), {})


class ColumnSequence(ModelSequence):
    """A `ModelSequence` with outcomes in columns, none of which are held for their order.

    Parameters
    ----------
    number
        Number of the model bucket.
    spec
        Partitioning of the stream.
    """

    def __init__(self, number: int, spec: BucketsSpec) -> None:
        super().__init__(number, spec)
        self.kept_ms = spec.join.horizon_ms + 2 * _SECOND_MS
        """Time for which a prediction may be pending."""
        self.labels = ColumnHistories()
        """Label histories; used instead of `histories`."""
        self._clear()

    def _clear(self) -> None:
        self._outcomes, self._at = _NOTHING, 0
        self._accepted, self._resolved = np.zeros((0, 4), np.int64), np.zeros((0, 5), np.int64)

    def take(self, outcomes_of_buckets: Sequence[PlacedOutcomes]) -> None:
        """Take the outcomes of a batch; must be called before its steps."""
        self.labels.release_names()
        models: dict[str, int] = {}
        parts = [each for each in outcomes_of_buckets if len(each.outcomes)]
        self._clear()
        if not parts:
            return
        outcomes = self._together(parts, models)
        resolved = np.concatenate([each.resolved for each in parts])
        accepted = np.concatenate([each.accepted for each in parts])
        is_assumed = outcomes.records["assumed"] != 0
        kinds = np.where(is_assumed, DUE, RECORD)
        # Places are (deadline, DUE, place of the prediction) and (time, RECORD, rank, offset, event, number).
        within = np.where(is_assumed[:, None], accepted, resolved[:, 1:])
        order = np.lexsort((*within.T[::-1], kinds, resolved[:, 0]))
        self._outcomes = outcomes.only(order)
        self._resolved, self._accepted = resolved.take(order, axis=0), accepted.take(order, axis=0)

    def _together(self, parts: Sequence[PlacedOutcomes], models: dict[str, int]) -> OutcomeBatch:
        """Join all outcomes under common numbers; classes get those of the histories."""
        segments: dict[str, int] = {}
        scores: dict[int, dict[str, float]] = {}
        scored: dict[int, int] = {}
        for part in parts:
            outcomes, records = part.outcomes, part.outcomes.records
            classes = self.labels.numbers(outcomes.classes)
            records["true_class"] = classes[records["true_class"]]
            records["predicted_class"] = classes[records["predicted_class"]]
            model_numbers = [models.setdefault(name, len(models)) for name in outcomes.models]
            numbers_here = np.array(model_numbers, np.int32)
            records["model"] = numbers_here[records["model"]]
            if outcomes.pairs is not None:
                outcomes.pairs[:, 1] = numbers_here[outcomes.pairs[:, 1]]
                outcomes.pairs[:, 2] = classes[outcomes.pairs[:, 2]]
            carried, base = records["scores"], len(scores)
            values = [segments.setdefault(text, len(segments)) for text in outcomes.segments]
            with_values = carried >= SEGMENTS_FROM
            with_scores = (carried >= 0) & ~with_values
            numbers = np.array([*values, -1], np.int32)
            carried[with_values] = SEGMENTS_FROM + numbers[carried[with_values] - SEGMENTS_FROM]
            carried[with_scores] += base
            scores.update((base + number, own) for number, own in outcomes.scores.items())
            scored_segments = outcomes.scored_segments.items()
            scored.update((base + number, int(numbers[value])) for number, value in scored_segments)
        records = joined([part.outcomes.records for part in parts])
        pairs = joined_pairs([part.outcomes for part in parts])
        return OutcomeBatch(records, list(models), self.labels.names, scores, list(segments), scored, pairs)

    def tick(self, clock_ms: int) -> None:
        """Process the passing of time: retire idle models."""
        if idle := self.models.retire(clock_ms):
            times, records = self._resolved[self._at :, 0], self._outcomes.records[self._at :]
            before = (times < clock_ms) | ((times == clock_ms) & (records["assumed"] != 0))
            self._evaluate_next(int(np.count_nonzero(before)))
            self._retire(idle)
            for name in idle:
                self.labels.retire(name)

    def end(self, reached_ms: int, *, ended: bool) -> None:  # noqa: ARG002 - nothing is held
        """Evaluate the rest of the batch; `ended` makes no difference, as nothing is held for its order."""
        self._evaluate_next(len(self._outcomes) - self._at)
        self._clear()
        self.labels.forget_before(reached_ms - self.kept_ms)

    def histories_state(self, reached_ms: int) -> bytes:
        """State of the label histories; see `ModelSequence`."""
        return self.labels.state(reached_ms - self.kept_ms)

    def restore_histories(self, state: bytes) -> None:
        """Continue from the result of `histories_state`."""
        self.labels.restore(state)

    def _evaluate_next(self, count: int) -> None:
        if not count:
            return
        start, stop = self._at, self._at + count
        self._at = stop
        due = self._outcomes[start:stop]
        records = due.records
        models: NDArray[np.int32] = records["model"]
        order = np.argsort(models, kind="stable")
        names = due.models
        ends = np.cumsum(np.bincount(models, minlength=len(names))).tolist()
        accepted, resolved = self._accepted[start:stop], self._resolved[start:stop]
        labels = np.where(records["assumed"] != 0, -1, records["true_class"]).astype(np.int64)
        known = np.empty(count, np.int64)
        owned: set[int] = set()
        begin = 0
        for number, end in enumerate(ends):
            if end > begin:
                own = order[begin:end]
                known[own] = self.labels.look_up(names[number], accepted[own], resolved[own], labels[own])
                if self.owns(names[number]):
                    owned.add(number)
                begin = end
        records["label_at_prediction"] = known
        self.touched |= {names[number] for number in owned}
        self.paired = self.paired or (self._compares and due.pairs is not None)
        is_open = np.array(
            [number in owned and not self.agreement.is_settled(name) for number, name in enumerate(names)]
        )[models]
        if is_open.any():
            self.agreement.observe(due.only(is_open))
        self.alarms += [alarm for alarm in self.monitors.fold(due) if self.owns(alarm.model)]
