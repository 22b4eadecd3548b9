"""Allocator of the two shared pools: spans of class rows, and blocks of counts of large ADWIN buckets.

Both pools hand out pieces for 2^c classes, from a free list per c if it has one, otherwise from the unused
end. The allocator's state is an `i64[33]`: `allocator[0]` is the size of the part ever used,
`allocator[1 + c]` the head of the free list for c (1-based, 0 when empty).
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.memory.flags import FLAGS
from streamwatch.core.jit import inner

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
    """Put a span back on its free list."""
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
    """Put a block back on its free list."""
    c = blocks[slot * SLOT + 1]
    blocks[slot * SLOT] = allocator[1 + c]
    allocator[1 + c] = slot + 1
