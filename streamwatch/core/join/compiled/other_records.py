"""Records that are neither prediction nor label; each is counted when the join reaches its row."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from streamwatch.core.events import Event, Invalid, NullRecord, WrongFold
from streamwatch.core.fold_names import model_of
from streamwatch.core.join.compiled.layout import LABEL, Records
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.models import JoinModels


class OtherRecords:
    """Counters of null and invalid records, as in `JoinCounters`.

    Parameters
    ----------
    join_models
        Models that have a place.
    folds
        Whether models may predict in folds.
    """

    __slots__ = (
        "_folds",
        "_join_models",
        "_uncounted",
        "invalid",
        "invalid_by_model",
        "null",
        "wrong_folds",
    )

    def __init__(self, join_models: JoinModels, *, folds: bool) -> None:
        self._join_models = join_models
        self._folds = folds
        self._uncounted: deque[tuple[int, NullRecord | Invalid | WrongFold]] = deque()
        self.wrong_folds = 0
        self.null: dict[str, int] = {}
        self.invalid: dict[str, dict[str, int]] = {}
        self.invalid_by_model: dict[str, int] = {}

    def restore(self, counters: JoinCounters) -> None:
        """Continue from these counters."""
        self.null = dict(counters.null_records)
        self.invalid = {topic: dict(reasons) for topic, reasons in counters.records_invalid.items()}
        self.invalid_by_model = dict(counters.model_records_invalid)
        self.wrong_folds = counters.predictions_wrong_fold

    def forget(self, idle: Sequence[str]) -> None:
        """Drop the counts of models that retired, unless a fold of them is left."""
        alive = {model_of(name) for name in self._join_models.models} if idle else set[str]()
        for name in idle:
            if model_of(name) not in alive:
                self.invalid_by_model.pop(model_of(name), None)

    def note(self, rows: Records, places: Sequence[int], events: Sequence[Event]) -> None:
        """Store null and invalid events, and those of wrong folds, until `count_up_to` reaches their places.

        `rows` are the events' rows.
        """
        for number in np.flatnonzero(rows["side"] > LABEL).tolist():
            event = events[number]
            if isinstance(event, NullRecord | Invalid | WrongFold):
                self._uncounted.append((places[number], event))

    def count_up_to(self, stop: int) -> None:
        """Count those before row `stop`; whether a model has a place can change from row to row."""
        uncounted = self._uncounted
        while uncounted and uncounted[0][0] < stop:
            _, event = uncounted.popleft()
            if type(event) is NullRecord:
                self.null[event.topic] = self.null.get(event.topic, 0) + 1
            elif type(event) is WrongFold:
                self.wrong_folds += 1
            elif type(event) is Invalid:
                invalid = self.invalid.setdefault(event.topic, {})
                invalid[event.reason] = invalid.get(event.reason, 0) + 1
                if event.model is not None:
                    self._count_by_model(event.model)

    def _count_by_model(self, model: str) -> None:
        """Count an invalid record by its model, as `JoinRules` does."""
        counts, places = self.invalid_by_model, self._join_models
        if model in counts or len(counts) < places.maximum or self._has_place(model):
            counts[model] = counts.get(model, 0) + 1

    def _has_place(self, model: str) -> bool:
        """Tell whether a model, or a fold of it, has a place in the join."""
        models = self._join_models.models
        return model in models or (self._folds and any(model_of(name) == model for name in models))
