"""Outcomes looked up by name, one at a time: what `ColumnIndex` must say, whatever it has cached."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamwatch.core.estimators.kernel.admission import NO_SCORES, Scores
from streamwatch.core.estimators.kernel.table import TableFull
from streamwatch.core.estimators.names import Batch, Classes
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.records.outcomes import OutcomeBatch
from streamwatch.core.specs import MonitorsSpec


class ByName:
    """Converts each outcome as an object, by the names in it; numbers of names are never looked at."""

    def __init__(self, monitors: EstimatorSet, spec: MonitorsSpec) -> None:
        self._index, self._spec = monitors._state.index, spec

    def indexed(self, outcomes: OutcomeBatch) -> Batch:
        given = list(outcomes)
        numbers = np.zeros((4, len(given)), np.int32)
        offsets, of_classes, values = [0], [], []
        for position, outcome in enumerate(given):
            row, classes = self._slot(outcome)
            label = outcome.label_at_prediction
            numbers[:, position] = (
                row,
                classes[outcome.true_class],
                classes[outcome.predicted_class],
                -1 if label is None else classes.get(label, self._spec.max_classes + 1),
            )
            if row < 0:
                continue
            for index, score in self._scores(outcome, classes):
                of_classes.append(index)
                values.append(score)
            offsets.append(len(values))
        scores = Scores(np.array(offsets), np.array(of_classes, np.int32), np.array(values))
        columns: dict[str, Any] = {
            name: np.array([getattr(each, name) for each in given], kind)
            for name, kind in (
                *((name, np.int64) for name in ("event_ms", "delay_ms", "resolved_ms", "waited_ms")),
                ("assumed", np.bool_),
                ("made", np.uint32),
            )
        }
        batch = Batch(outcomes, *numbers, **columns)
        return self._index.completed(batch, scores if values else NO_SCORES)

    def _slot(self, outcome: Outcome) -> tuple[int, Classes]:
        try:
            slot = self._index.models.get(outcome.model) or self._index.enter(outcome.model, outcome.event_ms)
        except TableFull:
            self._index.over_limit["models"] += 1
            return -1, Classes(self._spec.max_classes)
        return slot.row, slot.classes

    def _scores(self, outcome: Outcome, classes: Classes) -> list[tuple[int, float]]:
        """Local indices and scores of the classes within the limit; none where there are too many."""
        scores, most = outcome.scores or {}, self._spec.shadow_max_classes
        if len(scores) > most or len(classes) > most:
            return []
        numbered = [(classes[name], score) for name, score in scores.items()]
        return [(index, score) for index, score in numbered if index < self._spec.max_classes]


def looking_up_names(spec: MonitorsSpec) -> EstimatorSet:
    """Estimators that look up the names of every outcome."""
    monitors = EstimatorSet(spec)
    monitors._columns = ByName(monitors, spec)
    return monitors
