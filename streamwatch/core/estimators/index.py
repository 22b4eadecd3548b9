"""Index of the models by name: row and local class indices of each.

Names are converted to numbers here, each once: outcomes come in columns, and answers are kept by number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.admission import NO_SCORES, UNKNOWN, Scores, number, remember
from streamwatch.core.estimators.kernel.table import ModelTable, TableFull
from streamwatch.core.estimators.names import Batch, Classes, Slice, fold_overflow
from streamwatch.core.records.events import fold_of, model_of
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.core.records.scores import NO_LISTS
from streamwatch.core.specs import MonitorsSpec, UtilitySpec, first_utility


class Register(Protocol):
    """State kept by row, outside the table."""

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        ...


@runtime_checkable
class JudgesByCosts(Protocol):
    """Register that judges models by their tables of costs."""

    def name_classes(self, row: int, utility: UtilitySpec, names: Sequence[str]) -> None:
        """Set the utility that a row is judged by, and the names of its classes by local index."""
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
    if not spec.detectors_by_model:
        return 0
    name = model_of(model)
    own = (k for k, each in enumerate(spec.detectors_by_model, 1) if fnmatchcase(name, each.models))
    return next(own, 0)


class ModelIndex:
    """Index of the models that have a row in the table; adds and removes rows of table and registers."""

    def __init__(self, spec: MonitorsSpec, table: ModelTable, registers: Sequence[Register]) -> None:
        self._spec = spec
        self._table = table
        self._registers = registers
        self._judging_by_costs = [each for each in registers if isinstance(each, JudgesByCosts)]
        self.models: dict[str, ModelSlot] = {}
        """Current models by name, in the order in which they appeared; changed by `enter` and `retire`."""
        self.over_limit = {"classes": 0, "models": 0}
        """Numbers of outcomes with a class beyond `max_classes`, and of outcomes without a row, by limit."""
        self.retired = 0
        """Number of models that have retired."""
        self.folds: dict[str, list[str]] = {}
        """Names of the folds of each model that has folds, ordered by number."""
        self._rows_by_model: Mapping[str, Sequence[int]] | None = None
        self._slices: Sequence[Slice] | None = None
        self._by_costs: dict[int, _Costed] = {}
        """Models that are judged by costs, by row."""

    def enter(self, model: str, first_ms: int) -> ModelSlot:
        """Give a new model a row and empty classes; raises TableFull if no row is free."""
        utility = utility_of(self._spec, model)
        row = self._table.add_model(utility, detectors_of(self._spec, model))
        self._clear(row)
        classes = Classes(self._spec.max_classes)
        if utility.kind == "costs":
            self._by_costs[row] = _Costed(utility, classes)
        slot = self.models[model] = ModelSlot(row, classes, first_ms)
        self._rows_by_model = self._slices = None
        for index, drift_weighted in enumerate(self._spec.drift_weighted):
            if drift_weighted.drift_signal == "reference" and drift_weighted.reference == model:
                self._table.follow(index, row)
        if fold_of(model) is not None:
            self.folds.setdefault(model_of(model), []).append(model)
            self._join_folds(model_of(model))
        return slot

    def retire(self, model: str) -> None:
        """Remove a model and free its row."""
        row = self.models.pop(model).row
        self._rows_by_model = self._slices = None
        self.retired += 1
        if fold_of(model) is not None:
            self.folds[model_of(model)].remove(model)
            self._join_folds(model_of(model))
        self._table.retire(row)
        self._clear(row)
        self._by_costs.pop(row, None)

    def name_classes(self, rows: Iterable[int]) -> None:
        """Tell table and registers the new classes of models judged by costs since the last call."""
        for row in rows:
            costed = self._by_costs.get(row)
            if costed is not None and len(costed.classes) > costed.named:
                costed.named = len(costed.classes)
                names = list(costed.classes)
                for each in (self._table, *self._judging_by_costs):
                    each.name_classes(row, costed.utility, names)

    def numbers_of(
        self, model: str, event_ms: int, true_name: str, predicted_name: str, label: str | None
    ) -> tuple[int, int, int, int]:
        """Row, true class, predicted class and label at prediction of one outcome, as in `Batch`.

        If the table is full, an outcome of a new model is counted, and its row is -1. To be followed by
        `completed` for the whole batch.
        """
        limit = self._spec.max_classes
        try:
            slot = self.models.get(model) or self.enter(model, event_ms)
            row, classes = slot.row, slot.classes
        except TableFull:
            self.over_limit["models"] += 1
            row, classes = -1, Classes(limit)
        true_class, predicted_class = classes[true_name], classes[predicted_name]
        known = -1 if label is None else classes.get(label, limit + 1)
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

    def rows_by_model(self) -> Mapping[str, Sequence[int]]:
        """Row of every model, or rows of its folds, in the order in which they appeared.

        The same object until a model is added or retires.
        """
        if self._rows_by_model is None:
            found: dict[str, list[int]] = {}
            for name, slot in self.models.items():
                found.setdefault(model_of(name), []).append(slot.row)
            self._rows_by_model = found
        return self._rows_by_model

    def slices(self) -> Sequence[Slice]:
        """Current models to be reported, by name; the same object until a model is added or retires."""
        if self._slices is None:
            models = sorted(self.models.items())
            self._slices = [Slice(name, slot.row, slot.classes) for name, slot in models]
        return self._slices

    def has(self, one: Slice) -> bool:
        """Tell whether the model of a slice still has its row."""
        slot = self.models.get(one.model)
        return slot is not None and slot.classes is one.classes

    def classes_of(self, model: str) -> Classes | None:
        """Classes of a model; None if it has no row."""
        slot = self.models.get(model)
        return None if slot is None else slot.classes

    def completed(self, batch: Batch, scores: Scores = NO_SCORES) -> Batch:
        """Drop outcomes of models without a row, and attach the scores of the others.

        Also passes on new classes of models judged by costs, and counts and separates classes beyond the
        limit.
        """
        if self._by_costs:
            self.name_classes(np.unique(batch.rows).tolist())
        batch = batch.only(batch.rows >= 0)
        batch = replace(batch, scores=scores) if len(scores.offsets) else batch
        self.over_limit["classes"] += fold_overflow(batch, self._spec.max_classes)
        return batch

    def _join_folds(self, model: str) -> None:
        """Pass to the table the rows that are folds of a model, ordered by fold number."""
        names = self.folds[model]
        if not names:
            del self.folds[model]
            return
        names.sort(key=lambda name: fold_of(name) or 0)
        self._table.join_folds([self.models[name].row for name in names])

    def _clear(self, row: int) -> None:
        for register in self._registers:
            register.clear(row)


# Index for outcomes in columns: caches rows and class indices of `ModelIndex` by the columns' numbers.
#
# The name of each model, and of each of its classes, is looked up once; later outcomes are found by number.


FIRST_SLOTS = 1 << 12
MOST_SLOTS = 1 << 21
"""Largest number of slots of the cache, of which half are used; it grows from `FIRST_SLOTS`."""
_NAMED: Final = ("event_ms", "model", "true_class", "predicted_class", "label_at_prediction")
"""Columns of an outcome by which it is looked up by name."""
_numbers_in: Final = itemgetter(*map(list(OUTCOME.fields or ()).index, _NAMED))


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
        self._of: tuple[object, object, int] = (None, None, 0)
        """Lists of names to which the numbers belong, and the number of models retired then."""
        self._rows = np.full(0, UNKNOWN, np.int32)
        self._slots = FIRST_SLOTS
        self._keys = np.zeros(0, np.uint64)
        self._indices = np.zeros(0, np.int32)
        self._remembered = 0
        self._crowded = np.zeros(0, np.bool_)
        """Whether a model has too many classes for its scores to be used, by number."""

    def indexed(self, outcomes: OutcomeBatch) -> Batch:
        """Convert outcomes to rows and class indices.

        Outcomes of models without a row are left out.
        """
        self._renew(outcomes)
        scores = self._room_for_scores(outcomes)
        columns = np.empty((4, len(outcomes)), np.int32)
        records = outcomes.records
        at = self._number(outcomes, 0, columns, scores)
        while at < len(records):
            self._look(outcomes, at, columns, scores)
            at = self._number(outcomes, at + 1, columns, scores)
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
        return self._models.completed(batch, self._of_known_models(scores, batch.rows >= 0))

    def _room_for_scores(self, outcomes: OutcomeBatch) -> Scores:
        """Allocate arrays for the scores of all outcomes; empty ones if no prediction has scores."""
        scored = outcomes.scored
        if not len(scored):
            return NO_SCORES
        numbers, models = outcomes.records["scores"][scored], outcomes.records["model"][scored]
        for model in np.flatnonzero(np.bincount(models)).tolist():
            self._note_classes(outcomes.models[model], model)
        most = int(outcomes.scores.sizes(numbers).sum())
        return Scores(np.zeros(len(outcomes) + 1, np.int64), np.empty(most, np.int32), np.empty(most))

    def _note_classes(self, name: str, model: int) -> None:
        classes = self._models.classes_of(name)
        self._crowded[model] = classes is not None and len(classes) > self._models.most_scored

    @staticmethod
    def _of_known_models(scores: Scores, has_row: NDArray[np.bool_]) -> Scores:
        """Drop the offsets of outcomes whose model has no row; no scores were written for those."""
        if not len(scores.offsets) or scores.offsets[-1] == 0:
            return NO_SCORES
        count, kept = int(scores.offsets[-1]), np.concatenate([[True], has_row])
        return Scores(scores.offsets[kept], scores.classes[:count], scores.values[:count])

    def _number(self, outcomes: OutcomeBatch, at: int, columns: np.ndarray, scores: Scores) -> int:
        lists = outcomes.scores if len(scores.offsets) else NO_LISTS
        return number(
            outcomes.records,
            at,
            self._rows,
            self._keys,
            self._indices,
            self._limit,
            columns,
            (lists.ends, lists.classes, lists.values),
            self._models.most_scored,
            self._crowded,
            scores,
        )

    def _look(self, outcomes: OutcomeBatch, at: int, columns: NDArray[np.int32], scores: Scores) -> None:
        """Look up the names of one outcome, and cache the answers."""
        numbers: tuple[int, int, int, int, int] = _numbers_in(outcomes.records.item(at))
        event_ms, model, true_class, predicted_class, label = numbers
        names = outcomes.classes
        found = self._models.numbers_of(
            outcomes.models[model],
            event_ms,
            names[true_class],
            names[predicted_class],
            None if label < 0 else names[label],
        )
        columns[:, at] = found
        row, true_index, predicted_index, label_index = found
        of_scores = self._look_at_scores(outcomes, at, scores) if len(scores.offsets) else []
        if row < 0:
            return
        self._rows[model] = row
        if 2 * (self._remembered + 3 + len(of_scores)) > len(self._keys):
            self._slots = min(4 * self._slots, MOST_SLOTS)
            self._forget_classes()
        known = {true_class: true_index, predicted_class: predicted_index, **dict(of_scores)}
        if 0 <= label_index < self._limit:
            known[label] = label_index
        for name, index in known.items():
            remember(self._keys, self._indices, model, name, index)
        self._remembered += len(known)

    def _look_at_scores(self, outcomes: OutcomeBatch, at: int, scores: Scores) -> list[tuple[int, int]]:
        """Append the scores of one outcome; return the (class number, local index) of each scored class.

        The outcome's true and predicted class must have their local indices already.
        """
        record, most = outcomes.records[at], self._models.most_scored
        number, model = int(record["scores"]), int(record["model"])
        classes = self._models.classes_of(outcomes.models[model])
        count = int(scores.offsets[at])
        known: list[tuple[int, int]] = []
        if 0 <= number < len(outcomes.scores) and classes is not None and len(classes) <= most:
            own = outcomes.scores.only(np.array([number]))
            if len(own.classes) <= most:
                names = map(outcomes.classes.__getitem__, own.classes.tolist())
                known = [(n, classes[name]) for n, name in zip(own.classes.tolist(), names, strict=True)]
                for (_, index), value in zip(known, own.values.tolist(), strict=True):
                    if index < self._limit:
                        scores.classes[count], scores.values[count] = index, value
                        count += 1
        scores.offsets[at + 1] = count
        self._note_classes(outcomes.models[model], model)
        return known

    def _renew(self, outcomes: OutcomeBatch) -> None:
        """Clear the cache if the numbers have another meaning now, or if a model has retired since."""
        models, classes, retired = self._of
        other_names = outcomes.models is not models or outcomes.classes is not classes
        if other_names or self._models.retired != retired:
            self._of = outcomes.models, outcomes.classes, self._models.retired
            self._rows[:] = UNKNOWN
            self._forget_classes()
        if len(self._rows) < len(outcomes.models):
            rows = np.full(2 * len(outcomes.models), UNKNOWN, np.int32)
            rows[: len(self._rows)] = self._rows
            self._rows = rows
            self._crowded = np.zeros(len(rows), np.bool_)

    def _forget_classes(self) -> None:
        self._keys = np.zeros(self._slots, np.uint64)
        self._indices = np.zeros(self._slots, np.int32)
        self._remembered = 0
