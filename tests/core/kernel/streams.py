"""Streams of outcomes with drift and temporal dependence, and a table wrapped for tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.kernel.detectors.ddm import DdmSpec
from streamwatch.core.kernel.scores import Scores
from streamwatch.core.kernel.table import ModelTable
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)

EVERYTHING = MonitorsSpec(
    forgetting=(
        LandmarkSpec(),
        FadingSpec(0.999),
        FadingSpec(0.6),
        SlidingSpec(50),
        SlidingSpec(7),
        AdwinSpec(),
        AdwinSpec(delta=0.05, min_subwindow=7, clock=1),
    ),
    detectors=(
        PageHinkleySpec(threshold=5.0),
        AdwinDriftSpec(),
        PageHinkleySpec(
            "both", tolerance=0.01, threshold=4.0, alpha=0.99, min_outcomes=10, form="paper", direction="both"
        ),
        PageHinkleySpec("down", threshold=3.0, alpha=1.0, direction="down"),
        AdwinDriftSpec("adwin_both", delta=0.05, min_subwindow=7, clock=1, direction="both"),
        AdwinDriftSpec("adwin_down", delta=0.1, direction="down"),
        PageHinkleySpec("rate", tolerance=0.001, threshold=1.5, alpha=1.0, input="error_rate"),
        PageHinkleySpec(
            "rate_both", tolerance=0.001, threshold=1.0, form="paper", direction="both", input="error_rate"
        ),
        DdmSpec(),
        DdmSpec("ddm_early", min_outcomes=10, warning_level=1.5, alarm_level=2.0),
    ),
    weighting=(
        DriftWeightedSpec(),
        DriftWeightedSpec(w_avg=2.0, delta=0.05),
        DriftWeightedSpec(w_avg=4.0, alpha=0.99),
        DriftWeightedSpec(drift_signal="labels", delta=0.1),
        DriftWeightedSpec(drift_signal="reference", reference="first", alpha=0.999),
    ),
    max_models=6,
    max_classes=40,
)
"""Several of every kind, none at its default count, some sharing a window."""

Ints = NDArray[np.int32]


def drifting(n: int, classes: int, seed: int, every: int = 300, stationary: int = 0) -> tuple[Ints, Ints]:
    """Labels that repeat in runs, classes that appear one after the other, and an error of .1 or .6.

    After a stationary beginning it jumps from one to the other every so often.
    """
    rng = np.random.default_rng(seed)
    seen = 2 + (np.arange(n) * (classes - 1)) // n
    truth = np.zeros(n, np.int32)
    for t in range(1, n):
        truth[t] = truth[t - 1] if rng.random() < 0.4 else rng.integers(0, seen[t])
    phase = np.maximum(0, np.arange(n) - stationary) // every
    error = np.where(phase % 2 == 0, 0.1, 0.6)
    other = (rng.random(n) * seen).astype(np.int32)
    return truth, np.where(rng.random(n) < error, other, truth).astype(np.int32)


def late_labels(truth: Ints, seed: int) -> Ints:
    """A label known at each prediction: of some outcomes earlier, by chance; none at first."""
    delays = np.random.default_rng(seed).integers(1, 12, len(truth))
    position = np.arange(len(truth)) - delays
    return np.where(position < 0, -1, truth[position]).astype(np.int32)


def some_scores(truth: Ints, seed: int) -> Scores:
    """Scores for half of the outcomes, of up to four classes below the true one, with ties and zeros."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, len(truth)) * (rng.random(len(truth)) < 0.6)
    classes = [np.maximum(0, y - rng.permutation(max(4, k))[:k]) for y, k in zip(truth, sizes, strict=True)]
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
    for index, weighting in enumerate(spec.weighting):
        if weighting.drift_signal == "reference":
            table.follow(index, row)


def one_row(n: int, row: int = 0) -> Ints:
    """Rows of a batch for one model."""
    return np.full(n, row, np.int32)
