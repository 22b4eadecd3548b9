"""Index of the models by name: row and local class indices of each.

Here names become numbers. It is the hot path outside the kernel: one loop, three dictionary look-ups per
outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Protocol

import numpy as np

from streamwatch.core.estimators.kernel.rows import TableFull
from streamwatch.core.estimators.kernel.scores import NO_SCORES, Scores
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.names import Batch, Classes, fold_overflow, score_columns
from streamwatch.core.events import Outcome
from streamwatch.core.fold_names import fold_of, model_of
from streamwatch.core.specs import MonitorsSpec, UtilitySpec


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
    name = model_of(model)
    return next((u for u in spec.utilities if fnmatchcase(name, u.models)), UtilitySpec())


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
