"""Index of the models by name: row and local class indices of each.

Here names become numbers. It is the hot path outside the kernel: one loop, three dictionary look-ups per
outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.admission import NO_SCORES, UNKNOWN, Scores, number, remember
from streamwatch.core.estimators.kernel.table import ModelTable, TableFull
from streamwatch.core.estimators.names import Batch, Classes, fold_overflow, score_columns
from streamwatch.core.events import Outcome, fold_of, model_of
from streamwatch.core.outcomes import OutcomeBatch, ScoreColumns
from streamwatch.core.specs import MonitorsSpec, UtilitySpec, first_utility


class Register(Protocol):
    """State kept by row, outside the table."""

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        ...


@dataclass(frozen=True, slots=True)
class ModelSlot:
    """Row and classes of a current model."""

    row: int
    classes: Classes
    first_ms: int
    """Event time of the model's first outcome."""


@dataclass(slots=True)
class _Costed:
    """Model that is judged by a table of costs."""

    utility: UtilitySpec
    classes: Classes
    named: int = 0
    """Number of classes whose position in the table of costs the kernel knows."""


def utility_of(spec: MonitorsSpec, model: str) -> UtilitySpec:
    """Look up the utility by which a model is judged."""
    return first_utility(spec.utilities, model_of(model))


def detectors_of(spec: MonitorsSpec, model: str) -> int:
    """Number of the detectors' parameters for a model, as `ModelTable.add_model` takes it."""
    name = model_of(model)
    own = (k for k, each in enumerate(spec.detectors_by_model, 1) if fnmatchcase(name, each.models))
    return next(own, 0)


