"""The models being watched by name: the row of each, and the local indices of its classes.

Names become numbers here, the hot path outside the kernel: one loop, three dictionary look-ups per outcome.
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
    """Something remembered by row beside the table."""

    def clear(self, row: int) -> None:
        """Forget a row, before it is used and after its model has retired."""
        ...


@dataclass(frozen=True, slots=True)
class ModelSlot:
    """A model being watched."""

    row: int
    classes: Classes
    first_ms: int
    """Event time of its first outcome."""


@dataclass(slots=True)
class _Costed:
    """A model that is judged by costs."""

    utility: UtilitySpec
    classes: Classes
    named: int = 0
    """Classes whose place in the table of costs is told."""


def utility_of(spec: MonitorsSpec, model: str) -> UtilitySpec:
    """The utility a model is judged by."""
    name = model_of(model)
    return next((u for u in spec.utilities if fnmatchcase(name, u.models)), UtilitySpec())


def detectors_of(spec: MonitorsSpec, model: str) -> int:
    """Whose parameters a model's detectors have, as `ModelTable.add_model` takes it."""
    name = model_of(model)
    own = (k for k, each in enumerate(spec.detectors_by_model, 1) if fnmatchcase(name, each.models))
    return next(own, 0)


class ModelIndex:
    """Index of the models that have a row of the table, and of the registers beside it."""

    def __init__(self, spec: MonitorsSpec, table: ModelTable, registers: Sequence[Register]) -> None:
        self._spec = spec
        self._table = table
        self._registers = registers
        self._index: dict[str, tuple[int, Classes]] = {}
        self.models: dict[str, ModelSlot] = {}
        """In the order in which they appeared; `enter` and `retire` change it."""
        self.over_limit = {"classes": 0, "models": 0}
        """By limit: outcomes with a class beyond `max_classes`, outcomes not evaluated for want of a row."""
        self.retired = 0
        """How many models have retired."""
        self.folds: dict[str, list[str]] = {}
        """Names of the folds of each model that has any, in the order of their numbers."""
        self._by_costs: dict[int, _Costed] = {}
        """Rows of models that are judged by costs."""

    def enter(self, model: str, first_ms: int) -> tuple[int, Classes]:
        """Give a new model a row; raises TableFull without one."""
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
        """Forget a model and free its row."""
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
        """Tell the table the classes that models judged by costs have shown since the last call."""
        for row in rows:
            costed = self._by_costs.get(row)
            if costed is not None and len(costed.classes) > costed.named:
                costed.named = len(costed.classes)
                self._table.name_classes(row, costed.utility, list(costed.classes))

    def indexed(self, outcomes: Sequence[Outcome]) -> Batch:
        """Rows and class indices of outcomes; those of models without a row are counted and left out."""
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
        """Row, true class, predicted class and label at prediction of one outcome, as `indexed` gives them.

        What is to be done for the whole batch is left to `completed`.
        """
        row, classes = self._index.get(outcome.model) or self._enter_or_refuse(outcome)
        true_class, predicted_class = classes[outcome.true_class], classes[outcome.predicted_class]
        label = outcome.label_at_prediction
        known = -1 if label is None else classes.get(label, self._spec.max_classes + 1)
        return row, true_class, predicted_class, known

    @property
    def most_scored(self) -> int:
        """Classes of a model, and scores of an outcome, up to which scores are taken."""
        return self._spec.shadow_max_classes

    def names_of(self, model: str) -> Sequence[str]:
        """Names under which a model is evaluated: its own, or those of its folds."""
        return [model] if model in self.models else self.folds.get(model, [model])

    def rows_of_folds(self, model: str) -> list[int]:
        """Rows of a model's folds, in the order of their numbers."""
        return [self.models[name].row for name in self.folds[model]]

    def classes_of(self, model: str) -> Classes | None:
        """Look up the classes of a model; None of one without a row."""
        slot = self.models.get(model)
        return None if slot is None else slot.classes

    def completed(self, batch: Batch, scores: Scores = NO_SCORES) -> Batch:
        """A batch without the outcomes of models that have no row, and with the scores of the others.

        Its classes are named to the table, and those beyond the limit counted and told apart.
        """
        if self._by_costs:
            self.name_classes(np.unique(batch.rows).tolist())
        batch = batch.only(batch.rows >= 0)
        batch = replace(batch, scores=scores) if len(scores.offsets) else batch
        self.over_limit["classes"] += fold_overflow(batch, self._spec.max_classes)
        return batch

    def _enter_or_refuse(self, outcome: Outcome) -> tuple[int, Classes]:
        """A row for the model of an outcome; row -1, counted, if the table is full."""
        try:
            return self.enter(outcome.model, outcome.event_ms)
        except TableFull:
            self.over_limit["models"] += 1
            return -1, Classes(self._spec.max_classes)

    def _join_folds(self, model: str) -> None:
        """Tell the table which rows are folds of a model, in an order that only their numbers decide."""
        names = self.folds[model]
        if not names:
            del self.folds[model]
            return
        names.sort(key=lambda name: fold_of(name) or 0)
        self._table.join_folds([self.models[name].row for name in names])

    def _clear(self, row: int) -> None:
        for register in self._registers:
            register.clear(row)
