"""Keys of the compiled join in a store: a letter for the kind, then big-endian numbers, so that they sort."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from streamwatch.core.join.compiled.durable.packed import PackedError

CLASS: Final = b"c"
"""Name of a class, by number."""
DEDUP: Final = b"d"
"""Dedup entries, by generation and a running number."""
OBSOLETE: Final = b"l"
"""Places of changed entries, by commit."""
HELD: Final = b"h"
"""Run of outcomes held for the order of predictions, by its number."""
HELD_SCORES: Final = b"i"
"""Their scores, by the number of the run."""
MODEL: Final = b"m"
"""Name of a model, by number."""
OUTSIDE: Final = b"o"
"""Counts of entries outside the table; a single value."""
SCORES: Final = b"s"
"""Scores of pending predictions, by the place of the first entry of their run."""
SEGMENTS: Final = b"g"
"""Values of segments, by number."""
TOPIC: Final = b"t"
"""Name of a topic, by number."""
WAITING: Final = b"w"
"""Run of waiting entries, by the place of its first."""

_NUMBERED: Final = {CLASS, HELD, HELD_SCORES, MODEL, OBSOLETE, OUTSIDE, SCORES, SEGMENTS, TOPIC, WAITING}
_ONE: Final = Struct(">cQ")
_TWO: Final = Struct(">cQQ")


class ColumnKey(NamedTuple):
    """Parts of a key."""

    kind: bytes
    first: int
    second: int = 0


def key_of(kind: bytes, first: int, second: int | None = None) -> bytes:
    """Build the key of a value; only keys of dedup entries have a second number."""
    return _ONE.pack(kind, first) if second is None else _TWO.pack(kind, first, second)


def parts_of(key: bytes) -> ColumnKey:
    """Split a key into its parts.

    Raises
    ------
    PackedError
        If it is not a key of these kinds.
    """
    kind = key[:1]
    if kind == DEDUP and len(key) == _TWO.size:
        return ColumnKey(*_TWO.unpack(key))
    if kind in _NUMBERED and len(key) == _ONE.size:
        return ColumnKey(*_ONE.unpack(key))
    raise PackedError(f"expected the key of a kind of entries and numbers, got {key.hex()}")
