"""Current values of the estimators of some models, as arrays over these models."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors.chain import show_all
from streamwatch.core.estimators.forgetting.mechanisms import settle
from streamwatch.core.estimators.kernel.pools import Pools
from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.core.estimators.memory import (
    AUGMENTED,
    CORRECTED,
    HITS,
    LABEL_AT_PREDICTION_PAIR,
    LABEL_AT_PREDICTION_REPEAT,
    LOST_TWICE,
    MAJORITY,
    MARKED,
    PAIRS,
    REPEATS,
    SCORED,
    SHADOWED,
    SUMS,
    TRANSITION,
    N,
    gather,
)
from streamwatch.core.estimators.verdicts.leads import settle_verdicts
from streamwatch.core.jit import entry

# Compiled functions for reading models: deferred steps are taken, totals and detectors written to arrays.


@entry
def collect(pools, rows, column, sums, counts):
    """Write the totals of m models under one mechanism to `sums` (SUMS + 1, m) and `counts` (3, m, K)."""
    for t in range(rows.shape[0]):
        m = pools.models[rows[t]]
        settle(m, pools.parameters[0], pools.class_counts, pools.rings, rows[t])
        gather(m, column, pools.class_counts, sums, counts, t)


@entry
def prepare(pools, rows, everything, alarms):
    """Bring the verdicts of some models up to date with their latest outcomes.

    With `everything`, all other deferred steps are taken as well, so that the models' states depend on their
    outcomes only. This changes no verdict, so nothing is written to `alarms`.
    """
    for t in range(rows.shape[0]):
        m, p = pools.models[rows[t]], pools.parameters[0]
        if everything:
            settle(m, p, pools.class_counts, pools.rings, rows[t])
        settle_verdicts(pools.models, p, rows[t], m.outcomes, 0, 0, alarms, 0)


@entry
def show(pools, rows, statistic, threshold, alarms, warned):
    """Write the state of all detectors of some models to arrays of shape (detectors, m)."""
    for t in range(rows.shape[0]):
        m = pools.models[rows[t]]
        show_all(m, pools.parameters[m.detector_row], statistic, threshold, alarms, warned, t)


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


def read_totals(pools: Pools, rows: Integers, column: int) -> Totals:
    """Read the totals of m models under the mechanism of one column."""
    classes = int(pools.models["classes"][rows].max(initial=0))
    sums = np.zeros((SUMS + 1, len(rows)))
    counts = np.zeros((3, len(rows), classes))
    collect(pools.arrays, rows, column, sums, counts)
    return totals_of(sums, counts)


def read_detectors(pools: Pools, rows: Integers, detectors: int) -> Detectors:
    """Read the state of all detectors, `detectors` in number, of m models."""
    shape = (detectors, len(rows))
    statistic, threshold = np.full(shape, np.nan), np.full(shape, np.nan)
    alarms, warned = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    show(pools.arrays, rows, statistic, threshold, alarms, warned)
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
