"""Details of models for the API that are not series: classes, time of the first outcome, confusion, folds.

The state of all models is read when a report is built, and a model's document is built from it when the
document is requested: a report is built every second, and hardly anybody ever requests all models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Final, TypeAlias

import numpy as np

from streamwatch.core.estimators.folds.report import joined_details
from streamwatch.core.estimators.index import utility_of
from streamwatch.core.estimators.measures.measures import accuracy
from streamwatch.core.estimators.names import Details, Slice, confusion_document
from streamwatch.core.estimators.registers import names_of
from streamwatch.core.estimators.state import EstimatorState
from streamwatch.core.metrics.layered import DetailsInParts
from streamwatch.core.records.events import SEPARATOR, fold_of

_SLICE_MODELS: Final = 500
"""Number of models whose details are read at once, in several turns of the event loop."""


_Read: TypeAlias = Callable[[int, Collection[str] | None], Mapping[str, object]]
"""Function from a model's index among some models, and the parts that are needed, to its details."""


class ModelDetails(DetailsInParts):
    """Details by model; each document is built when it is looked up."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[_Read, int]] = {}

    def add(self, models: Sequence[str], read: _Read) -> None:
        """Add details of some models, as `_read` returned them."""
        self._read.update(zip(models, zip(repeat(read), range(len(models))), strict=True))

    def with_parts(self, model: str, parts: Collection[str] | None) -> Mapping[str, object]:
        """Build the details of a model; those of a model that predicts in folds always have all parts."""
        read, index = self._read[model]
        return read(index, parts)

    def __contains__(self, model: object) -> bool:
        return model in self._read  # without making a document

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


def details_in_slices(state: EstimatorState) -> Generator[None, None, ModelDetails]:
    """Collect the details of all models, yielding between slices of models.

    Models that retire in the meantime are left out.
    """
    details = ModelDetails()
    index = state.index
    all_models = index.slices()
    models = [one for one in all_models if SEPARATOR not in one.model]
    for start in range(0, len(models), _SLICE_MODELS):
        chosen = models[start : start + _SLICE_MODELS]
        if index.slices() is not all_models:
            chosen = [one for one in chosen if index.has(one)]
        if chosen:
            read = yield from _read(state, chosen, headlines=True)
            details.add([one.model for one in chosen], read)
        yield
    for name in sorted(index.folds):
        slots = [(fold, index.models[fold]) for fold in index.folds.get(name, ())]
        if slots:
            chosen = [Slice(fold, slot.row, slot.classes) for fold, slot in slots]
            of_folds = yield from _read(state, chosen, headlines=False)
            joined = joined_details([of_folds(number, None) for number in range(len(chosen))])
            document = {**joined, **details.get(name, {}), "folds": _fold_accuracies(state, name)}
            document |= _judged_by(state, name)
            details.add([name], partial(_whole, document))
        yield
    return details


def _whole(document: Mapping[str, object], index: int, parts: Collection[str] | None) -> Mapping[str, object]:
    """Return a document that has been built."""
    del index, parts
    return document


def _read(state: EstimatorState, chosen: Sequence[Slice], *, headlines: bool) -> Generator[None, None, _Read]:
    """Read the state from which the documents of some models are made, yielding between its parts.

    The models must not change then.
    """
    rows = np.array([one.row for one in chosen], np.int64)
    sizes = list(map(len, [one.classes for one in chosen]))
    first_ms = [state.index.models[one.model].first_ms for one in chosen]
    confusions = state.table.confusions(rows)
    yield
    recoveries = state.table.recovery_documents(rows)
    of_registers: list[tuple[str, Details]] = []
    for name, register in zip(names_of(state.spec), state.registers, strict=True):
        yield
        of_registers.append((name, register.details(chosen)))
    judging = state.judging if headlines else None
    headline_at = None if judging is None else judging.headlines(rows.tolist())

    def document(index: int, parts: Collection[str] | None) -> dict[str, object]:
        one = chosen[index]
        found: dict[str, object] = {
            "classes": one.classes.names(folded=False)[: sizes[index]],
            "first_seen_timestamp_seconds": first_ms[index] / 1000.0,
        }
        if (parts is None or "confusion" in parts) and (counts := confusions[index]) is not None:
            found["confusion"] = confusion_document(counts, one.classes)
        if recoveries is not None and (parts is None or "recovery" in parts):
            found["recovery"] = recoveries(index)
        for name, details in of_registers:
            if parts is None or name in parts:
                found |= details(index)
        if judging is not None and headline_at is not None and judging.gives_headline(one.model):
            # Models whose headline is always the verdict in the order of labels have no such document.
            found["headline"] = headline_at(index) or {"basis": "labels"}
        return found | (_judged_by(state, one.model) if headlines else {})

    return document


def _judged_by(state: EstimatorState, model: str) -> dict[str, object]:
    """Utility that a model is judged by; empty where that is accuracy."""
    kind = utility_of(state.spec, model).kind
    return {} if kind == "accuracy" else {"utility": kind}


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
