"""The hot loop: every estimator of every model in a batch, one outcome after the other."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.kernel.adwin import FIRST_BLOCK_ROW
from streamwatch.core.kernel.ahead import AHEAD, look_ahead
from streamwatch.core.kernel.buckets import check
from streamwatch.core.kernel.compiled import borrowed, entry, hot, inner, prefetch
from streamwatch.core.kernel.detectors.chain import observe_all, show_all
from streamwatch.core.kernel.forgetting import fade, slide
from streamwatch.core.kernel.room import exponent_of, give_block, give_span, take_block, take_span
from streamwatch.core.kernel.ring import packed
from streamwatch.core.kernel.totals import add, gather
from streamwatch.core.kernel.weighting import restart, weigh


ADMITTED, INVALID, FULL = 0, 1, 2
"""Verdicts on a batch: it was folded; the outcome at a position is not valid; the pool of class rows is full.
In the last two cases nothing was folded."""


@hot
def first_invalid(models, rows, truth, predicted, max_classes):
    """Position of the first outcome with a row that is not live or a class out of range; -1 if there is none."""
    n = rows.shape[0]
    for i in range(n):
        if i + AHEAD < n:
            prefetch(models, rows[i + AHEAD] * models.itemsize)
        if not 0 <= rows[i] < models.shape[0] or models[rows[i]].live == 0:
            return i
        if not (0 <= truth[i] < max_classes and 0 <= predicted[i] < max_classes):
            return i
    return -1


@inner
def grow(m, classes, cells, room):
    """Move a model's class rows to a span that has room for so many classes; gives whether the pool had one."""
    c = exponent_of(classes)
    start = take_span(cells, room, c)
    if start < 0:
        return False
    for k in range(m.span):
        for j in range(cells.shape[1]):
            cells[start + k, j] = cells[m.cells + k, j]
    if m.span > 0:
        give_span(cells, room, m.cells, exponent_of(m.span))
    m.cells = start
    m.span = 1 << c
    return True


@hot
def admit(models, cells, cell_room, rows, truth, predicted, max_classes):
    """Validate a batch, and give every model class rows for the classes it will meet; gives (verdict, position)."""
    invalid = first_invalid(models, rows, truth, predicted, max_classes)
    if invalid >= 0:
        return INVALID, invalid
    for i in range(rows.shape[0]):
        m = models[rows[i]]
        classes = max(truth[i], predicted[i]) + 1
        if classes > m.span and not grow(m, classes, cells, cell_room):
            return FULL, i
    return ADMITTED, 0


@entry
def make_room(models, cells, cell_room, rows, truth, predicted, max_classes):
    """`admit`, without folding."""
    return admit(models, cells, cell_room, rows, truth, predicted, max_classes)


@entry
def release(models, cells, cell_room, blocks, block_room, row):
    """Give back the class rows and blocks of a model."""
    m = models[row]
    if m.span > 0:
        give_span(cells, cell_room, m.cells, exponent_of(m.span))
    for j in range(len(m.windows)):
        w = m.windows[j]
        for r in range(FIRST_BLOCK_ROW, w.rows):
            for k in range(w.buckets[r]):
                give_block(blocks, block_room, w.blocks[r - FIRST_BLOCK_ROW, k])


@entry
def claim_block(blocks, block_room, classes):
    """Slot of an empty block for so many classes."""
    return take_block(blocks, block_room, exponent_of(classes))


@hot
def learn(models, cells, rings, blocks, block_room, p, row, truth, predicted, position, alarms, count):
    """Feed one outcome of one model to all of its estimators; gives the new number of alarms."""
    m = models[row]
    hit = truth == predicted
    paired = m.outcomes > 0
    repeat = paired and truth == m.last
    m.classes = max(m.classes, truth + 1, predicted + 1)
    rings[row, m.head] = packed(truth, predicted)
    m.head = m.head + 1 if m.head + 1 < rings.shape[1] else 0
    m.last = truth
    m.outcomes += 1
    m.errors += not hit

    for j in range(len(m.weighting)):
        weigh(m.weighting[j], p.weighting[j].w_avg, hit)
    for j in range(len(m.fading)):
        fade(m, j, p.fading[j].alpha, cells)
    add(m, truth, predicted, hit, repeat, paired, cells)
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
            restart(m, m.weighting[j], p.weighting[j].window)
    return count


@entry
def fold(
    models, cells, cell_room, rings, blocks, block_room, parameters, max_classes, rows, truth, predicted, alarms
):
    """Feed a batch of outcomes, in order; gives (verdict, number of alarm rows written or position)."""
    models, cells, rings = borrowed(models), borrowed(cells), borrowed(rings)
    blocks, block_room, alarms = borrowed(blocks), borrowed(block_room), borrowed(alarms)
    rows, truth, predicted = borrowed(rows), borrowed(truth), borrowed(predicted)
    verdict, position = admit(models, cells, cell_room, rows, truth, predicted, max_classes)
    if verdict != ADMITTED:
        return verdict, position
    p = borrowed(parameters)[0]
    count = np.int64(0)  # of one type from the start, or all it is passed to is compiled twice
    for i in range(rows.shape[0]):
        look_ahead(models, cells, rings, p, rows, truth, predicted, i)
        count = learn(
            models, cells, rings, blocks, block_room, p, rows[i], truth[i], predicted[i], i, alarms, count
        )
    return verdict, count


@entry
def collect(models, cells, rows, column, sums, counts):
    """Totals of some models under one mechanism: `sums` (5, m) and `counts` (3, m, K)."""
    for t in range(rows.shape[0]):
        gather(models[rows[t]], column, cells, sums, counts, t)


@entry
def show(models, parameters, rows, statistic, threshold, alarms):
    """State of all detectors of some models, each array (detectors, m)."""
    for t in range(rows.shape[0]):
        show_all(models[rows[t]], parameters[0], statistic, threshold, alarms, t)


@entry
def trace(
    models,
    cells,
    rings,
    blocks,
    block_room,
    parameters,
    rows,
    truth,
    predicted,
    alarms,
    sums,
    counts,
    statistic,
    threshold,
    alarms_so_far,
    weighted,
):
    """As `fold`, writing after every outcome t the model's totals and detectors.

    `sums` (columns, 5, n), `counts` (columns, 3, n, K), detectors (detectors, n), `weighted` (2, weightings, n).
    """
    p = parameters[0]
    count = np.int64(0)
    for t in range(rows.shape[0]):
        count = learn(
            models, cells, rings, blocks, block_room, p, rows[t], truth[t], predicted[t], t, alarms, count
        )
        m = models[rows[t]]
        for column in range(len(m.units)):
            gather(m, column, cells, sums[column], counts[column], t)
        show_all(m, p, statistic, threshold, alarms_so_far, t)
        for j in range(len(m.weighting)):
            s = m.weighting[j]
            weighted[0, j, t] = s.hits / s.weight
            weighted[1, j, t] = s.weight * s.weight / s.squares
    return count
