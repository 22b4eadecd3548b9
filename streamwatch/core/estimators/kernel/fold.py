"""Hot loop: updates every estimator of every model in a batch, outcome by outcome; and its traced form."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors.chain import observe_all, show_all
from streamwatch.core.estimators.forgetting.adwin import SMALL_WINDOW_BYTES, check
from streamwatch.core.estimators.forgetting.drift_weighted import (
    LABELS,
    follow,
    restart,
    restart_at_rise,
    watch_labels,
    weigh,
)
from streamwatch.core.estimators.forgetting.mechanisms import DEFERRED, fade, settle, slide
from streamwatch.core.estimators.kernel.admission import ADMITTED, admit
from streamwatch.core.estimators.kernel.shadow import (
    augmented_row,
    predict_and_learn,
    prior_row,
    transition_row,
)
from streamwatch.core.estimators.memory import (
    AGREED,
    FALSE,
    MISSED,
    N,
    add,
    columns_of,
    gather,
    number_unadded,
    own_flags,
    packed,
    position_of,
    predicted_class_of,
    true_class_of,
)
from streamwatch.core.estimators.recovery import copy_traced, observe_recovery
from streamwatch.core.estimators.verdicts.detector import LAST
from streamwatch.core.estimators.verdicts.judge import judge
from streamwatch.core.estimators.verdicts.leads import (
    ANY_FULL,
    MAJORITY,
    ONE_OF,
    majority_column,
    settle_verdicts,
)
from streamwatch.core.estimators.verdicts.state import copy_reported
from streamwatch.core.jit import entry, hot, inner, prefetch

# One outcome of one model: its flags, and what all estimators but verdicts and recovery learn from it.


@hot
def flag_outcome(pools, m, p, batch, i):
    """Compute the flags of outcome i of the batch, and let the shadow classifiers learn from it.

    Called before the model's other estimators take the outcome.
    """
    flags = own_flags(m, batch.true_class[i], batch.predicted_class[i], batch.label_at_prediction[i])
    for j in range(len(m.shadow)):
        flags |= predict_and_learn(pools, m, m.shadow[j], p.shadow_classes, batch, i)
    return flags


@hot
def learn(pools, p, batch, i, flags, alarms, count):
    """Add outcome i of the batch to all other estimators of its model; return the new number of alarms.

    `p` holds the parameters shared by all models; those of a model's detectors are in a row of their own.
    """
    row, true_class, predicted_class = batch.rows[i], batch.true_class[i], batch.predicted_class[i]
    class_counts, rings = pools.class_counts, pools.rings
    m = pools.models[row]
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
        follow(pools.models, m, row, j, p.drift_weighted[j])
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
            blocks, allocator = pools.blocks, pools.block_allocator
            drifted |= check(m, j, column, p.windows[j], class_counts, rings, row, blocks, allocator)
    first = count
    count = observe_all(m, pools.parameters[m.detector_row], not hit, i, row, alarms, count)
    for k in range(first, count):
        alarms[k].errors = m.errors
    if drifted:
        for j in range(len(m.drift_weighted)):
            restart_at_rise(m, row, j, p.drift_weighted[j])
    for k in range(len(m.label_drift)):
        if watch_labels(m.label_drift[k], p.label_drift[k], m.outcomes, true_class, repeat):
            for j in range(len(m.drift_weighted)):
                if p.drift_weighted[j].signal == LABELS and p.drift_weighted[j].window == k:
                    restart(m.drift_weighted[j], 1)
    return count


@hot
def take_outcome(pools, p, batch, i, alarms, count):
    """Update every estimator of a model by outcome i of the batch; return the new number of alarms."""
    m = pools.models[batch.rows[i]]
    first = count
    flags = flag_outcome(pools, m, p, batch, i)
    count = judge(pools, p, batch, i, flags, alarms, count)
    count = learn(pools, p, batch, i, flags, alarms, count)
    observe_recovery(m, p, batch.event_ms[i], alarms, first, count)
    return count


# Prefetching: with thousands of models, every outcome would otherwise wait for memory.
#
# Three steps follow each other as addresses become known: 16 outcomes ahead the model's record, 8 ahead the
# class rows and ring entries that its header points to, 4 ahead the class rows of outcomes that a window
# will drop.


LINE = 64
NEAR_BYTES = 1 << 20
"""Size of all records of models up to which they stay in a core's cache, and nothing is prefetched."""
AHEAD = 16
"""Number of outcomes between prefetching a record and using it."""


