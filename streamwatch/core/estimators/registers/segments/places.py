"""Compiled hash table of the segments' values, by number of the segment and number of the value.

Open addressing with linear probing. Removing a key moves later ones up instead of leaving a marker, so
removed values cost nothing.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import entry, hot

EMPTY = -1
"""Key of a free slot."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_UPPER = np.uint64(32)


@hot
def key_of(segment, value):
    """Key of a segment number and a value number."""
    return np.int64(segment) << 32 | np.int64(value)


@hot
def home_of(keys, key):
    """Slot at which the search for a key starts."""
    return np.int64(np.uint64(key) * _MIX >> _UPPER) & (keys.shape[0] - 1)


@hot
def place_of(keys, key):
    """Slot of a key, or the free one where it belongs."""
    at = home_of(keys, key)
    while keys[at] != key and keys[at] != EMPTY:
        at = (at + 1) & (keys.shape[0] - 1)
    return at


@entry
def remember(keys, meanings, new_keys, new_meanings):
    """Insert or update keys; return the number of new ones.

    Parameters
    ----------
    keys, meanings
        int64 and int32 (a power of two), changed; more than half of the slots must stay free.
    new_keys, new_meanings
        int64 and int32 (n,).
    """
    added = 0
    for i in range(new_keys.shape[0]):
        at = place_of(keys, new_keys[i])
        added += keys[at] == EMPTY
        keys[at] = new_keys[i]
        meanings[at] = new_meanings[i]
    return added


@entry
def forget(keys, meanings, doomed):
    """Remove keys, and move up those behind them; return the number removed."""
    mask = keys.shape[0] - 1
    removed = 0
    for i in range(doomed.shape[0]):
        gap = place_of(keys, doomed[i])
        if keys[gap] == EMPTY:
            continue
        removed += 1
        at = (gap + 1) & mask
        while keys[at] != EMPTY:
            if (at - home_of(keys, keys[at])) & mask >= (at - gap) & mask:  # its home is not after the gap
                keys[gap], meanings[gap] = keys[at], meanings[at]
                gap = at
            at = (at + 1) & mask
        keys[gap] = EMPTY
    return removed
