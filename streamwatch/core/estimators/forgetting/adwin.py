"""ADWIN (Bifet, Gavaldà 2007; Bifet et al. 2015, §6, as MOA and river implement it), over a 0/1 loss.

The published bound is for independent losses. Where `dependence` is followed, the numbers of outcomes in it
are divided by the dispersion φ of the losses (`dependence`); where it is ignored, φ = 1.

A window holds outcomes in buckets of 2^row, at most 5 per row: with the sixth, the two oldest are merged into
the next row. At every `clock`-th outcome, if the window holds more than 10, every split between two buckets
is tested, and the oldest bucket is dropped as long as the means differ at some split (`cut_threshold`).

For a 0/1 loss all counts are integers. Outcomes enter the buckets at the next check; until then they are only
in the model's ring. Buckets of rows below `FIRST_BLOCK_ROW` store their number of losses only, since their
outcomes are still in the ring. Larger buckets own a block of per-class counts. So dropping a bucket of either
kind can subtract the whole vector of agreement totals.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from math import log, sqrt

import numpy as np

from streamwatch.core.estimators.dependence import DEPENDENCE, count_loss, dispersion_of
from streamwatch.core.estimators.forgetting.mechanisms import forget_oldest
from streamwatch.core.estimators.memory import (
    AGREED,
    FALSE,
    FLAGS,
    HEADER,
    HITS,
    MARKED,
    MISSED,
    PAIRS,
    REPEATS,
    SLOT,
    N,
    add_unadded,
    after,
    allocate_block,
    before,
    columns_of,
    exponent_of,
    flags_of,
    free_block,
    high_fields,
    low_fields,
    position_of,
    predicted_class_of,
    sum_of,
    true_class_of,
)
from streamwatch.core.jit import either, hot, inner

PER_ROW = 5
ROWS = 31
"""Rows 0 … 30, so that counts fit 32 bits; beyond some 10^10 outcomes the oldest bucket is dropped."""
FIRST_BLOCK_ROW = 9
SMALL_OUTCOMES = PER_ROW * ((1 << FIRST_BLOCK_ROW) - 1) + 1
"""Most outcomes in rows without blocks, including the one just entering."""
GRACE = 10
"""Number of outcomes up to which a window is not checked."""

WINDOW = np.dtype(
    [
        ("large", "i8"),  # outcomes in buckets that own blocks
        ("last_drift", "i8"),  # number of the outcome at which the last new drift was declared
        ("kept", "i8"),  # width after the last cut
        ("statistic", "f8"),  # |Δμ| and ε of the split for which the last check cut; ε is 0 if it did not
        ("threshold", "f8"),
        ("before", "f8"),  # mean loss of the outcomes dropped, and of those kept, at the last cut
        ("after", "f8"),
        ("dependence", DEPENDENCE, (1,)),  # of the losses, where it is followed
        ("rows", "i8"),  # number of rows in use
        ("buckets", "i4", (ROWS + 1,)),  # number of buckets per row
        ("losses", "i4", (ROWS, PER_ROW + 1)),  # losses per bucket, oldest first
        ("blocks", "i4", (ROWS - FIRST_BLOCK_ROW, PER_ROW + 1)),  # slot of the block of each large bucket
    ]
)
SMALL_WINDOW_BYTES = 640
"""Bytes at the start of a window's record that a check of up to a few thousand outcomes accesses."""
ENTERED = 32
"""Most outcomes that enter the buckets together."""
PARAMETERS = np.dtype(
    [
        ("delta", "f8"),
        ("min_subwindow", "i8"),
        ("clock", "i8"),
        ("follows", "i8"),
        ("entering", "i4", (2, PER_ROW + ENTERED)),  # work space of `enter`
    ]
)


@hot
def confidence(width, delta):
    """Logarithmic term d = ln(2 ln W / δ)."""
    return log(2.0 * log(width) / delta)


