"""Outcomes of models as the register of cohorts takes them, and a register that takes few of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.register import Cohorts
from tests.core.estimators.registers.cohorts.streams import Outcomes

CLASSES = 12


def batch_of(outcomes: Outcomes, row: int = 0) -> Batch:
    """All outcomes of one model."""
    n = len(outcomes.at)
    return Batch(
        [],
        np.full(n, row, np.int32),
        outcomes.label.astype(np.int32),
        outcomes.predicted.astype(np.int32),
        outcomes.last.astype(np.int32),
        outcomes.at,
        outcomes.delay,
        np.zeros(n, np.bool_),
        (outcomes.made % 2**32).astype(np.uint32),
        outcomes.at,
        outcomes.delay,
    )


def part(batch: Batch, chosen: slice | np.ndarray) -> Batch:
    """Some of a batch."""
    columns = {
        name: getattr(batch, name)[chosen]
        for name in Batch.__dataclass_fields__
        if name not in {"outcomes", "scores"}
    }
    return replace(batch, **columns)


def merged(batches: Sequence[Batch], order: np.ndarray) -> Batch:
    """Outcomes of several models, in one order."""
    columns = {
        name: np.concatenate([getattr(each, name) for each in batches])[order]
        for name in Batch.__dataclass_fields__
        if name not in {"outcomes", "scores"}
    }
    return replace(batches[0], **columns)


def register_of(
    spec: CohortsSpec,
    models: int = 1,
    start: tuple[float, float] | None = None,
    classes: int = CLASSES,
) -> Cohorts:
    """Build a register; `start` are the predictions that evidence needs, and those per unit of φ."""
    register = Cohorts(replace(spec, max_classes=classes), models)
    if start is not None:
        register.parameters["least_predictions"], register.parameters["predictions_by_dispersion"] = start
    return register


def bytes_of_state(register: Cohorts, row: int) -> bytes:
    """All records of a row, once no outcomes are held."""
    state = register.taken_in([row])
    return state.models[row].tobytes() + state.classes[:, row].tobytes() + state.labels[row].tobytes()
