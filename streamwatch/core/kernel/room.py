"""Room in the two shared pools: spans of class rows, and blocks of counts of large ADWIN buckets.

Both hand out pieces of 2^c classes, from a free list per c, else from the untouched end. A room record
`i64[33]` says how much was ever used (`room[0]`) and where each free list starts (`room[1 + c]`, 1-based, 0
when empty).
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.kernel.compiled import inner
from streamwatch.core.kernel.marks import MARKS

ROOM = 33
SLOT = 8
"""Words (int32) per slot of the block pool; a block starts at a slot so that its address fits 32 bits."""
HEADER = 2 + MARKS
"""Words before a block's counts: its repeats, the exponent c of its 2^c classes, its marks."""


@inner
def exponent_of(classes):
    """Smallest c with 2^c ≥ classes (at least 1: no stream worth watching has one class)."""
    c = 1
    while (1 << c) < classes:
        c += 1
    return c


@inner
def take_span(cells, room, c):
    """First row of 2^c zeroed class rows; -1 when the pool is full."""
    head = room[1 + c]
    if head > 0:
        start = head - 1
        room[1 + c] = int(cells[start, 0])
    else:
        start = room[0]
        if start + (1 << c) > cells.shape[0]:
            return -1
        room[0] = start + (1 << c)
    for k in range(start, start + (1 << c)):
        for j in range(cells.shape[1]):
            cells[k, j] = 0.0
    return start


@inner
def give_span(cells, room, start, c):
    """Put a span on its free list."""
    cells[start, 0] = float(room[1 + c])
    room[1 + c] = start + 1


@inner
def block_slots(c):
    """Slots of a block for 2^c classes: header, then (truth, predicted, agreed) per class."""
    return (HEADER + 3 * (1 << c) + SLOT - 1) // SLOT


@inner
def take_block(blocks, room, c):
    """First slot of a zeroed block for 2^c classes; the caller has made sure that there is room."""
    head = room[1 + c]
    if head > 0:
        slot = head - 1
        room[1 + c] = blocks[slot * SLOT]
    else:
        slot = room[0]
        room[0] = slot + block_slots(c)
    first = slot * SLOT
    for k in range(first, first + HEADER + 3 * (1 << c)):
        blocks[k] = 0
    blocks[first + 1] = c
    return slot


@inner
def give_block(blocks, room, slot):
    """Put a block on its free list."""
    c = blocks[slot * SLOT + 1]
    blocks[slot * SLOT] = room[1 + c]
    room[1 + c] = slot + 1
