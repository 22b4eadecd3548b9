"""Rings, pools and agreement totals in the kernel."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import Any

import numpy as np

from streamwatch.core.jit import (
    add_to_row,
    class_bits,
    either,
    hot,
    inner,
    lanes,
    lanes_of,
    lanes_where,
    ones_of,
    put_lanes,
    with_entry,
)

# Flags of an outcome: 0/1 facts that every mechanism sums in addition to hits and label repeats.
#
# A flag belongs to the outcome at which it was set, even if it also concerns the previous outcome. Windows
# subtract the flags of the outcomes they drop, so the ring stores them with the outcome.


FLAGS = 9
LOST_TWICE, LABEL_AT_PREDICTION_REPEAT, LABEL_AT_PREDICTION_PAIR = range(3)
TRANSITION, AUGMENTED, SHADOWED, CORRECTED, SCORED, MAJORITY = range(3, FLAGS)
"""Bit numbers of the flags.

LOST_TWICE: this outcome and the previous one were both wrong. LABEL_AT_PREDICTION_REPEAT: the label equals
the last one known when the prediction was made. LABEL_AT_PREDICTION_PAIR: such a label existed. TRANSITION:
the transition baseline was right. AUGMENTED: the Temporally Augmented classifier was right. SHADOWED: these
two and the prequential majority predicted the outcome. CORRECTED: Temporal Correction was right. SCORED: the
outcome had scores to correct. MAJORITY: the prequential majority was right.
"""
SHADOW_MARKS = TRANSITION
"""First of the bits that concern shadow classifiers."""


@hot
def bit(flags, k):
    """Value of flag k, 0 or 1."""
    return (flags >> k) & 1


_FIELD = 12
"""Bits of a flag's sum in a word: of up to 4,095 outcomes."""
_FIELDS = 5
"""Number of sums in a word."""
_SPREAD = np.array([sum(((i >> k) & 1) << (_FIELD * k) for k in range(_FIELDS)) for i in range(1 << _FIELDS)])
"""Five flags, each at the start of its field."""


@hot
def low_fields(flags):
    """Give the first flags as fields of a word, for the sum of up to 4,095 outcomes' flags."""
    return _SPREAD[flags & ((1 << _FIELDS) - 1)]


@hot
def high_fields(flags):
    """Give the other flags in the same way."""
    return _SPREAD[flags >> _FIELDS]


@hot
def sum_of(low, high, k):
    """Sum of flag k, of the sums of `low_fields` and of `high_fields`."""
    word, field = (low, k) if k < _FIELDS else (high, k - _FIELDS)
    return (word >> (_FIELD * field)) & ((1 << _FIELD) - 1)


@hot
def own_flags(m, true_class, predicted_class, label_at_prediction):
    """Compute the flags that need no shadow classifier; `label_at_prediction` is -1 if no label was known."""
    return (
        (m.last_missed & (true_class != predicted_class)) << LOST_TWICE
        | (label_at_prediction == true_class) << LABEL_AT_PREDICTION_REPEAT
        | (label_at_prediction >= 0) << LABEL_AT_PREDICTION_PAIR
    )


# Agreement totals in the kernel (Bifet et al. 2015, §5; Žliobaitė et al. 2015, §3).
#
# A model's record holds, per forgetting mechanism (a *column*), the sums n, hits, repeats and pairs,
# followed by the sums of the outcomes' flags (see above): a row of `totals`, two vectors long. The pool of
# class rows holds agreed, missed and false counts per class, all mechanisms side by side. Each mechanism
# counts in its own unit, which is 1 except under fading, so that adding an outcome is the same operation for
# all.