@hot
def cut_threshold(n0, n1, variance, d, dispersion):
    """ε = √(2 m σ² d) + ⅔ d m with m = φ/(n0−4) + φ/(n1−4): the means of two sub-windows differ beyond it.

    σ² is the variance p(1−p) of the whole window. The 4 is the original's min_subwindow − 1; as in MOA, it
    stays whatever `min_subwindow` is. φ is 1 in the original.
    """
    m = (1.0 / (n0 - 4.0) + 1.0 / (n1 - 4.0)) * dispersion
    return sqrt(2.0 * m * variance * d) + 2.0 / 3.0 * d * m


@inner
def bucketed(w):
    """Count outcomes and losses in the buckets, that is, in the window as of its last check."""
    n = 0
    losses = 0
    for r in range(w.rows):
        for k in range(w.buckets[r]):
            n += 1 << r
            losses += w.losses[r, k]
    return n, losses


@inner
def must_cut(w, n, losses, delta, min_subwindow, dispersion):
    """Tell whether the means on the two sides of some split differ by more than `cut_threshold`.

    A cheaper necessary condition, without divisions or roots, is tested first: since m ≥ φ/n0 + φ/n1 = φn/(n0
    n1), a cut implies (n·losses0 − n0·losses)² > 2 φ σ² d n · n0 n1.
    """
    p = losses / n
    variance = p * (1.0 - p)
    d = confidence(float(n), delta)
    bound = 2.0 * variance * d * n * dispersion * (1.0 - 1e-9)
    outcomes_before, losses_before = 0, 0  # whole numbers: the next need not wait for an addition of doubles
    for r in range(w.rows - 1, -1, -1):
        for k in range(w.buckets[r]):
            outcomes_before += 1 << r
            losses_before += np.int64(w.losses[r, k])
            n0, losses0 = float(outcomes_before), float(losses_before)
            n1 = n - n0
            difference = n * losses0 - n0 * losses
            if difference * difference > bound * n0 * n1 and n0 >= min_subwindow and n1 >= min_subwindow:
                gap = abs(losses0 / n0 - (losses - losses0) / n1)
                if gap > cut_threshold(n0, n1, variance, d, dispersion):
                    return True
    return False


@inner
def nearest_split(w, n, losses, delta, min_subwindow, dispersion):
    """Compute (|Δμ|, ε) of the split with the largest |Δμ|/ε.

    NaN if no split has two long enough sides, and up to `GRACE` outcomes.
    """
    statistic = np.nan
    threshold = np.nan
    if n <= GRACE:
        return statistic, threshold
    p = losses / n
    variance = p * (1.0 - p)
    d = confidence(float(n), delta)
    best = -1.0
    n0 = 0.0
    losses0 = 0.0
    for r in range(w.rows - 1, -1, -1):
        for k in range(w.buckets[r]):
            n0 += float(1 << r)
            losses0 += float(w.losses[r, k])
            n1 = n - n0
            if n0 >= min_subwindow and n1 >= min_subwindow:
                gap = abs(losses0 / n0 - (losses - losses0) / n1)
                epsilon = cut_threshold(n0, n1, variance, d, dispersion)
                if gap > best * epsilon:
                    best = gap / epsilon
                    statistic = gap
                    threshold = epsilon
    return statistic, threshold


@inner
def shown_split(w, parameters):
    """`nearest_split` as of the last check, before its cut if it cut; constant until the next check."""
    if w.threshold > 0.0:
        return w.statistic, w.threshold
    n, losses = bucketed(w)
    dispersion = followed(w, parameters)
    return nearest_split(w, n, losses, parameters.delta, parameters.min_subwindow, dispersion)


@hot
def followed(w, parameters):
    """Dispersion φ of the losses that a window's bound uses: 1 where their dependence is ignored."""
    return dispersion_of(w.dependence[0]) if parameters.follows else 1.0


@hot
def declared_now(m, w):
    """Tell whether the window declared a new drift at the model's current outcome."""
    return w.last_drift == m.outcomes


# Buckets of any ADWIN window: number of buckets and losses by row. What else the buckets of a window carry
# (blocks of counts here, sums of scores in `registers.probabilities`), the window moves with them by itself.