@hot
def prefetch_counts(m, true_class, predicted_class, class_counts):
    """Prefetch the per-class counts that an outcome changes: one entry for a hit, two for a miss."""
    width = 8 * class_counts.shape[1]
    part = 8 * columns_of(m)
    if true_class == predicted_class:
        prefetch_ends(class_counts, (m.class_counts + true_class) * width + AGREED * part, part)
    else:
        prefetch_ends(class_counts, (m.class_counts + true_class) * width + MISSED * part, part)
        prefetch_ends(class_counts, (m.class_counts + predicted_class) * width + FALSE * part, part)


@hot
def prefetch_ends(array, start, size):
    """Prefetch both ends of a few doubles, `size` bytes that may lie across a line's end."""
    prefetch(array, start)
    prefetch(array, start + size - 8)


@hot
def prefetch_label(class_counts, m, k):
    """Prefetch the count of a class for the majority opponent."""
    prefetch(class_counts, 8 * ((m.class_counts + k) * class_counts.shape[1] + majority_column(class_counts)))


@inner
def prefetch_entries(m, age, number, rings, row):
    """Prefetch `number` ring entries of age `age` and older."""
    for older in range(age, min(age + number, rings.shape[1]), LINE // rings.itemsize):
        prefetch(rings, rings.itemsize * (row * rings.shape[1] + position_of(m.head, older, rings.shape[1])))


@hot
def prefetch_shadows(m, s, predicted_class, shadows):
    """Prefetch the rows of shadow counts that an outcome reads and changes."""
    prior = 8 * prior_row(s)
    transition = 8 * transition_row(s, m.last)
    augmented = 8 * augmented_row(s, m.last, predicted_class)
    for offset in range(0, 8 * (s.span + 1) + LINE, LINE):
        prefetch(shadows, prior + offset)
        prefetch(shadows, transition + offset)
        prefetch(shadows, augmented + offset)


@hot
def prefetch_verdicts(pools, m, p, row, true_class, predicted_class):
    """Prefetch what the outcome notes for verdicts, and verdict records if steps are likely to be taken.

    Those are the records of all opponents if deferred steps are likely to be due, and where none are deferred
    the records likely to change. To guess that, the opponent's answer is taken to be the leading class for
    the majority and the previous label for all others.
    """
    models = pools.models
    for k in range(len(m.waiting)):
        w = m.waiting[k]
        prefetch_label(pools.class_counts, m, true_class)
        start = row * models.itemsize
        if w.answering != 0:
            prefetch(models, start + p.times_start + 8 * (m.outcomes - w.settled))
            hit = int(predicted_class == true_class)
            if m.outcomes + 2 >= w.settled + w.due or ((w.noted[hit] + ONE_OF[p.kinds]) & ANY_FULL) != 0:
                prefetch(models, start + p.pace_start)
                for j in range(len(m.verdicts)):
                    if (w.answering >> p.opponents[j].kind) & 1:
                        prefetch_record(models, start + p.verdict_start + j * p.verdict_bytes, p)
        else:
            for j in range(len(m.verdicts)):
                if may_differ(m, p, j, true_class, predicted_class):
                    prefetch_record(models, start + p.verdict_start + j * p.verdict_bytes, p)


@hot
def prefetch_record(models, start, p):
    """Prefetch the record of a verdict that starts at a byte of `models`."""
    for offset in range(0, p.verdict_bytes, LINE):
        prefetch(models, start + offset)


@hot
def may_differ(m, p, j, true_class, predicted_class):
    """Guess whether this opponent's step changes its verdict record: the lead is not 0, or a block ends."""
    answer = m.labels[0].leader - 1 if p.opponents[j].kind == MAJORITY else m.last
    return (predicted_class == true_class) != (answer == true_class) or (m.pace[j].steps & LAST) == LAST


@hot
def prefetch_ahead(pools, p, batch, i):
    """Prefetch the records that the outcomes after position i will access."""
    models, class_counts, rings = pools.models, pools.class_counts, pools.rings
    rows, true_class, predicted_class = batch.rows, batch.true_class, batch.predicted_class
    n = rows.shape[0]
    if i + AHEAD < n:
        start = rows[i + AHEAD] * models.itemsize
        for offset in range(0, p.used_totals, LINE):
            prefetch(models, start + offset)
        for offset in range(p.totals_end, p.hot_bytes, LINE):
            prefetch(models, start + offset)
        for j in range(len(p.windows)):
            prefetch(models, start + p.windows_start + j * p.window_bytes)
    if i + 8 < n:
        row = rows[i + 8]
        m = models[row]
        prefetch_counts(m, true_class[i + 8], predicted_class[i + 8], class_counts)
        prefetch(rings, rings.itemsize * (row * rings.shape[1] + m.head))
        for j in range(len(m.shadow)):
            prefetch_shadows(m, m.shadow[j], predicted_class[i + 8], pools.shadows)
        prefetch_verdicts(pools, m, p, row, true_class[i + 8], predicted_class[i + 8])
        for j in range(len(p.sliding)):
            gathered = int(m.totals[len(m.fading) + j, N]) + number_unadded(m) - p.sliding[j].size
            if gathered + 1 == DEFERRED:
                prefetch_entries(m, p.sliding[j].size - 1, DEFERRED, rings, row)
        for j in range(len(m.windows)):
            if m.pending[j] + 1 == p.windows[j].clock:  # a check is due: its buckets, and outcomes to enter
                start = row * models.itemsize + p.windows_start + j * p.window_bytes
                for offset in range(0, SMALL_WINDOW_BYTES, LINE):
                    prefetch(models, start + offset)
                prefetch_entries(m, 0, m.pending[j], rings, row)
    if i + 4 < n:
        row = rows[i + 4]
        m = models[row]
        for j in range(len(p.sliding)):
            gathered = int(m.totals[len(m.fading) + j, N]) + number_unadded(m) - p.sliding[j].size
            if gathered + 1 == DEFERRED:
                for age in range(p.sliding[j].size - 1, p.sliding[j].size - 1 + DEFERRED):
                    entry = rings[row, position_of(m.head, age, rings.shape[1])]
                    prefetch_counts(m, true_class_of(entry), predicted_class_of(entry), class_counts)


@entry
def fold(pools, batch, alarms):
    """Evaluate a batch of outcomes in order; return (result of `admit`, number of alarm rows or position).

    Parameters
    ----------
    pools
        `Arrays` of the table, changed.
    batch
        `admission.Batch`.
    alarms
        `ALARM` records, written.
    """
    verdict, position = admit(pools, batch)
    if verdict != ADMITTED:
        return verdict, position
    p = pools.parameters[0]
    count = np.int64(0)  # typed from the start, or the functions it is passed to are compiled twice
    far = pools.models.shape[0] * pools.models.itemsize > NEAR_BYTES
    for i in range(batch.rows.shape[0]):
        if far:
            prefetch_ahead(pools, p, batch, i)
        count = take_outcome(pools, p, batch, i, alarms, count)
    return verdict, count


class TracedArrays(NamedTuple):
    """Arrays that a trace of n outcomes writes: values after each outcome."""

    sums: NDArray[np.float64]
    """Totals by mechanism, (columns, SUMS + 1, n)."""
    counts: NDArray[np.float64]
    """Their counts by class, (columns, 3, n, K)."""
    statistic: NDArray[np.float64]
    """Of each detector, (detectors, n), as the next three."""
    threshold: NDArray[np.float64]
    alarms: NDArray[np.int64]
    warned: NDArray[np.bool_]
    weighted: NDArray[np.float64]
    """Drift-weighted accuracies and their n_eff, (2, weightings, n)."""
    reported: NDArray[np.void]
    """`REPORTED` records of verdicts, (opponents, n)."""
    recovery: NDArray[np.void]
    """`TRACED` records, (n,); (0,) without a fading factor."""


@entry
def trace(pools, batch, alarms, traced):
    """Evaluate an admitted batch as `fold` does, and write `TracedArrays`; return the number of alarms."""
    p = pools.parameters[0]
    count = np.int64(0)
    for t in range(batch.rows.shape[0]):
        row = batch.rows[t]
        m = pools.models[row]
        count = take_outcome(pools, p, batch, t, alarms, count)
        settle(m, p, pools.class_counts, pools.rings, row)
        for column in range(columns_of(m)):
            gather(m, column, pools.class_counts, traced.sums[column], traced.counts[column], t)
        parameters = pools.parameters[m.detector_row]
        show_all(m, parameters, traced.statistic, traced.threshold, traced.alarms, traced.warned, t)
        for j in range(len(m.drift_weighted)):
            s = m.drift_weighted[j]
            traced.weighted[0, j, t] = s.hits / s.weight
            traced.weighted[1, j, t] = s.weight * s.weight / s.squares
        settle_verdicts(pools.models, p, row, m.outcomes, batch.event_ms[t], t, alarms, count)
        for j in range(len(m.verdicts)):
            copy_reported(m.pace[j], m.verdicts[j], traced.reported[j, t])
        for k in range(len(m.recovery)):
            copy_traced(m.recovery[k], traced.recovery[t])
    return count
