"""The models being watched by name: the row of each, and the local indices of its classes.

Names become numbers here, the hot path outside the kernel: one loop, three dictionary look-ups per outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from streamwatch.core.events import Outcome
from streamwatch.core.kernel.rows import TableFull
from streamwatch.core.kernel.table import ModelTable
from streamwatch.core.names import Batch, Classes, fold_overflow, score_columns
from streamwatch.core.specs import MonitorsSpec


class Register(Protocol):
    """Something remembered by row beside the table."""

    def clear(self, row: int) -> None:
        """Forget a row, before it is used and after its model has retired."""
        ...


@dataclass(frozen=True, slots=True)
class Monitored:
    """A model being watched."""

    row: int
    classes: Classes
    first_ms: int
    """Event time of its first outcome."""


class Watched:
    """Who has a row of the table, and of the registers beside it."""

    def __init__(self, spec: MonitorsSpec, table: ModelTable, registers: Sequence[Register]) -> None:
        self._spec = spec
        self._table = table
        self._registers = registers
        self._index: dict[str, tuple[int, Classes]] = {}
        self.models: dict[str, Monitored] = {}
        """In the order in which they appeared; `enter` and `retire` change it."""
        self.over_limit = {"classes": 0, "models": 0}
        """By limit: outcomes with a class beyond `max_classes`, outcomes not evaluated for want of a row."""

    def enter(self, model: str, first_ms: int) -> tuple[int, Classes]:
        """Give a new model a row; raises TableFull without one."""
        row = self._table.add_model()
        self._clear(row)
        classes = Classes(self._spec.max_classes)
        self.models[model] = Monitored(row, classes, first_ms)
        for index, weighting in enumerate(self._spec.weighting):
            if weighting.drift_signal == "reference" and weighting.reference == model:
                self._table.follow(index, row)
        self._index[model] = entry = (row, classes)
        return entry

    def retire(self, model: str) -> None:
        """Forget a model and free its row."""
        row = self.models.pop(model).row
        del self._index[model]
        self._table.retire(row)
        self._clear(row)

    def indexed(self, outcomes: Sequence[Outcome]) -> Batch:
        """Rows and class indices of outcomes; those of models without a row are counted and left out."""
        rows: list[int] = []
        truth: list[int] = []
        predicted: list[int] = []
        known: list[int] = []
        scored: dict[int, list[tuple[int, float]]] = {}
        index, limit, most = self._index, self._spec.max_classes, self._spec.shadow_max_classes
        complete = True
        for outcome in outcomes:
            try:
                row, classes = index[outcome.model]
            except KeyError:
                row, classes = self._enter_or_refuse(outcome)
                complete = complete and row >= 0
            rows.append(row)
            truth.append(classes[outcome.truth])
            predicted.append(classes[outcome.predicted])
            label = outcome.known
            known.append(-1 if label is None else classes.get(label, limit + 1))
            scores = outcome.scores
            if scores and row >= 0 and len(scores) <= most and len(classes) <= most:
                scored[len(rows) - 1] = classes.score_indices(scores)
        columns = [np.array(column, np.int32) for column in (rows, truth, predicted, known)]
        batch = Batch(outcomes, columns[0], columns[1], columns[2], columns[3])
        kept = np.flatnonzero(batch.rows >= 0).tolist() if scored else []
        if not complete:
            batch = batch.only(batch.rows >= 0)
        batch = replace(batch, scores=score_columns(kept, scored)) if scored else batch
        self.over_limit["classes"] += fold_overflow(batch, limit)
        return batch

    def _enter_or_refuse(self, outcome: Outcome) -> tuple[int, Classes]:
        """A row for the model of an outcome; row -1, counted, if the table is full."""
        try:
            return self.enter(outcome.model, outcome.at_ms)
        except TableFull:
            self.over_limit["models"] += 1
            return -1, Classes(self._spec.max_classes)

    def _clear(self, row: int) -> None:
        for register in self._registers:
            register.clear(row)
