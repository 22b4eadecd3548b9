"""Details of models that are not series: classes, time of first outcome, confusion matrix, folds."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Final

import numpy as np

from streamwatch.core.estimators.confusion import confusion_document
from streamwatch.core.estimators.folds.report import joined_details
from streamwatch.core.estimators.measures.measures import accuracy
from streamwatch.core.estimators.models.index import ModelSlot
from streamwatch.core.estimators.state import EstimatorState
from streamwatch.core.fold_names import fold_of

_SLICE_MODELS: Final = 100


def details_in_slices(state: EstimatorState) -> Generator[None, None, dict[str, dict[str, object]]]:
    """Collect the details of all models, yielding between slices of models.

    Models that retire in the meantime are left out.
    """
    details: dict[str, dict[str, object]] = {}
    index = state.index
    for number, name in enumerate(sorted(index.models), 1):
        if (model := index.models.get(name)) is not None and fold_of(name) is None:
            details[name] = _details(state, model)
        if number % _SLICE_MODELS == 0:
            yield
    for name in sorted(index.folds):
        of_folds = [index.models[fold] for fold in index.folds.get(name, ())]
        if of_folds:
            joined = joined_details([_details(state, slot) for slot in of_folds])
            details[name] = {**joined, **details.get(name, {}), "folds": _fold_accuracies(state, name)}
        yield
    return details


def _details(state: EstimatorState, model: ModelSlot) -> dict[str, object]:
    details: dict[str, object] = {
        "classes": list(model.classes),
        "first_seen_timestamp_seconds": model.first_ms / 1000.0,
    }
    if (counts := state.table.confusion(model.row)) is not None:
        details["confusion"] = confusion_document(counts, model.classes)
    if (recovery := state.table.recovery_document(model.row)) is not None:
        details["recovery"] = recovery
    for register in state.registers:
        details |= register.details(model.row, model.classes)
    return details


def _fold_accuracies(state: EstimatorState, model: str) -> dict[str, dict[str, float]]:
    """Accuracy of each fold of a model now, by mechanism name and fold number."""
    rows = np.array(state.index.rows_of_folds(model), np.int64)
    numbers = [str(fold_of(name)) for name in state.index.folds[model]]
    found: dict[str, dict[str, float]] = {}
    for index, forgetting in enumerate(state.spec.forgetting):
        values = accuracy(state.table.totals(rows, index)).tolist()
        found[forgetting.name] = {
            number: value for number, value in zip(numbers, values, strict=True) if math.isfinite(value)
        }
    return found
