"""Streams of outcomes with drift and temporal dependence, and a table wrapped for tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.admission import Scores
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import MonitorsSpec

Ints = NDArray[np.int32]


def drifting(n: int, classes: int, seed: int, every: int = 300, stationary: int = 0) -> tuple[Ints, Ints]:
    """Labels that repeat in runs, classes that appear one after the other, and an error of .1 or .6.

    After a stationary beginning it jumps from one to the other every so often.
    """
    rng = np.random.default_rng(seed)
    seen = 2 + (np.arange(n) * (classes - 1)) // n
    true_class = np.zeros(n, np.int32)
    for t in range(1, n):
        true_class[t] = true_class[t - 1] if rng.random() < 0.4 else rng.integers(0, seen[t])
    phase = np.maximum(0, np.arange(n) - stationary) // every
    error = np.where(phase % 2 == 0, 0.1, 0.6)
    other = (rng.random(n) * seen).astype(np.int32)
    return true_class, np.where(rng.random(n) < error, other, true_class).astype(np.int32)


def late_labels(true_class: Ints, seed: int) -> Ints:
    """A label known at each prediction: of some outcomes earlier, by chance; none at first."""
    delays = np.random.default_rng(seed).integers(1, 12, len(true_class))
    position = np.arange(len(true_class)) - delays
    return np.where(position < 0, -1, true_class[position]).astype(np.int32)


def some_scores(true_class: Ints, seed: int) -> Scores:
    """Scores for half of the outcomes, of up to four classes below the true one, with ties and zeros."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, len(true_class)) * (rng.random(len(true_class)) < 0.6)
    classes = [
        np.maximum(0, y - rng.permutation(max(4, k))[:k]) for y, k in zip(true_class, sizes, strict=True)
    ]
    classes = [np.array(list(dict.fromkeys(c.tolist())), np.int32) for c in classes]
    offsets = np.cumsum([0, *map(len, classes)])
    values = np.round(rng.random(offsets[-1]), 1)
    return Scores(offsets, np.concatenate(classes).astype(np.int32), values)


def scores_in(scores: Scores, part: slice) -> Scores:
    """Scores of some consecutive outcomes."""
    offsets = scores.offsets[part.start : part.stop + 1]
    values = slice(offsets[0], offsets[-1])
    return Scores(offsets - offsets[0], scores.classes[values], scores.values[values])


def table_of(spec: MonitorsSpec, models: int = 1) -> ModelTable:
    """A table with this many models, in rows 0, 1, …; the first is the reference of all."""
    table = ModelTable(spec)
    for _ in range(models):
        table.add_model()
    if models:
        follow(table, spec, 0)
    return table


def follow(table: ModelTable, spec: MonitorsSpec, row: int) -> None:
    """Let every weighting by reference follow the model in a row."""
    for index, drift_weighted in enumerate(spec.drift_weighted):
        if drift_weighted.drift_signal == "reference":
            table.follow(index, row)


def one_row(n: int, row: int = 0) -> Ints:
    """Rows of a batch for one model."""
    return np.full(n, row, np.int32)
