"""Growth of a compiled join's arrays ahead of need, since doubling millions of entries takes a while."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamwatch.core.join.compiled.layout import Arrays, allocate_entries, allocate_places, allocate_slots
from streamwatch.core.join.compiled.table import rehash
from streamwatch.core.words import words_of

_LARGE: Final = 1 << 17
"""Number of entries from which on it is worth growing early; fewer take some milliseconds."""
_AHEAD: Final = 1 << 14
"""Number of further records for which there must be room to call the table not nearly full."""


def shift_of(slots: int) -> np.uint64:
    """Shift that turns `low` of an id into its home slot in a table of `slots` slots, a power of two."""
    return np.uint64(65 - slots.bit_length())


def is_nearly_full(arrays: Arrays) -> bool:
    """Tell whether a large table may need more entries or slots for the next records."""
    return len(arrays.entries) >= _LARGE and (_few_entries(arrays, _AHEAD) or _few_slots(arrays, _AHEAD))


def grown(arrays: Arrays, ahead: int = _AHEAD) -> Arrays:
    """Double the entries if they may not suffice for `ahead` more records, otherwise the slots.

    Returns new arrays and leaves the given ones as they are.
    """
    return _with_entries(arrays) if _few_entries(arrays, ahead) else _with_slots(arrays)


def _few_entries(arrays: Arrays, ahead: int) -> bool:
    totals, room = arrays.totals[0], len(arrays.entries)
    if int(totals["top"]) + ahead < room:
        return False
    if ahead == 0:
        return int(totals["free"]) < 0
    waiting = ("pending", "early", "unmatched", "retained", "open_entries", "closed_entries")
    return sum(int(totals[name]) for name in waiting) + ahead >= room


def _few_slots(arrays: Arrays, ahead: int) -> bool:
    return int(arrays.totals["chains"][0]) + ahead >= len(arrays.slots) // 8 * 5


def _with_entries(arrays: Arrays) -> Arrays:
    before = len(arrays.entries)
    entries = allocate_entries(2 * before)
    words_of(entries)[:before] = words_of(arrays.entries)
    places = allocate_places(len(entries))
    if arrays.places.any():  # otherwise its memory stays untouched
        places[:before] = arrays.places
    obsolete_places = allocate_places(2 * len(entries))
    noted = int(arrays.totals["obsolete"][0])
    obsolete_places[:noted] = arrays.obsolete_places[:noted]
    return arrays._replace(entries=entries, places=places, obsolete_places=obsolete_places)


def _with_slots(arrays: Arrays) -> Arrays:
    slots = allocate_slots(2 * len(arrays.slots))
    rehash(arrays.slots, slots, shift_of(len(slots)))
    return arrays._replace(slots=slots)
