"""Current values of the estimators of some models, as arrays over these models."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.agreement import Totals
from streamwatch.core.estimators.kernel import reading
from streamwatch.core.estimators.kernel.layout import Layout
from streamwatch.core.estimators.kernel.pools import Pools
from streamwatch.core.estimators.memory.flags import (
    AUGMENTED,
    CORRECTED,
    LABEL_AT_PREDICTION_PAIR,
    LABEL_AT_PREDICTION_REPEAT,
    LOST_TWICE,
    MAJORITY,
    SCORED,
    SHADOWED,
    TRANSITION,
)
from streamwatch.core.estimators.memory.totals import HITS, MARKED, PAIRS, REPEATS, SUMS, N

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class Detectors(NamedTuple):
    """State of all detectors of m models, each array (detectors, m)."""

    statistic: Floats
    """NaN where undefined."""
    threshold: Floats
    alarms: Integers
    """Number of alarms so far."""
    warned: NDArray[np.bool_]
    """Whether the detector was warning at the model's latest outcome."""


def read_totals(pools: Pools, layout: Layout, rows: Integers, column: int) -> Totals:
    """Read the totals of m models under the mechanism of one column."""
    classes = int(pools.models["classes"][rows].max(initial=0))
    sums = np.zeros((SUMS + 1, len(rows)))
    counts = np.zeros((3, len(rows), classes))
    reading.collect(
        pools.models, pools.class_counts, pools.rings, layout.parameters, rows, column, sums, counts
    )
    return totals_of(sums, counts)


def read_detectors(pools: Pools, layout: Layout, rows: Integers, detectors: int) -> Detectors:
    """Read the state of all detectors, `detectors` in number, of m models."""
    shape = (detectors, len(rows))
    statistic, threshold = np.full(shape, np.nan), np.full(shape, np.nan)
    alarms, warned = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    reading.show(pools.models, layout.parameters, rows, statistic, threshold, alarms, warned)
    return Detectors(statistic, threshold, alarms, warned)


def read_weighted(pools: Pools, rows: Integers, drift_weighted: int) -> tuple[Floats, Floats]:
    """Read drift-weighted accuracy (NaN before the first outcome) and its n_eff, each (m,)."""
    state = pools.models["drift_weighted"][rows, drift_weighted]
    seen = state["weight"] > 0.0
    accuracy, n_eff = np.full(len(state), np.nan), np.zeros(len(state))
    np.divide(state["hits"], state["weight"], out=accuracy, where=seen)
    np.divide(state["weight"] ** 2, state["squares"], out=n_eff, where=seen)
    return accuracy, n_eff


def totals_of(sums: Floats, counts: Floats) -> Totals:
    """Build `Totals` from what `gather` wrote.

    The transition baseline, the Temporally Augmented classifier and the prequential majority predict the same
    outcomes, so one sum is the weight of all three.
    """
    true_class, predicted_class, agreed = counts
    flags = sums[MARKED:]
    return Totals(
        n=sums[N],
        hits=sums[HITS],
        repeats=sums[REPEATS],
        pairs=sums[PAIRS],
        n_eff=sums[SUMS],
        true_class=true_class,
        predicted_class=predicted_class,
        agreed=agreed,
        lost_twice=flags[LOST_TWICE],
        label_at_prediction_repeats=flags[LABEL_AT_PREDICTION_REPEAT],
        label_at_prediction_pairs=flags[LABEL_AT_PREDICTION_PAIR],
        corrected=flags[CORRECTED],
        scored=flags[SCORED],
        augmented=flags[AUGMENTED],
        augmented_n=flags[SHADOWED],
        transition=flags[TRANSITION],
        transition_n=flags[SHADOWED],
        majority=flags[MAJORITY],
        majority_n=flags[SHADOWED],
    )
