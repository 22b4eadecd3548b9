"""Hot loop: updates every estimator of every model in a batch, outcome by outcome."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.detectors.chain import observe_all, show_all
from streamwatch.core.estimators.forgetting.buckets import check
from streamwatch.core.estimators.forgetting.drift_weighted import (
    LABELS,
    follow,
    restart,
    restart_at_rise,
    weigh,
)
from streamwatch.core.estimators.forgetting.label_drift import watch_labels
from streamwatch.core.estimators.forgetting.mechanisms import fade, settle, slide
from streamwatch.core.estimators.kernel.admission import ADMITTED, admit
from streamwatch.core.estimators.kernel.prefetch import prefetch_ahead
from streamwatch.core.estimators.kernel.shadow import predict_and_learn
from streamwatch.core.estimators.memory.flags import own_flags
from streamwatch.core.estimators.memory.ring import packed
from streamwatch.core.estimators.memory.totals import add, columns_of, gather
from streamwatch.core.estimators.recovery.observe import copy_traced, observe_recovery
from streamwatch.core.estimators.verdicts.deferred import settle_verdicts
from streamwatch.core.estimators.verdicts.judge import judge
from streamwatch.core.estimators.verdicts.state import copy_reported
from streamwatch.core.jit import entry, hot, without_refcount


@hot
def flag_outcome(
    m,
    shadows,
    shadow_allocator,
    p,
    true_class,
    predicted_class,
    label_at_prediction,
    offsets,
    classes,
    values,
    i,
):
    """Compute the flags of outcome i of the batch, and let the shadow classifiers learn from it.

    Called before the model's other estimators take the outcome.
    """
    flags = own_flags(m, true_class, predicted_class, label_at_prediction)
    for j in range(len(m.shadow)):
        s = m.shadow[j]
        most = p.shadow_classes
        flags |= predict_and_learn(
            m, s, shadows, shadow_allocator, most, true_class, predicted_class, offsets, classes, values, i
        )
    return flags


@hot
def learn(
    models,
    class_counts,
    rings,
    blocks,
    block_allocator,
    p,
    detector_parameters,
    row,
    true_class,
    predicted_class,
    flags,
    position,
    alarms,
    count,
):
    """Add one outcome of one model to all of its estimators; return the new number of alarms.

    `p` holds the parameters shared by all models, `detector_parameters` those of this model's detectors.
    """
    m = models[row]
    hit = true_class == predicted_class
    paired = m.outcomes > 0
    repeat = paired and true_class == m.last
    m.classes = max(m.classes, true_class + 1, predicted_class + 1)
    rings[row, m.head] = packed(rings, true_class, predicted_class, flags)
    m.head = m.head + 1 if m.head + 1 < rings.shape[1] else 0
    m.last = true_class
    m.last_missed = not hit
    m.outcomes += 1
    m.errors += not hit

    for j in range(len(m.drift_weighted)):
        follow(models, m, row, j, p.drift_weighted[j])
        weigh(m.drift_weighted[j], p.drift_weighted[j].w_avg, p.drift_weighted[j].alpha, hit)
    for j in range(len(m.fading)):
        fade(m, j, p.fading[j].alpha, class_counts)
    add(m, true_class, predicted_class, flags, hit, repeat, paired, class_counts)
    for j in range(len(p.sliding)):
        slide(m, len(m.fading) + j, p.sliding[j].size, class_counts, rings, row)
    drifted = False
    for j in range(len(m.windows)):
        m.pending[j] += 1
        if m.pending[j] >= p.windows[j].clock:
            column = len(m.fading) + len(p.sliding) + j
            drifted |= check(m, j, column, p.windows[j], class_counts, rings, row, blocks, block_allocator)
    count = observe_all(m, detector_parameters, not hit, position, row, alarms, count)
    if drifted:
        for j in range(len(m.drift_weighted)):
            restart_at_rise(m, row, j, p.drift_weighted[j])
    for k in range(len(m.label_drift)):
        if watch_labels(m.label_drift[k], p.label_drift[k].delta, m.outcomes, true_class, repeat):
            for j in range(len(m.drift_weighted)):
                if p.drift_weighted[j].signal == LABELS and p.drift_weighted[j].window == k:
                    restart(m.drift_weighted[j], 1)
    return count


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
    for i in range(rows.shape[0]):
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
