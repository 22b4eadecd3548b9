"""Index for outcomes in columns: caches rows and class indices of `ModelIndex` by the columns' numbers.

The name of each model, and of each of its classes, is looked up once; later outcomes are found by number.
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
"""Largest number of slots of the cache, of which half are used; it grows from `FIRST_PLACES`."""
_PATIENCE = 32
"""Look-ups by name in a batch after which its remaining outcomes are all looked up by name."""


class ColumnIndex:
    """Caches the answers of `ModelIndex` by number.

    Parameters
    ----------
    models
        Index of the models by name.
    limit
        Index of classes beyond the limit, `max_classes`.
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
        """Convert outcomes, without scores or with scores in columns, to rows and class indices.

        Outcomes of models without a row are left out.
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
        """Look up the names of one outcome, and cache the answers."""
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
        """Clear the cache if the numbers have another meaning now, or if a model has retired since."""
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
