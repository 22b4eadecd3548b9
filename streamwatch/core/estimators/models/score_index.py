"""Index of scores in columns: converts them to scores by local class index.

A class gets its local index when it first occurs in a model, which may be in a score. To keep that order,
each model's first score of each class is processed in its turn between the look-ups of `ColumnIndex`. From
then on the column of a class determines its index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.scores import NO_SCORES, Scores
from streamwatch.core.estimators.names import Classes
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.score_columns import ScoreColumns

_UNUSED: Final = -1
"""Index of a class beyond the limit, whose scores are not used."""
_Looks = list[tuple[int, int]]


class ScoreIndex:
    """Caches the local indices of the classes that have columns, by model number.

    Parameters
    ----------
    most
        Largest number of scores of an outcome, and of classes of its model, for which scores are used.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: tuple[str, ...] = ()
        self._known = np.zeros((0, 0), np.bool_)
        self._indices = np.zeros((0, 0), np.int32)

    def forget(self) -> None:
        """Clear the cache, since model numbers have another meaning now."""
        self._known[:] = False

    def begin(
        self, outcomes: OutcomeBatch, columns: ScoreColumns, classes_of: Callable[[str], Classes | None]
    ) -> ScoredBatch:
        """Find where in a batch each model first has a score of each class.

        `classes_of` gives the classes of a model by name; None if it has no row.
        """
        models, width = len(outcomes.models), len(columns.names)
        if columns.names != self._names:
            self._names = columns.names
            self._known, self._indices = np.zeros((0, width), np.bool_), np.zeros((0, width), np.int32)
        if len(self._known) < models:
            more = ((0, 2 * models - len(self._known)), (0, 0))
            self._known, self._indices = np.pad(self._known, more), np.pad(self._indices, more)
        return ScoredBatch(outcomes, columns, self._most, self._known, self._indices, classes_of)


class ScoredBatch:
    """Scores of one batch.

    Parameters
    ----------
    outcomes, columns
        Outcomes, and the columns that hold their scores by number.
    most, classes_of
        As in `ScoreIndex`.
    known, indices
        Whether the class of a column is in the cache, and its local index; shape (models, k), changed in
        place.
    """

    def __init__(
        self,
        outcomes: OutcomeBatch,
        columns: ScoreColumns,
        most: int,
        known: NDArray[np.bool_],
        indices: NDArray[np.int32],
        classes_of: Callable[[str], Classes | None],
    ) -> None:
        self._columns = columns
        self._most = most
        self._known, self._indices = known, indices
        self._classes_of = classes_of
        self._names = outcomes.models
        self._models = np.ascontiguousarray(outcomes.records["model"])
        numbers = np.ascontiguousarray(outcomes.records["scores"])
        positions = np.flatnonzero((numbers >= 0) & (numbers < len(columns.scored)))
        few = columns.scored[numbers[positions]]
        if len(columns.names) > most:
            few &= columns.present.sum(axis=1)[numbers[positions]] <= most
        self._positions = positions[few]
        self._rows = numbers[self._positions]
        self._until = np.full(len(self._names), len(numbers))
        """First outcome of each model whose scores are not used, as the model has too many classes."""
        for model in np.flatnonzero(np.bincount(self._models[self._positions])).tolist():
            self.met(0, model)
        self._looks = self._first()
        self._looked = 0

    def _first(self) -> _Looks:
        """(outcome, column) of each model's first score of each class, in order."""
        looks: _Looks = []
        models = self._models[self._positions]
        complete: NDArray[np.bool_] = np.asarray(self._known.all(axis=1))
        if complete[models].all():
            return looks
        first = np.empty(len(self._until), np.int64)
        for column in range(len(self._columns.names)):
            there = np.flatnonzero(self._columns.present[self._rows, column] & ~self._known[models, column])
            first[:] = -1
            first[models[there][::-1]] = self._positions[there][
                ::-1
            ]  # reversed, so that the earliest is written last
            looks += [(at, column) for at in first[first >= 0].tolist()]
        return sorted(looks)

    def met(self, position: int, model: int) -> None:
        """Stop using scores of a model from outcome `position` on if it has too many classes now."""
        classes = self._classes_of(self._names[model])
        if classes is not None and len(classes) > self._most:
            self._until[model] = min(int(self._until[model]), position)

    def look(self, stop: int) -> None:
        """Give local indices to classes that first occur in scores of outcomes before `stop`, in order.

        The true and predicted classes of those outcomes must have their indices already.
        """
        while self._looked < len(self._looks) and self._looks[self._looked][0] < stop:
            position, column = self._looks[self._looked]
            self._looked += 1
            model = int(self._models[position])
            classes = self._classes_of(self._names[model])
            if classes is None:
                continue
            index = classes.limit
            if position < self._until[model]:
                index = classes[self._columns.names[column]]
                self.met(position + 1, model)
            self._indices[model, column] = _UNUSED if index >= classes.limit else index
            self._known[model, column] = True

    def scores(self, has_row: NDArray[np.bool_]) -> Scores:
        """Build the scores of the outcomes whose model has a row."""
        models = self._models[self._positions]
        taken = has_row[self._positions] & (self._positions < self._until[models])
        if not taken.any():
            return NO_SCORES
        positions, rows, models = self._positions[taken], self._rows[taken], models[taken]
        local = self._indices[models]
        used = self._columns.present[rows] & (local >= 0)
        counts = np.zeros(len(has_row), np.int64)
        counts[positions] = used.sum(axis=1)
        return Scores(
            np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[has_row])]),
            local[used],
            self._columns.table[rows][used],
        )
