"""The compiled table of a segment's values: where the state of each is, by segment and number of the value.

Open addressing with linear probing. A key is found by its hash, or right behind it; what is removed leaves no
gap, so that a value which has gone costs nothing.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import entry, hot

EMPTY = -1
"""Key of a place that is free."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_UPPER = np.uint64(32)


@hot
def key_of(segment, value):
    """One number for a segment and a number of a value."""
    return np.int64(segment) << 32 | np.int64(value)


@hot
def home_of(keys, key):
    """Place where a key is, if no other has it."""
    return np.int64(np.uint64(key) * _MIX >> _UPPER) & (keys.shape[0] - 1)


@hot
def place_of(keys, key):
    """Place of a key, or the free one where it belongs."""
    at = home_of(keys, key)
    while keys[at] != key and keys[at] != EMPTY:
        at = (at + 1) & (keys.shape[0] - 1)
    return at


@entry
def remember(keys, meanings, new_keys, new_meanings):
    """Enter keys with what they mean, or change what they mean; gives how many are new.

    Parameters
    ----------
    keys, meanings
        int64 and int32 (a power of two), changed; more than half of the places stay free.
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
    """Remove keys, and move those behind them up; gives how many there were."""
    mask = keys.shape[0] - 1
    removed = 0
    for i in range(doomed.shape[0]):
        gap = place_of(keys, doomed[i])
        if keys[gap] == EMPTY:
            continue
        removed += 1
        at = (gap + 1) & mask
        while keys[at] != EMPTY:
            if (at - home_of(keys, keys[at])) & mask >= (at - gap) & mask:  # its home is not behind the gap
                keys[gap], meanings[gap] = keys[at], meanings[at]
                gap = at
            at = (at + 1) & mask
        keys[gap] = EMPTY
    return removed
