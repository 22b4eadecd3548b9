"""What the estimators of some models say now, as arrays over these models."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.kernel import fold as kernel
from streamwatch.core.kernel.marks import (
    AUGMENTED,
    CORRECTED,
    KNOWN_PAIR,
    KNOWN_REPEAT,
    LOST_TWICE,
    SCORED,
    SHADOWED,
    TRANSITION,
)
from streamwatch.core.kernel.pools import Pools
from streamwatch.core.kernel.records import Layout
from streamwatch.core.kernel.totals import HITS, MARKED, PAIRS, REPEATS, SUMS, N
from streamwatch.core.measures import Totals

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class Detectors(NamedTuple):
    """State of all detectors of m models, each array (detectors, m)."""

    statistic: Floats
    """NaN where undefined."""
    threshold: Floats
    alarms: Integers
    """How many so far."""
    warned: NDArray[np.bool_]
    """Whether it was warning at the model's last outcome."""


def read_totals(pools: Pools, layout: Layout, rows: Integers, column: int) -> Totals:
    """Totals of models under the mechanism of one column."""
    classes = int(pools.models["classes"][rows].max(initial=0))
    sums = np.zeros((SUMS + 1, len(rows)))
    counts = np.zeros((3, len(rows), classes))
    kernel.collect(pools.models, pools.cells, pools.rings, layout.parameters, rows, column, sums, counts)
    return totals_of(sums, counts)


def read_detectors(pools: Pools, layout: Layout, rows: Integers, detectors: int) -> Detectors:
    """State of all detectors, of which there are so many."""
    shape = (detectors, len(rows))
    statistic, threshold = np.full(shape, np.nan), np.full(shape, np.nan)
    alarms, warned = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    kernel.show(pools.models, layout.parameters, rows, statistic, threshold, alarms, warned)
    return Detectors(statistic, threshold, alarms, warned)


def read_weighted(pools: Pools, rows: Integers, weighting: int) -> tuple[Floats, Floats]:
    """Drift-weighted accuracy (NaN before the first outcome) and its n_eff, each (m,)."""
    state = pools.models["weighting"][rows, weighting]
    seen = state["weight"] > 0.0
    accuracy, n_eff = np.full(len(state), np.nan), np.zeros(len(state))
    np.divide(state["hits"], state["weight"], out=accuracy, where=seen)
    np.divide(state["weight"] ** 2, state["squares"], out=n_eff, where=seen)
    return accuracy, n_eff


def totals_of(sums: Floats, counts: Floats) -> Totals:
    """Totals of what `gather` wrote; two shadow classifiers predict the same outcomes: one weight."""
    truth, predicted, agreed = counts
    marks = sums[MARKED:]
    return Totals(
        n=sums[N],
        hits=sums[HITS],
        repeats=sums[REPEATS],
        pairs=sums[PAIRS],
        n_eff=sums[SUMS],
        truth=truth,
        predicted=predicted,
        agreed=agreed,
        lost_twice=marks[LOST_TWICE],
        known_repeats=marks[KNOWN_REPEAT],
        known_pairs=marks[KNOWN_PAIR],
        corrected=marks[CORRECTED],
        scored=marks[SCORED],
        augmented=marks[AUGMENTED],
        augmented_n=marks[SHADOWED],
        transition=marks[TRANSITION],
        transition_n=marks[SHADOWED],
    )