N, HITS, REPEATS, PAIRS, MARKED = 0, 1, 2, 3, 4
SUMS = MARKED + FLAGS
"""Number of a mechanism's sums; that of flag k is number MARKED + k."""
WIDTH = 8
"""Number of doubles in a vector."""
SUMS_ROOM = -(-SUMS // WIDTH) * WIDTH
"""Length of a row of a model's totals: whole vectors, with zeros after the sums."""
AGREED, MISSED, FALSE = 0, 1, 2
"""Counts per class k: 1[y = ŷ = k], 1[y = k ≠ ŷ], 1[ŷ = k ≠ y].

Truth is agreed + missed, predicted is agreed + false. Stored this way, a hit changes one number and a miss
two.
"""


@hot
def unit_of(m, column):
    """Amount that one outcome counts under a mechanism."""
    return m.fading[column].unit if column < len(m.fading) else 1.0


@hot
def units_of(m):
    """`unit_of` of every mechanism, as a vector."""
    units = ones_of(m.totals)
    for c in range(len(m.fading)):
        units = with_entry(units, c, m.fading[c].unit)
    return units


@hot
def columns_of(m):
    """Number of mechanisms."""
    return m.totals.shape[0]


_WORD_FIELD = 9
"""Bits of a sum in a word of `unadded`."""
_WORD_SUMS = 7
"""Number of sums in a word."""
UNADDED = (1 << _WORD_FIELD) - 1
"""Bits of the first word of `unadded` that are the number of outcomes."""
_IN_WORD = np.array(
    [sum(((i >> k) & 1) << (_WORD_FIELD * k) for k in range(_WORD_SUMS)) for i in range(1 << _WORD_SUMS)]
)
"""Seven bits, each at the start of its field."""
MOST_UNADDED = 256
"""Number of outcomes after which their sums are added to the totals at the latest."""


@hot
def number_unadded(m):
    """Number of outcomes whose sums are in `unadded`, and not in the totals of mechanisms without fading."""
    return m.unadded[0] & UNADDED


@inner
def add_unadded(m):
    """Add the sums of the latest outcomes to the totals of all mechanisms but fading, which have the rest."""
    for k in range(SUMS):
        word, field = (0, k) if k < _WORD_SUMS else (1, k - _WORD_SUMS)
        summed = float((m.unadded[word] >> (_WORD_FIELD * field)) & UNADDED)
        for c in range(len(m.fading), columns_of(m)):
            m.totals[c, k] += summed
    m.unadded[0] = 0
    m.unadded[1] = 0


@hot
def add(m, true_class, predicted_class, flags, hit, repeat, paired, class_counts):
    """Add one outcome to the counts by class of every mechanism, and to the totals of those that fade.

    The totals of all others are whole numbers, so the time of adding does not affect results: they get the
    sums of several outcomes at once, by `add_unadded`, before they are used.
    """
    columns = columns_of(m)
    units = units_of(m)
    sums = 1 << N | int(hit) << HITS | int(repeat) << REPEATS | int(paired) << PAIRS | flags << MARKED
    for c in range(len(m.fading)):
        unit = lanes(unit_of(m, c))
        for part in range(SUMS_ROOM // WIDTH):
            row = c * (SUMS_ROOM // WIDTH) + part
            added = lanes_where(sums >> (part * WIDTH), unit)
            put_lanes(m.totals, row, lanes_of(m.totals, row) + added)
    m.unadded[0] += _IN_WORD[sums & ((1 << _WORD_SUMS) - 1)]
    m.unadded[1] += _IN_WORD[sums >> _WORD_SUMS]
    if number_unadded(m) == MOST_UNADDED:
        add_unadded(m)
    of_label = m.class_counts + true_class
    if hit:
        add_to_row(class_counts, of_label, AGREED * columns, units, 1.0)
    else:
        add_to_row(class_counts, of_label, MISSED * columns, units, 1.0)
        add_to_row(class_counts, m.class_counts + predicted_class, FALSE * columns, units, 1.0)


@hot
def forget(m, column, true_class, predicted_class, class_counts):
    """Subtract one outcome from the per-class totals of one window."""
    columns = columns_of(m)
    hit = true_class == predicted_class
    own, other = m.class_counts + true_class, m.class_counts + predicted_class
    class_counts[own, either(hit, AGREED, MISSED) * columns + column] -= 1.0
    class_counts[other, either(hit, MISSED, FALSE) * columns + column] -= 1.0 * (not hit)


@inner
def gather(m, column, class_counts, sums, counts, t):
    """Write one mechanism's totals, in units of outcomes, for model or step t.

    Writes `sums[:, t]` (its sums, then n_eff) and `counts[:, t, :]` (truth, predicted, agreed). The sums of
    shadow classifiers are 0 once these have stopped.
    n_eff = (Σw)²/Σw² (Gama, Sebastião, Rodrigues 2009, §3.2.1); n for mechanisms without weights.
    """
    columns = columns_of(m)
    unit = unit_of(m, column)
    for k in range(SUMS):
        sums[k, t] = m.totals[column, k] / unit
    for j in range(len(m.shadow)):
        if m.shadow[j].stopped:
            for k in range(MARKED + SHADOW_MARKS, SUMS):
                sums[k, t] = 0.0
    n = m.totals[column, N]
    if column < len(m.fading) and n > 0.0:
        sums[SUMS, t] = n * n / m.fading[column].squares
    else:
        sums[SUMS, t] = n
    for k in range(m.classes):
        cell = m.class_counts + k
        agreed = class_counts[cell, AGREED * columns + column]
        counts[0, t, k] = (agreed + class_counts[cell, MISSED * columns + column]) / unit
        counts[1, t, k] = (agreed + class_counts[cell, FALSE * columns + column]) / unit
        counts[2, t, k] = agreed / unit


# Ring of a model's latest outcomes as (label, prediction, flags), packed in one integer each.
#
# The flags take the lowest 9 bits, and prediction and label 11 bits each above them; with more than 2,048
# classes, entries have 64 bits and classes 27. One ring per model serves all sliding windows and the small
# buckets of all ADWIN windows. The newest outcome has age 0.


MAX_CLASS = 0xFFFF
"""Largest local index of a class."""
NARROW_CLASSES = 1 << 11


def entry_type(classes: int) -> np.dtype[Any]:
    """Entry type for this number of classes."""
    return np.dtype(np.uint32 if classes <= NARROW_CLASSES else np.int64)


def true_class_shift(entries: np.dtype[Any]) -> int:
    """Number of bits below the label in entries of a type."""
    return FLAGS + (11 if entries.itemsize == 4 else 27)


@hot
def packed(rings, true_class, predicted_class, flags):
    """Pack an outcome as an entry of these rings."""
    bits = class_bits(rings)
    return (true_class << (FLAGS + bits)) | (predicted_class << FLAGS) | flags


@hot
def true_class_of(entry):
    """Label of an entry."""
    return np.int64(entry) >> (FLAGS + class_bits(entry))


@hot
def predicted_class_of(entry):
    """Prediction of an entry."""
    return (np.int64(entry) >> FLAGS) & ((1 << class_bits(entry)) - 1)


@hot
def flags_of(entry):
    """Flags of an entry."""
    return np.int64(entry) & ((1 << FLAGS) - 1)


@hot
def position_of(head, age, size):
    """Ring position of the outcome of this age; `head` is where the next outcome goes."""
    position = head - 1 - age
    return position + size if position < 0 else position


@hot
def before(position, size):
    """Position of the next older outcome."""
    return size - 1 if position == 0 else position - 1


@hot
def after(position, size):
    """Position of the next newer outcome."""
    return 0 if position + 1 == size else position + 1


# Allocator of the two shared pools: spans of class rows, and blocks of counts of large ADWIN buckets.
#
# Both allocate room for 2^c classes, from the free list for this c unless it is empty, otherwise from the
# unused end. The allocator's state is an `i64[33]`: `allocator[0]` is the size of the part ever used,
# `allocator[1 + c]` the head of the free list for c (1-based, 0 when empty).


ROOM = 33
SLOT = 8
"""Words (int32) per slot of the block pool; blocks start at slots so that a block number fits 32 bits."""
HEADER = 2 + FLAGS
"""Words before a block's counts: label repeats, exponent c of its 2^c classes, sums of the flags."""


@inner
def exponent_of(classes):
    """Smallest c ≥ 1 with 2^c ≥ classes."""
    c = 1
    while (1 << c) < classes:
        c += 1
    return c


@inner
def allocate_span(class_counts, allocator, c):
    """Allocate 2^c zeroed class rows and return the first; -1 when the pool is full."""
    head = allocator[1 + c]
    if head > 0:
        start = head - 1
        allocator[1 + c] = int(class_counts[start, 0])
    else:
        start = allocator[0]
        if start + (1 << c) > class_counts.shape[0]:
            return -1
        allocator[0] = start + (1 << c)
    for k in range(start, start + (1 << c)):
        for j in range(class_counts.shape[1]):
            class_counts[k, j] = 0.0
    return start


@inner
def free_span(class_counts, allocator, start, c):
    """Return a span to its free list."""
    class_counts[start, 0] = float(allocator[1 + c])
    allocator[1 + c] = start + 1


@inner
def block_slots(c):
    """Number of slots of a block for 2^c classes: header, then (agreed, missed, false) per class."""
    return (HEADER + 3 * (1 << c) + SLOT - 1) // SLOT


@inner
def allocate_block(blocks, allocator, c):
    """Allocate a zeroed block for 2^c classes and return its first slot.

    The caller ensures that there is room.
    """
    head = allocator[1 + c]
    if head > 0:
        slot = head - 1
        allocator[1 + c] = blocks[slot * SLOT]
    else:
        slot = allocator[0]
        allocator[0] = slot + block_slots(c)
    first = slot * SLOT
    for k in range(first, first + HEADER + 3 * (1 << c)):
        blocks[k] = 0
    blocks[first + 1] = c
    return slot


@inner
def free_block(blocks, allocator, slot):
    """Return a block to its free list."""
    c = blocks[slot * SLOT + 1]
    blocks[slot * SLOT] = allocator[1 + c]
    allocator[1 + c] = slot + 1
