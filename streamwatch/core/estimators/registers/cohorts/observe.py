"""Compiled loops over outcomes of all models, and over models whose outcomes are to be taken in."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.registers.cohorts.held import hold, take_held
from streamwatch.core.estimators.registers.cohorts.prefetch import (
    NEAR_BYTES,
    prefetch_ahead,
    prefetch_counts,
)
from streamwatch.core.estimators.registers.cohorts.state import MOST_CHANGES
from streamwatch.core.jit import entry


@entry
def observe(
    models,
    kinds,
    held,
    labels,
    by_costs,
    cost_classes,
    costs,
    parameters,
    rows,
    true_class,
    predicted_class,
    label_at_prediction,
    assumed,
    made,
    resolved_ms,
    waited_ms,
    start,
    changes,
):
    """Observe outcomes from `start` on, until there may be no room for more changes of verdicts.

    Parameters
    ----------
    models, kinds, held, labels, by_costs, cost_classes, costs
        Fields of a `State` (`kinds` are its `classes`); all but the last two are changed.
    parameters
        `PARAMETERS` (1,).
    rows, true_class, predicted_class, label_at_prediction, assumed, made, resolved_ms, waited_ms
        Columns of a `Batch`, (n,): int32 (the first four), bool, uint32, int64 (the last two).
    start
        Position of the first outcome.
    changes
        `CHANGE` records, written: at least `MOST_CHANGES`.

    Returns
    -------
    position, count
        Position of the first outcome that was not observed, and number of changes written.
    """
    p = parameters[0]
    count = 0
    n = rows.shape[0]
    far = models.shape[0] * models.itemsize > NEAR_BYTES
    for i in range(np.uint64(start), np.uint64(n)):  # unsigned indices need no check for negative ones
        if count + MOST_CHANGES > changes.shape[0]:
            return np.int64(i), count
        if far:
            prefetch_ahead(models, held, rows, np.int64(i))
        row = np.uint32(rows[i])
        waited = max(waited_ms[i], 0)
        is_full = hold(
            held[row],
            resolved_ms[i] - waited if p.by_prediction == 1 else resolved_ms[i],
            0 if p.by_prediction == 1 else waited,
            made[i],
            true_class[i],
            predicted_class[i],
            label_at_prediction[i],
            assumed[i],
        )
        if is_full:
            if far:
                prefetch_counts(models, kinds, held, p, row)
            count = take_held(
                models,
                kinds,
                held,
                labels,
                by_costs,
                cost_classes,
                costs,
                p,
                row,
                np.int64(i),
                changes,
                count,
            )
    return n, count


@entry
def take_all(models, kinds, held, labels, by_costs, cost_classes, costs, parameters, rows, changes):
    """Take in the held outcomes of the models in `rows`, int64 (m,); none of them changes a verdict."""
    p = parameters[0]
    for row in rows:
        if held[row].number > 0:
            take_held(
                models,
                kinds,
                held,
                labels,
                by_costs,
                cost_classes,
                costs,
                p,
                np.uint32(row),
                -1,
                changes,
                0,
            )
