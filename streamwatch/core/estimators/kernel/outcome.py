"""One outcome of one model: its flags, and what all estimators but verdicts and recovery learn from it."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.detectors.chain import observe_all
from streamwatch.core.estimators.forgetting.buckets import check
from streamwatch.core.estimators.forgetting.drift_weighted import (
    LABELS,
    follow,
    restart,
    restart_at_rise,
    weigh,
)
from streamwatch.core.estimators.forgetting.label_drift import watch_labels
from streamwatch.core.estimators.forgetting.mechanisms import fade, slide
from streamwatch.core.estimators.kernel.shadow import predict_and_learn
from streamwatch.core.estimators.memory.flags import own_flags
from streamwatch.core.estimators.memory.ring import packed
from streamwatch.core.estimators.memory.totals import add
from streamwatch.core.jit import hot


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
