"""Buckets of an ADWIN window: adding, merging and dropping them, with their agreement totals."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.forgetting.adwin import (
    FIRST_BLOCK_ROW,
    GRACE,
    PER_ROW,
    ROWS,
    must_cut,
    nearest_split,
)
from streamwatch.core.estimators.forgetting.mechanisms import forget_oldest
from streamwatch.core.estimators.memory.allocator import HEADER, SLOT, allocate_block, exponent_of, free_block
from streamwatch.core.estimators.memory.flags import FLAGS, bit
from streamwatch.core.estimators.memory.ring import (
    after,
    before,
    flags_of,
    position_of,
    predicted_class_of,
    true_class_of,
)
from streamwatch.core.estimators.memory.totals import (
    AGREED,
    FALSE,
    HITS,
    MARKED,
    MISSED,
    PAIRS,
    REPEATS,
    N,
    columns_of,
)
from streamwatch.core.jit import inner


@inner
def count_oldest(m, w, r, column, rings, row, blocks, block):
    """Count the 2^r oldest outcomes without a block into a fresh block."""
    first = block * SLOT
    size = rings.shape[1]
    age = int(m.totals[N, column]) - w.large - 1
    position = position_of(m.head, age, size)
    paired = m.outcomes - age > 1
    previous = true_class_of(rings[row, before(position, size)])
    for _ in range(1 << r):
        true_class = true_class_of(rings[row, position])
        predicted_class = predicted_class_of(rings[row, position])
        if true_class == predicted_class:
            blocks[first + HEADER + 3 * true_class + AGREED] += 1
        else:
            blocks[first + HEADER + 3 * true_class + MISSED] += 1
            blocks[first + HEADER + 3 * predicted_class + FALSE] += 1
        if paired and true_class == previous:
            blocks[first] += 1
        flags = flags_of(rings[row, position])
        for k in range(FLAGS):
            blocks[first + 2 + k] += bit(flags, k)
        paired = True
        previous = true_class
        position = after(position, size)


@inner
def add_block(blocks, older, newer):
    """Add the counts of the older block to the newer, which has at least as many classes."""
    source = older * SLOT
    target = newer * SLOT
    blocks[target] += blocks[source]
    for k in range(2, HEADER + 3 * (1 << blocks[source + 1])):
        blocks[target + k] += blocks[source + k]


@inner
def remove_oldest(w, r, number):
    """Remove the `number` oldest buckets from row r."""
    for k in range(PER_ROW + 1 - number):
        w.losses[r, k] = w.losses[r, k + number]
    if r >= FIRST_BLOCK_ROW:
        for k in range(PER_ROW + 1 - number):
            w.blocks[r - FIRST_BLOCK_ROW, k] = w.blocks[r - FIRST_BLOCK_ROW, k + number]
    w.buckets[r] -= number


@inner
def merge_oldest(m, w, r, column, rings, row, blocks, allocator):
    """Merge the two oldest buckets of row r into one, the newest of row r + 1."""
    slot = w.buckets[r + 1]
    w.losses[r + 1, slot] = w.losses[r, 0] + w.losses[r, 1]
    if r + 1 == FIRST_BLOCK_ROW:
        block = allocate_block(blocks, allocator, exponent_of(m.classes))
        count_oldest(m, w, r + 1, column, rings, row, blocks, block)
        w.blocks[0, slot] = block
        w.large += 1 << (r + 1)
    elif r + 1 > FIRST_BLOCK_ROW:
        older = w.blocks[r - FIRST_BLOCK_ROW, 0]
        newer = w.blocks[r - FIRST_BLOCK_ROW, 1]
        add_block(blocks, older, newer)
        free_block(blocks, allocator, older)
        w.blocks[r + 1 - FIRST_BLOCK_ROW, slot] = newer
    w.buckets[r + 1] += 1
    w.rows = max(w.rows, r + 2)
    remove_oldest(w, r, 2)


@inner
def forget_block(m, w, column, r, class_counts, blocks, allocator):
    """Subtract the counts of the oldest bucket, of row r, from the window's totals, and free its block."""
    block = w.blocks[r - FIRST_BLOCK_ROW, 0]
    first = block * SLOT
    columns = columns_of(m)
    for k in range(1 << blocks[first + 1]):
        cell = first + HEADER + 3 * k
        for kind in range(3):
            if blocks[cell + kind] != 0:
                class_counts[m.class_counts + k, kind * columns + column] -= blocks[cell + kind]
    for k in range(FLAGS):
        m.totals[MARKED + k, column] -= blocks[first + 2 + k]
    size = 1 << r
    holds_first_outcome = int(m.totals[N, column]) == m.outcomes
    m.totals[N, column] -= size
    m.totals[HITS, column] -= size - w.losses[r, 0]
    m.totals[REPEATS, column] -= blocks[first]
    m.totals[PAIRS, column] -= size - 1 if holds_first_outcome else size
    free_block(blocks, allocator, block)
    w.large -= size


@inner
def drop_oldest(m, w, column, class_counts, rings, row, blocks, allocator):
    """Drop the oldest bucket and subtract its outcomes from the totals."""
    r = w.rows - 1
    if r >= FIRST_BLOCK_ROW:
        forget_block(m, w, column, r, class_counts, blocks, allocator)
    else:
        forget_oldest(m, column, 1 << r, class_counts, rings, row)
    remove_oldest(w, r, 1)
    while w.rows > 0 and w.buckets[w.rows - 1] == 0:
        w.rows -= 1


@inner
def enter_pending(m, w, pending, column, class_counts, rings, row, blocks, allocator):
    """Put the outcomes since the last check into buckets of one each, oldest first, merging full rows."""
    size = rings.shape[1]
    position = position_of(m.head, pending - 1, size)
    for _ in range(pending):
        w.losses[0, w.buckets[0]] = true_class_of(rings[row, position]) != predicted_class_of(
            rings[row, position]
        )
        w.buckets[0] += 1
        w.rows = max(w.rows, 1)
        position = after(position, size)
        for r in range(ROWS):
            if w.buckets[r] <= PER_ROW:
                break
            if r == ROWS - 1:
                drop_oldest(m, w, column, class_counts, rings, row, blocks, allocator)
            else:
                merge_oldest(m, w, r, column, rings, row, blocks, allocator)


@inner
def check(m, j, column, parameters, class_counts, rings, row, blocks, allocator):
    """Enter the pending outcomes, drop the oldest bucket while some split must be cut.

    Return True at a new drift.

    A cut is a new drift iff its newest discarded outcome is later than the outcome at which the last new
    drift was declared.
    """
    w = m.windows[j]
    enter_pending(m, w, m.pending[j], column, class_counts, rings, row, blocks, allocator)
    m.pending[j] = 0
    w.statistic = np.nan
    w.threshold = 0.0
    n = m.totals[N, column]
    losses = n - m.totals[HITS, column]
    delta = parameters.delta
    least = parameters.min_subwindow
    if n <= GRACE or not must_cut(w, n, losses, delta, least):
        return False
    w.statistic, w.threshold = nearest_split(w, n, losses, delta, least)
    kept, kept_losses = n, losses
    while kept > 1.0 and must_cut(w, kept, kept_losses, delta, least):
        drop_oldest(m, w, column, class_counts, rings, row, blocks, allocator)
        kept = m.totals[N, column]
        kept_losses = kept - m.totals[HITS, column]
    w.kept = int(kept)
    w.before = (losses - kept_losses) / (n - kept)
    w.after = kept_losses / kept
    if m.outcomes - w.kept <= w.last_drift:
        return False
    w.last_drift = m.outcomes
    return True
