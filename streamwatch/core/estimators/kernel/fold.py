"""Hot loop: updates every estimator of every model in a batch, outcome by outcome; and its traced form."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.detectors.chain import show_all
from streamwatch.core.estimators.forgetting.mechanisms import settle
from streamwatch.core.estimators.kernel.admission import ADMITTED, admit
from streamwatch.core.estimators.kernel.outcome import flag_outcome, learn
from streamwatch.core.estimators.kernel.prefetch import NEAR_BYTES, prefetch_ahead
from streamwatch.core.estimators.memory.totals import columns_of, gather
from streamwatch.core.estimators.recovery.observe import copy_traced, observe_recovery
from streamwatch.core.estimators.verdicts.deferred import settle_verdicts
from streamwatch.core.estimators.verdicts.judge import judge
from streamwatch.core.estimators.verdicts.state import copy_reported
from streamwatch.core.jit import entry, without_refcount


@entry
def fold(
    models,
    spans,
    next_fold,
    class_counts,
    class_counts_allocator,
    rings,
    blocks,
    block_allocator,
    shadow_spans,
    shadows,
    shadow_allocator,
    parameters,
    utilities,
    max_classes,
    rows,
    true_class,
    predicted_class,
    label_at_prediction,
    event_ms,
    offsets,
    classes,
    values,
    alarms,
):
    """Evaluate a batch of outcomes in order; return (result of `admit`, number of alarm rows or position)."""
    models, class_counts, rings = (
        without_refcount(models),
        without_refcount(class_counts),
        without_refcount(rings),
    )
    blocks, block_allocator, alarms = (
        without_refcount(blocks),
        without_refcount(block_allocator),
        without_refcount(alarms),
    )
    shadows, shadow_allocator, label_at_prediction = (
        without_refcount(shadows),
        without_refcount(shadow_allocator),
        without_refcount(label_at_prediction),
    )
    rows, true_class, predicted_class = (
        without_refcount(rows),
        without_refcount(true_class),
        without_refcount(predicted_class),
    )
    offsets, classes, values = without_refcount(offsets), without_refcount(classes), without_refcount(values)
    utilities, event_ms = without_refcount(utilities), without_refcount(event_ms)
    next_fold = without_refcount(next_fold)
    verdict, position = admit(
        models,
        spans,
        class_counts,
        class_counts_allocator,
        shadow_spans,
        shadows,
        shadow_allocator,
        parameters,
        rows,
        true_class,
        predicted_class,
        offsets,
        classes,
        max_classes,
    )
    if verdict != ADMITTED:
        return verdict, position
    parameters = without_refcount(parameters)
    p = parameters[0]
    count = np.int64(0)  # typed from the start, or the functions it is passed to are compiled twice
    far = models.shape[0] * models.itemsize > NEAR_BYTES
    for i in range(rows.shape[0]):
        if far:
            prefetch_ahead(models, class_counts, rings, shadows, p, rows, true_class, predicted_class, i)
        m = models[rows[i]]
        y, y_hat = true_class[i], predicted_class[i]
        first = count
        flags = flag_outcome(
            m, shadows, shadow_allocator, p, y, y_hat, label_at_prediction[i], offsets, classes, values, i
        )
        count = judge(
            models,
            next_fold,
            class_counts,
            utilities,
            p,
            y,
            y_hat,
            label_at_prediction[i],
            flags,
            event_ms[i],
            i,
            rows[i],
            alarms,
            count,
        )
        count = learn(
            models,
            class_counts,
            rings,
            blocks,
            block_allocator,
            p,
            parameters[m.detector_row],
            rows[i],
            y,
            y_hat,
            flags,
            i,
            alarms,
            count,
        )
        observe_recovery(m, p, event_ms[i], alarms, first, count)
    return verdict, count


@entry
def trace(
    models,
    next_fold,
    class_counts,
    rings,
    blocks,
    block_allocator,
    shadows,
    shadow_allocator,
    parameters,
    utilities,
    rows,
    true_class,
    predicted_class,
    label_at_prediction,
    event_ms,
    offsets,
    classes,
    values,
    alarms,
    sums,
    counts,
    statistic,
    threshold,
    alarms_so_far,
    warned,
    weighted,
    reported,
    recovery,
):
    """Evaluate outcomes as `fold` does, and write the model's totals, detectors and verdicts after each.

    Written for every outcome t: `sums` (columns, SUMS + 1, n), `counts` (columns, 3, n, K), the detectors'
    arrays (detectors, n), `weighted` (2, weightings, n), `reported` (opponents, n), `recovery` (n,), or
    (0,) without a fading factor. Returns the number of alarms.
    """
    p = parameters[0]
    count = np.int64(0)
    for t in range(rows.shape[0]):
        m = models[rows[t]]
        y, y_hat = true_class[t], predicted_class[t]
        first = count
        flags = flag_outcome(
            m, shadows, shadow_allocator, p, y, y_hat, label_at_prediction[t], offsets, classes, values, t
        )
        count = judge(
            models,
            next_fold,
            class_counts,
            utilities,
            p,
            y,
            y_hat,
            label_at_prediction[t],
            flags,
            event_ms[t],
            t,
            rows[t],
            alarms,
            count,
        )
        count = learn(
            models,
            class_counts,
            rings,
            blocks,
            block_allocator,
            p,
            parameters[m.detector_row],
            rows[t],
            y,
            y_hat,
            flags,
            t,
            alarms,
            count,
        )
        observe_recovery(m, p, event_ms[t], alarms, first, count)
        settle(m, p, class_counts, rings, rows[t])
        for column in range(columns_of(m)):
            gather(m, column, class_counts, sums[column], counts[column], t)
        show_all(m, parameters[m.detector_row], statistic, threshold, alarms_so_far, warned, t)
        for j in range(len(m.drift_weighted)):
            s = m.drift_weighted[j]
            weighted[0, j, t] = s.hits / s.weight
            weighted[1, j, t] = s.weight * s.weight / s.squares
        settle_verdicts(models, p, rows[t], m.outcomes, event_ms[t], t, alarms, count)
        for j in range(len(m.verdicts)):
            copy_reported(m.pace[j], m.verdicts[j], reported[j, t])
        for k in range(len(m.recovery)):
            copy_traced(m.recovery[k], recovery[t])
    return count
