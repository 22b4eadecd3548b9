"""Evaluation of a batch with the values of the estimators after every outcome; slower than a fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.agreement import Totals
from streamwatch.core.estimators.detectors.alarm import AlarmRow, alarm_rows
from streamwatch.core.estimators.kernel import fold
from streamwatch.core.estimators.kernel.batch import Batch
from streamwatch.core.estimators.kernel.layout import Layout
from streamwatch.core.estimators.kernel.pools import Pools
from streamwatch.core.estimators.kernel.readout import Floats, totals_of
from streamwatch.core.estimators.kernel.record import Records
from streamwatch.core.estimators.memory.totals import SUMS
from streamwatch.core.estimators.recovery.state import TRACED
from streamwatch.core.estimators.verdicts.state import REPORTED
from streamwatch.core.specs import MonitorsSpec


@dataclass(frozen=True, slots=True)
class Trace:
    """Evaluated batch of n outcomes, with the values of the model's estimators after each."""

    alarms: list[AlarmRow]
    totals: tuple[Totals, ...]
    """Totals per configured forgetting mechanism; each is over the n outcomes instead of over models."""
    statistic: Floats
    """Shape (detectors, n); NaN where undefined."""
    threshold: Floats
    alarmed: NDArray[np.bool_]
    """Shape (detectors, n): whether the detector raised an alarm at this outcome."""
    warned: NDArray[np.bool_]
    """Shape (detectors, n): whether it was between warning and alarm level.

    False for those without warnings.
    """
    weighted: Floats
    """Drift-weighted accuracy, shape (weightings, n)."""
    weighted_n_eff: Floats
    reported: Records
    """Records of verdicts (`REPORTED`), shape (opponents, n)."""
    recovery: Records
    """Records of recovery (`TRACED`), shape (n,); (0,) without a fading factor."""


def traced(spec: MonitorsSpec, layout: Layout, pools: Pools, batch: Batch, alarms: Records) -> Trace:
    """Evaluate a batch; pools and `alarms` must have room for it."""
    n = len(batch.rows)
    classes = int(pools.spans[batch.rows].max(initial=0))
    sums = np.zeros((layout.columns, SUMS + 1, n))
    counts = np.zeros((layout.columns, 3, n, classes))
    shape = (len(spec.detectors), n)
    statistic, threshold = np.full(shape, np.nan), np.full(shape, np.nan)
    warned = np.zeros(shape, np.bool_)
    weighted = np.zeros((2, len(spec.drift_weighted), n))
    reported = np.zeros((len(layout.opponents), n), REPORTED)
    recovery = np.zeros(n if layout.fading else 0, TRACED)
    count = fold.trace(
        pools.models,
        pools.next_fold,
        pools.class_counts,
        pools.rings,
        pools.blocks,
        pools.block_allocator,
        pools.shadows,
        pools.shadow_allocator,
        layout.parameters,
        layout.utilities,
        batch.rows,
        batch.true_class,
        batch.predicted_class,
        batch.label_at_prediction,
        batch.event_ms,
        *batch.scores,
        alarms,
        sums,
        counts,
        statistic,
        threshold,
        np.zeros(shape, np.int64),
        warned,
        weighted,
        reported,
        recovery,
    )
    found = alarm_rows(alarms, int(count))
    alarmed = np.zeros(shape, np.bool_)
    for alarm in found:
        if alarm.detector >= len(spec.detectors):
            continue
        alarmed[alarm.detector, alarm.position] = True
    classes = int(pools.models["classes"][batch.rows].max(initial=0))
    totals = tuple(totals_of(sums[c], counts[c, :, :, :classes]) for c in layout.column_of)
    return Trace(
        found, totals, statistic, threshold, alarmed, warned, weighted[0], weighted[1], reported, recovery
    )