class ModelIndex:
    """Index of the models that have a row in the table; adds and removes rows of table and registers."""

    def __init__(self, spec: MonitorsSpec, table: ModelTable, registers: Sequence[Register]) -> None:
        self._spec = spec
        self._table = table
        self._registers = registers
        self._index: dict[str, tuple[int, Classes]] = {}
        self.models: dict[str, ModelSlot] = {}
        """Current models by name, in the order in which they appeared; changed by `enter` and `retire`."""
        self.over_limit = {"classes": 0, "models": 0}
        """Outcomes with a class beyond `max_classes`, and outcomes without a free row, by limit."""
        self.retired = 0
        """Number of models that have retired."""
        self.folds: dict[str, list[str]] = {}
        """Names of the folds of each model that has folds, ordered by number."""
        self._by_costs: dict[int, _Costed] = {}
        """Models that are judged by costs, by row."""

    def enter(self, model: str, first_ms: int) -> tuple[int, Classes]:
        """Give a new model a row and empty classes; raises TableFull if no row is free."""
        utility = utility_of(self._spec, model)
        row = self._table.add_model(utility, detectors_of(self._spec, model))
        self._clear(row)
        classes = Classes(self._spec.max_classes)
        if utility.kind == "costs":
            self._by_costs[row] = _Costed(utility, classes)
        self.models[model] = ModelSlot(row, classes, first_ms)
        for index, drift_weighted in enumerate(self._spec.drift_weighted):
            if drift_weighted.drift_signal == "reference" and drift_weighted.reference == model:
                self._table.follow(index, row)
        self._index[model] = entry = (row, classes)
        if fold_of(model) is not None:
            self.folds.setdefault(model_of(model), []).append(model)
            self._join_folds(model_of(model))
        return entry

    def retire(self, model: str) -> None:
        """Remove a model and free its row."""
        row = self.models.pop(model).row
        self.retired += 1
        del self._index[model]
        if fold_of(model) is not None:
            self.folds[model_of(model)].remove(model)
            self._join_folds(model_of(model))
        self._table.retire(row)
        self._clear(row)
        self._by_costs.pop(row, None)

    def name_classes(self, rows: Iterable[int]) -> None:
        """Pass to the table the classes that models judged by costs have shown since the last call."""
        for row in rows:
            costed = self._by_costs.get(row)
            if costed is not None and len(costed.classes) > costed.named:
                costed.named = len(costed.classes)
                self._table.name_classes(row, costed.utility, list(costed.classes))

    def indexed(self, outcomes: Sequence[Outcome]) -> Batch:
        """Convert outcomes to rows and class indices.

        Those of models without a row are counted and left out.
        """
        rows: list[int] = []
        true_class: list[int] = []
        predicted_class: list[int] = []
        label_at_prediction: list[int] = []
        scored: dict[int, list[tuple[int, float]]] = {}
        index, limit, most = self._index, self._spec.max_classes, self._spec.shadow_max_classes
        for outcome in outcomes:
            try:
                row, classes = index[outcome.model]
            except KeyError:
                row, classes = self._enter_or_refuse(outcome)
            rows.append(row)
            true_class.append(classes[outcome.true_class])
            predicted_class.append(classes[outcome.predicted_class])
            label = outcome.label_at_prediction
            label_at_prediction.append(-1 if label is None else classes.get(label, limit + 1))
            scores = outcome.scores
            if scores and row >= 0 and len(scores) <= most and len(classes) <= most:
                scored[len(rows) - 1] = classes.score_indices(scores)
        batch = Batch(
            outcomes,
            np.array(rows, np.int32),
            np.array(true_class, np.int32),
            np.array(predicted_class, np.int32),
            np.array(label_at_prediction, np.int32),
            np.array([outcome.event_ms for outcome in outcomes], np.int64),
            np.array([outcome.delay_ms for outcome in outcomes], np.int64),
            np.array([outcome.assumed for outcome in outcomes], np.bool_),
            np.array([outcome.made for outcome in outcomes], np.uint32),
            np.array([outcome.resolved_ms for outcome in outcomes], np.int64),
            np.array([outcome.waited_ms for outcome in outcomes], np.int64),
        )
        kept = np.flatnonzero(batch.rows >= 0).tolist() if scored else []
        return self.completed(batch, score_columns(kept, scored))

    def numbers_of(self, outcome: Outcome) -> tuple[int, int, int, int]:
        """Row, true class, predicted class and label at prediction of one outcome, as in `indexed`.

        `completed` does the rest, for a whole batch.
        """
        row, classes = self._index.get(outcome.model) or self._enter_or_refuse(outcome)
        true_class, predicted_class = classes[outcome.true_class], classes[outcome.predicted_class]
        label = outcome.label_at_prediction
        known = -1 if label is None else classes.get(label, self._spec.max_classes + 1)
        return row, true_class, predicted_class, known

    @property
    def most_scored(self) -> int:
        """Largest number of classes of a model, and of scores of an outcome, for which scores are used."""
        return self._spec.shadow_max_classes

    def names_of(self, model: str) -> Sequence[str]:
        """Names under which a model is evaluated: its own, or those of its folds."""
        return [model] if model in self.models else self.folds.get(model, [model])

    def rows_of_folds(self, model: str) -> list[int]:
        """Rows of a model's folds, ordered by fold number."""
        return [self.models[name].row for name in self.folds[model]]

    def classes_of(self, model: str) -> Classes | None:
        """Classes of a model; None if it has no row."""
        slot = self.models.get(model)
        return None if slot is None else slot.classes

    def completed(self, batch: Batch, scores: Scores = NO_SCORES) -> Batch:
        """Drop outcomes of models without a row, and attach the scores of the others.

        Also passes new classes to the tables of costs, and counts and separates classes beyond the limit.
        """
        if self._by_costs:
            self.name_classes(np.unique(batch.rows).tolist())
        batch = batch.only(batch.rows >= 0)
        batch = replace(batch, scores=scores) if len(scores.offsets) else batch
        self.over_limit["classes"] += fold_overflow(batch, self._spec.max_classes)
        return batch

    def _enter_or_refuse(self, outcome: Outcome) -> tuple[int, Classes]:
        """Give the model of an outcome a row; if the table is full, count the outcome and return row -1."""
        try:
            return self.enter(outcome.model, outcome.event_ms)
        except TableFull:
            self.over_limit["models"] += 1
            return -1, Classes(self._spec.max_classes)

    def _join_folds(self, model: str) -> None:
        """Tell the table which rows are folds of a model, ordered by fold number."""
        names = self.folds[model]
        if not names:
            del self.folds[model]
            return
        names.sort(key=lambda name: fold_of(name) or 0)
        self._table.join_folds([self.models[name].row for name in names])

    def _clear(self, row: int) -> None:
        for register in self._registers:
            register.clear(row)


# Index of scores in columns: converts them to scores by local class index.
#
# A class gets its local index when it first occurs in a model, which may be in a score. To keep that order,
# each model's first score of each class is processed in its turn between the look-ups of `ColumnIndex`.
# From then on the column of a class determines its index.


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


# Index for outcomes in columns: caches rows and class indices of `ModelIndex` by the columns' numbers.
#
# The name of each model, and of each of its classes, is looked up once; later outcomes are found by number.


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
            made=np.ascontiguousarray(records["made"]),
            resolved_ms=np.ascontiguousarray(records["resolved_ms"]),
            waited_ms=np.ascontiguousarray(records["waited_ms"]),
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
