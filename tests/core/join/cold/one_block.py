"""A single block, packed and unpacked from Python."""

from __future__ import annotations

import numpy as np

from streamwatch.core.jit import entry
from streamwatch.core.join.cold.block import (
    HEADER_BYTES,
    MOST_SIDE_COLUMNS,
    PACKED_ENTRY,
    SKIPPED,
    count_at,
    end_of_block,
    most_bytes,
    pack_entries,
    unpack_entries,
    words_of,
)


@entry
def _pack(words, data):
    return pack_entries(words, 0, words.shape[0], data, 0)


@entry
def _measure(data, size):
    return end_of_block(data, 0, size), count_at(data, 0)


@entry
def _unpack(data, words, into):
    unpack_entries(data, 0, 0, words.shape[0], words, 0, into)


def pack(entries):
    """Entries, `PACKED_ENTRY` (n,), in their order as one block."""
    data = np.empty(most_bytes(len(entries)), np.uint8)
    end = _pack(words_of(np.ascontiguousarray(entries)), data)
    return data[:end].tobytes()


def unpack(block):
    """The entries of a block, without side columns; None unless it is one whole block of this version."""
    data = np.frombuffer(block + bytes(HEADER_BYTES), np.uint8)
    end, count = _measure(data, len(block))
    if end != len(block):
        return None
    entries = np.zeros(count, PACKED_ENTRY)
    _unpack(data, words_of(entries), np.full(MOST_SIDE_COLUMNS, SKIPPED, np.int64))
    return entries