@inner
def put_newest(w, loss):
    """Put an outcome into a bucket of its own, the newest of row 0; return its index in the row."""
    slot = w.buckets[0]
    w.losses[0, slot] = loss
    w.buckets[0] += 1
    w.rows = max(w.rows, 1)
    return slot


@inner
def put_merged(w, r):
    """Add to row r + 1 what the two oldest buckets of row r make together; return its index in the row.

    The two are to be removed by `remove_oldest`.
    """
    slot = w.buckets[r + 1]
    w.losses[r + 1, slot] = w.losses[r, 0] + w.losses[r, 1]
    w.buckets[r + 1] += 1
    w.rows = max(w.rows, r + 2)
    return slot


@inner
def remove_oldest(w, r, number):
    """Remove the `number` oldest buckets from row r."""
    for k in range(PER_ROW + 1 - number):
        w.losses[r, k] = w.losses[r, k + number]
    w.buckets[r] -= number


@inner
def leave_empty_rows(w):
    """Lower the number of rows in use to that of the last row with a bucket."""
    while w.rows > 0 and w.buckets[w.rows - 1] == 0:
        w.rows -= 1


# Buckets of a model's ADWIN window: adding, merging and dropping them, with their agreement totals.


@inner
def count_oldest(m, w, r, column, rings, row, blocks, block):
    """Count the 2^r oldest outcomes without a block into a fresh block."""
    first = block * SLOT
    size = rings.shape[1]
    age = int(m.totals[column, N]) - w.large - 1
    position = position_of(m.head, age, size)
    paired = m.outcomes - age > 1
    previous = true_class_of(rings[row, before(position, size)])
    low, high = 0, 0
    repeats = 0
    for _ in range(1 << r):
        true_class = true_class_of(rings[row, position])
        predicted_class = predicted_class_of(rings[row, position])
        hit = true_class == predicted_class
        own, other = first + HEADER + 3 * true_class, first + HEADER + 3 * predicted_class + FALSE
        blocks[own + either(hit, AGREED, MISSED)] += 1
        blocks[either(hit, first, other)] += not hit
        repeats += paired and true_class == previous
        flags = flags_of(rings[row, position])
        low += low_fields(flags)
        high += high_fields(flags)
        paired = True
        previous = true_class
        position = after(position, size)
    blocks[first] = repeats
    for k in range(FLAGS):
        blocks[first + 2 + k] = sum_of(low, high, k)


@inner
def add_block(blocks, older, newer):
    """Add the counts of the older block to the newer, which has at least as many classes."""
    source = older * SLOT
    target = newer * SLOT
    blocks[target] += blocks[source]
    for k in range(2, HEADER + 3 * (1 << blocks[source + 1])):
        blocks[target + k] += blocks[source + k]


@inner
def remove_with_blocks(w, r, number):
    """Remove the `number` oldest buckets from row r, and the slots of their blocks."""
    if r >= FIRST_BLOCK_ROW:
        for k in range(PER_ROW + 1 - number):
            w.blocks[r - FIRST_BLOCK_ROW, k] = w.blocks[r - FIRST_BLOCK_ROW, k + number]
    remove_oldest(w, r, number)


@inner
def merge_oldest(m, w, r, column, rings, row, blocks, allocator):
    """Merge the two oldest buckets of row r into one, the newest of row r + 1."""
    slot = put_merged(w, r)
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
    remove_with_blocks(w, r, 2)


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
        m.totals[column, MARKED + k] -= blocks[first + 2 + k]
    size = 1 << r
    holds_first_outcome = int(m.totals[column, N]) == m.outcomes
    m.totals[column, N] -= size
    m.totals[column, HITS] -= size - w.losses[r, 0]
    m.totals[column, REPEATS] -= blocks[first]
    m.totals[column, PAIRS] -= size - 1 if holds_first_outcome else size
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
    remove_with_blocks(w, r, 1)
    leave_empty_rows(w)


