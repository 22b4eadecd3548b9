"""Streams of outcomes with drift and temporal dependence, and a table wrapped for tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    ),
    weighting=(DriftWeightedSpec(), DriftWeightedSpec(w_avg=2.0, delta=0.05)),
    max_models=6,
    max_classes=40,
)
"""Several of every kind, none at its default count, some sharing a window."""

Ints = NDArray[np.int32]


def drifting(
    n: int, classes: int, seed: int, every: int = 300, stationary: int = 0
) -> tuple[Ints, Ints]:
    """Labels that repeat in runs, classes that appear one after the other, and an error that jumps between .1 and .6.

    It jumps every so often after a stationary beginning.
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


def table_of(spec: MonitorsSpec, models: int = 1) -> ModelTable:
    """A table with this many models, in rows 0, 1, …"""
    table = ModelTable(spec)
    for _ in range(models):
        table.add_model()
    return table


def one_row(n: int, row: int = 0) -> Ints:
    """Rows of a batch for one model."""
    return np.full(n, row, np.int32)
