"""Compiled functions for reading models: deferred steps are taken, totals and detectors written to arrays."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.detectors.chain import show_all
from streamwatch.core.estimators.forgetting.mechanisms import settle
from streamwatch.core.estimators.memory.totals import gather
from streamwatch.core.estimators.verdicts.deferred import settle_verdicts
from streamwatch.core.jit import entry


@entry
def collect(models, class_counts, rings, parameters, rows, column, sums, counts):
    """Write the totals of m models under one mechanism to `sums` (SUMS + 1, m) and `counts` (3, m, K)."""
    for t in range(rows.shape[0]):
        settle(models[rows[t]], parameters[0], class_counts, rings, rows[t])
        gather(models[rows[t]], column, class_counts, sums, counts, t)


@entry
def prepare_snapshot(models, class_counts, rings, parameters, row, alarms):
    """Take all deferred steps of a model, so that its state depends on its outcomes only."""
    settle(models[row], parameters[0], class_counts, rings, row)
    settle_verdicts(models, parameters[0], row, models[row].outcomes, 0, 0, alarms, 0)


@entry
def prepare_verdicts(models, parameters, rows, alarms):
    """Bring the verdicts of some models up to date with their latest outcomes.

    This changes no verdict, so nothing is written to `alarms`.
    """
    for t in range(rows.shape[0]):
        settle_verdicts(models, parameters[0], rows[t], models[rows[t]].outcomes, 0, 0, alarms, 0)


@entry
def show(models, parameters, rows, statistic, threshold, alarms, warned):
    """Write the state of all detectors of some models to arrays of shape (detectors, m)."""
    for t in range(rows.shape[0]):
        m = models[rows[t]]
        show_all(m, parameters[m.detector_row], statistic, threshold, alarms, warned, t)
