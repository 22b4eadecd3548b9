"""The hot loop: every estimator of every model in a batch, one outcome after the other."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.kernel.admission import ADMITTED, admit
from streamwatch.core.kernel.ahead import look_ahead
from streamwatch.core.kernel.buckets import check
from streamwatch.core.kernel.compiled import borrowed, entry, hot
from streamwatch.core.kernel.detectors.chain import observe_all, show_all
from streamwatch.core.kernel.forgetting import fade, settle, slide
from streamwatch.core.kernel.label_drift import watch_labels
from streamwatch.core.kernel.marks import own_marks
from streamwatch.core.kernel.ring import packed
from streamwatch.core.kernel.shadow import consult
from streamwatch.core.kernel.totals import add, columns_of, gather
from streamwatch.core.kernel.weighting import LABELS, follow, restart, restart_at_rise, weigh


@hot
def mark_outcome(m, shadows, shadow_room, p, truth, predicted, known, offsets, classes, values, i):
    """The marks of outcome i of the batch, before the model learns from it; its shadow classifiers do."""
    marks = own_marks(m, truth, predicted, known)
    for j in range(len(m.shadow)):
        s = m.shadow[j]
        most = p.shadow_classes
        marks |= consult(m, s, shadows, shadow_room, most, truth, predicted, offsets, classes, values, i)
    return marks


@hot
def learn(models, cells, rings, blocks, block_room, p, row, truth, predicted, marks, position, alarms, count):
    """Feed one outcome of one model to all of its estimators; gives the new number of alarms."""
    m = models[row]
    hit = truth == predicted
    paired = m.outcomes > 0
    repeat = paired and truth == m.last
    m.classes = max(m.classes, truth + 1, predicted + 1)
    rings[row, m.head] = packed(rings, truth, predicted, marks)
    m.head = m.head + 1 if m.head + 1 < rings.shape[1] else 0
    m.last = truth
    m.last_missed = not hit
    m.outcomes += 1
    m.errors += not hit

    for j in range(len(m.weighting)):
        follow(models, m, row, j, p.weighting[j])
        weigh(m.weighting[j], p.weighting[j].w_avg, p.weighting[j].alpha, hit)
    for j in range(len(m.fading)):
        fade(m, j, p.fading[j].alpha, cells)
    add(m, truth, predicted, marks, hit, repeat, paired, cells)
    for j in range(len(p.sliding)):
        slide(m, len(m.fading) + j, p.sliding[j].size, cells, rings, row)
    drifted = False
    for j in range(len(m.windows)):
        m.pending[j] += 1
        if m.pending[j] >= p.windows[j].clock:
            column = len(m.fading) + len(p.sliding) + j
            drifted |= check(m, j, column, p.windows[j], cells, rings, row, blocks, block_room)
    count = observe_all(m, p, not hit, position, row, alarms, count)
    if drifted:
        for j in range(len(m.weighting)):
            restart_at_rise(m, row, j, p.weighting[j])
    for k in range(len(m.label_drift)):
        if watch_labels(m.label_drift[k], p.label_drift[k].delta, m.outcomes, truth, repeat):
            for j in range(len(m.weighting)):
                if p.weighting[j].signal == LABELS and p.weighting[j].window == k:
                    restart(m.weighting[j], 1)
    return count


@entry
def fold(
    models,
    spans,
    cells,
    cell_room,
    rings,
    blocks,
    block_room,
    shadow_spans,
    shadows,
    shadow_room,
    parameters,
    max_classes,
    rows,
    truth,
    predicted,
    known,
    offsets,
    classes,
    values,
    alarms,
):
    """Feed a batch of outcomes, in order; gives (verdict, number of alarm rows written or position)."""
    models, cells, rings = borrowed(models), borrowed(cells), borrowed(rings)
    blocks, block_room, alarms = borrowed(blocks), borrowed(block_room), borrowed(alarms)
    shadows, shadow_room, known = borrowed(shadows), borrowed(shadow_room), borrowed(known)
    rows, truth, predicted = borrowed(rows), borrowed(truth), borrowed(predicted)
    offsets, classes, values = borrowed(offsets), borrowed(classes), borrowed(values)
    verdict, position = admit(
        models,
        spans,
        cells,
        cell_room,
        shadow_spans,
        shadows,
        shadow_room,
        parameters,
        rows,
        truth,
        predicted,
        offsets,
        classes,
        max_classes,
    )
    if verdict != ADMITTED:
        return verdict, position
    p = borrowed(parameters)[0]
    count = np.int64(0)  # of one type from the start, or all it is passed to is compiled twice
    for i in range(rows.shape[0]):
        look_ahead(models, cells, rings, shadows, p, rows, truth, predicted, i)
        m = models[rows[i]]
        y, y_hat = truth[i], predicted[i]
        marks = mark_outcome(m, shadows, shadow_room, p, y, y_hat, known[i], offsets, classes, values, i)
        count = learn(models, cells, rings, blocks, block_room, p, rows[i], y, y_hat, marks, i, alarms, count)
    return verdict, count


@entry
def collect(models, cells, rings, parameters, rows, column, sums, counts):
    """Totals of some models under one mechanism: `sums` (SUMS + 1, m) and `counts` (3, m, K)."""
    for t in range(rows.shape[0]):
        settle(models[rows[t]], parameters[0], cells, rings, rows[t])
        gather(models[rows[t]], column, cells, sums, counts, t)


@entry
def prepare_snapshot(models, cells, rings, parameters, row):
    """Bring a model to a state that depends on its outcomes only."""
    settle(models[row], parameters[0], cells, rings, row)


@entry
def show(models, parameters, rows, statistic, threshold, alarms, warned):
    """State of all detectors of some models, each array (detectors, m)."""
    for t in range(rows.shape[0]):
        show_all(models[rows[t]], parameters[0], statistic, threshold, alarms, warned, t)


@entry
def trace(
    models,
    cells,
    rings,
    blocks,
    block_room,
    shadows,
    shadow_room,
    parameters,
    rows,
    truth,
    predicted,
    known,
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
):
    """As `fold`, writing after every outcome t the model's totals and detectors.

    `sums` (columns, SUMS + 1, n), `counts` (columns, 3, n, K), detectors (detectors, n), `weighted`
    (2, weightings, n).
    """
    p = parameters[0]
    count = np.int64(0)
    for t in range(rows.shape[0]):
        m = models[rows[t]]
        y, y_hat = truth[t], predicted[t]
        marks = mark_outcome(m, shadows, shadow_room, p, y, y_hat, known[t], offsets, classes, values, t)
        count = learn(models, cells, rings, blocks, block_room, p, rows[t], y, y_hat, marks, t, alarms, count)
        settle(m, p, cells, rings, rows[t])
        for column in range(columns_of(m)):
            gather(m, column, cells, sums[column], counts[column], t)
        show_all(m, p, statistic, threshold, alarms_so_far, warned, t)
        for j in range(len(m.weighting)):
            s = m.weighting[j]
            weighted[0, j, t] = s.hits / s.weight
            weighted[1, j, t] = s.weight * s.weight / s.squares
    return count
