"""Outcomes in columns to rows and local class indices: what `ModelIndex` does, without a look at names.

Of each model, and each of its classes, the name is looked at once; then its number says enough.
"""

from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.kernel.numbering import UNKNOWN, number, remember
from streamwatch.core.estimators.kernel.scores import NO_SCORES
from streamwatch.core.estimators.models.index import ModelIndex
from streamwatch.core.estimators.models.score_index import ScoredBatch, ScoreIndex
from streamwatch.core.estimators.names import Batch
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.score_columns import ScoreColumns

FIRST_PLACES = 1 << 12
MOST_PLACES = 1 << 21
"""Classes of models remembered at a time: half as many. Room is made as they come."""
_PATIENCE = 32
"""Names looked at in a batch before the rest of it is done name by name."""


class ColumnIndex:
    """Remembers what `ModelIndex` said of numbers.

    Parameters
    ----------
    models
        Who knows names.
    limit
        Index of the classes beyond the limit, `max_classes`.
    """

    def __init__(self, models: ModelIndex, limit: int) -> None:
        self._models = models
        self._limit = limit
        self._of: tuple[object, object, int] | None = None
        self._rows = np.full(0, UNKNOWN, np.int32)
        self._places = FIRST_PLACES
        self._keys = np.zeros(0, np.uint64)
        self._indices = np.zeros(0, np.int32)
        self._remembered = 0
        self._scores = ScoreIndex(models.most_scored)

    def indexed(self, outcomes: OutcomeBatch) -> Batch:
        """Rows and class indices of outcomes without scores, or with scores in columns.

        Those of models without a row are left out.
        """
        self._renew(outcomes)
        scored = self._scored(outcomes)
        columns = np.empty((4, len(outcomes)), np.int32)
        looks = at = 0
        while at < len(outcomes):
            if looks < _PATIENCE:
                at = self._number(outcomes, at, columns)
                if at == len(outcomes):
                    break
            if scored is not None:
                scored.look(at)
            self._look(outcomes, at, columns)
            if scored is not None:
                scored.met(at, int(outcomes.records["model"][at]))
            looks += 1
            at += 1
        if scored is not None:
            scored.look(len(outcomes))
        records = outcomes.records
        batch = Batch(
            outcomes,
            *columns,
            event_ms=np.ascontiguousarray(records["event_ms"]),
            delay_ms=np.ascontiguousarray(records["delay_ms"]),
            assumed=records["assumed"] != 0,
        )
        return self._models.completed(batch, NO_SCORES if scored is None else scored.scores(batch.rows >= 0))

    def _scored(self, outcomes: OutcomeBatch) -> ScoredBatch | None:
        columns = outcomes.scores
        if not isinstance(columns, ScoreColumns) or not columns.scored.any():
            return None
        return self._scores.begin(outcomes, columns, self._models.classes_of)

    def _number(self, outcomes: OutcomeBatch, at: int, columns: np.ndarray) -> int:
        return number(outcomes.records, at, self._rows, self._keys, self._indices, self._limit, columns)

    def _look(self, outcomes: OutcomeBatch, at: int, columns: np.ndarray) -> None:
        """Ask for the names of one outcome, and remember the answers."""
        row, true_class, predicted_class, label = self._models.numbers_of(outcomes[at])
        columns[:, at] = row, true_class, predicted_class, label
        if row < 0:
            return
        record = outcomes.records[at]
        model = int(record["model"])
        self._rows[model] = row
        if 2 * (self._remembered + 3) > len(self._keys):
            self._places = min(4 * self._places, MOST_PLACES)
            self._forget_classes()
        known = [(record["true_class"], true_class), (record["predicted_class"], predicted_class)]
        if 0 <= label < self._limit:
            known.append((record["label_at_prediction"], label))
        for name, index in known:
            remember(self._keys, self._indices, model, int(name), index)
        self._remembered += len(known)

    def _renew(self, outcomes: OutcomeBatch) -> None:
        """Forget what other numbers said, or what was said of models that retired since."""
        of = (outcomes.models, outcomes.classes, self._models.retired)
        if self._of is None or any(now is not then for now, then in zip(of[:2], self._of[:2], strict=True)):
            changed = True
        else:
            changed = of[2] != self._of[2]
        if changed:
            self._of = of
            self._rows[:] = UNKNOWN
            self._forget_classes()
            self._scores.forget()
        if len(self._rows) < len(outcomes.models):
            rows = np.full(2 * len(outcomes.models), UNKNOWN, np.int32)
            rows[: len(self._rows)] = self._rows
            self._rows = rows

    def _forget_classes(self) -> None:
        self._keys = np.zeros(self._places, np.uint64)
        self._indices = np.zeros(self._places, np.int32)
        self._remembered = 0
