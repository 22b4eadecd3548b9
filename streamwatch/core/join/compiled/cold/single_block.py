"""Packing and unpacking of a single block, for inspection."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.join.compiled.cold.block import (
    HEADER_BYTES,
    PACKED_ENTRY,
    VERSION,
    Bytes,
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
def _unpack(data, words):
    unpack_entries(data, 0, 0, words.shape[0], words, 0)


def pack(entries: NDArray[np.void]) -> bytes:
    """Pack entries, `PACKED_ENTRY` (n,) with n < 2³², in their order, as one block."""
    data: Bytes = np.empty(most_bytes(len(entries)), np.uint8)
    end: Any = _pack(words_of(np.ascontiguousarray(entries)), data)
    return data[:end].tobytes()


def unpack(block: bytes) -> NDArray[np.void]:
    """Unpack the entries of a block, `PACKED_ENTRY` (n,).

    Raises
    ------
    ValueError
        If it is not one whole block of this version.
    """
    data: Bytes = np.frombuffer(block + bytes(HEADER_BYTES), np.uint8)
    end, count = _measure(data, len(block))
    if end != len(block):
        raise ValueError(
            f"packed entries must be one whole block of version {VERSION}, got {len(block)} bytes that begin "
            f"with {block[:8].hex(' ')}"
        )
    entries = np.zeros(count, PACKED_ENTRY)
    _unpack(data, words_of(entries))
    return entries