@inner
def enter(w, entering, number):
    """Put outcomes into buckets of one each, merging full rows below the last without blocks.

    Their losses are `entering[0]`, from entry `PER_ROW` on. Row by row: what enters a row follows what it
    holds; the oldest are merged in pairs until at most `PER_ROW` are left, and the pairs enter the next row.
    That gives the same buckets as merging at each outcome. Return how many buckets enter the last row without
    blocks; their losses are in `entering` in the same place.
    """
    here, there = 0, 1
    for r in range(FIRST_BLOCK_ROW - 1):
        if number == 0:
            break
        held = w.buckets[r]
        first = PER_ROW - held
        for k in range(held):
            entering[here, first + k] = w.losses[r, k]
        pairs = max(held + number - PER_ROW + 1, 0) // 2
        for k in range(pairs):
            entering[there, PER_ROW + k] = entering[here, first + 2 * k] + entering[here, first + 2 * k + 1]
        left = held + number - 2 * pairs
        for k in range(left):
            w.losses[r, k] = entering[here, first + 2 * pairs + k]
        w.buckets[r] = left
        w.rows = max(w.rows, r + 1)
        number = pairs
        here, there = there, here
    if here == 1:
        for k in range(number):
            entering[0, PER_ROW + k] = entering[1, PER_ROW + k]
    return number


@inner
def merge_rows(m, w, column, class_counts, rings, row, blocks, allocator):
    """Merge the two oldest buckets of full rows, from the last row without blocks on."""
    for r in range(FIRST_BLOCK_ROW - 1, ROWS):
        if w.buckets[r] <= PER_ROW:
            break
        if r == ROWS - 1:
            drop_oldest(m, w, column, class_counts, rings, row, blocks, allocator)
        else:
            merge_oldest(m, w, r, column, rings, row, blocks, allocator)


@inner
def enter_pending(m, w, pending, parameters, column, class_counts, rings, row, blocks, allocator):
    """Put the outcomes since the last check into buckets of one each, oldest first, merging full rows.

    Where the dependence of the losses is followed, they are counted for the dispersion as well.
    """
    size = rings.shape[1]
    position = position_of(m.head, pending - 1, size)
    last = FIRST_BLOCK_ROW - 1
    while pending > 0:
        number = min(pending, ENTERED)
        pending -= number
        for k in range(number):
            missed = int(true_class_of(rings[row, position]) != predicted_class_of(rings[row, position]))
            parameters.entering[0, PER_ROW + k] = missed
            if parameters.follows:
                count_loss(w.dependence[0], missed)
            position = after(position, size)
        for k in range(enter(w, parameters.entering, number)):
            w.losses[last, w.buckets[last]] = parameters.entering[0, PER_ROW + k]
            w.buckets[last] += 1
            w.rows = max(w.rows, last + 1)
            merge_rows(m, w, column, class_counts, rings, row, blocks, allocator)


@inner
def check(m, j, column, parameters, class_counts, rings, row, blocks, allocator):
    """Enter the pending outcomes and drop the oldest bucket while some split must be cut.

    Return whether a new drift is declared.

    A cut is a new drift iff its newest discarded outcome is later than the outcome at which the last new
    drift was declared.
    """
    w = m.windows[j]
    add_unadded(m)
    enter_pending(m, w, m.pending[j], parameters, column, class_counts, rings, row, blocks, allocator)
    m.pending[j] = 0
    w.statistic = np.nan
    w.threshold = 0.0
    n = m.totals[column, N]
    losses = n - m.totals[column, HITS]
    delta = parameters.delta
    least = parameters.min_subwindow
    dispersion = followed(w, parameters)
    if n <= GRACE or not must_cut(w, n, losses, delta, least, dispersion):
        return False
    w.statistic, w.threshold = nearest_split(w, n, losses, delta, least, dispersion)
    kept, kept_losses = n, losses
    while kept > 1.0 and must_cut(w, kept, kept_losses, delta, least, dispersion):
        drop_oldest(m, w, column, class_counts, rings, row, blocks, allocator)
        kept = m.totals[column, N]
        kept_losses = kept - m.totals[column, HITS]
    w.kept = int(kept)
    w.before = (losses - kept_losses) / (n - kept)
    w.after = kept_losses / kept
    if m.outcomes - w.kept <= w.last_drift:
        return False
    w.last_drift = m.outcomes
    return True
