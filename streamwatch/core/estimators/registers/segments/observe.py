"""Compiled loop over outcomes: finds the table row of each, and counts the traffic of its value."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot
from streamwatch.core.records.events import OTHER

# Compiled hash table of the segments' values, by number of the segment and number of the value.
#
# Open addressing with linear probing. Removing a key moves later ones up instead of leaving a marker, so
# removed values cost nothing.


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
def slot_of(keys, key):
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
        int64 and int32 (a power of two), changed; at least half of the slots must stay free.
    new_keys, new_meanings
        int64 and int32 (n,).
    """
    added = 0
    for i in range(new_keys.shape[0]):
        at = slot_of(keys, new_keys[i])
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
        gap = slot_of(keys, doomed[i])
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


# Limits on a segment's values, and the choice of those with estimates of their own.


EPOCH: Final = 10_000
"""Number of outcomes of a segment after which its values are compared by traffic."""
CANDIDATES: Final = 1_000
"""Most values without estimates that are counted within an epoch; further ones wait for the next epoch."""
_OUTWEIGHS: Final = 2
"""A candidate replaces a value if it had more than this many times its outcomes within an epoch."""


def exchanged(candidates: Mapping[str, int], own: Mapping[str, int]) -> list[tuple[str, str]]:
    """Choose the values to add and to remove at the end of an epoch, as pairs (added, removed).

    Parameters
    ----------
    candidates
        Outcomes within the epoch of the values without estimates of their own.
    own
        Outcomes within the epoch of the values that have estimates.

    Returns
    -------
    list
        The most frequent candidate in place of the rarest value, if it had more than twice as many
        outcomes, and so on with the next; among equally frequent ones the first by name.
    """
    least = min(own.values(), default=0)
    frequent = [(name, n) for name, n in candidates.items() if name != OTHER and n > _OUTWEIGHS * least]
    coming = sorted(frequent, key=lambda each: (-each[1], each[0]))
    going = sorted(own.items(), key=lambda each: (each[1], each[0])) if coming else []
    found: list[tuple[str, str]] = []
    for (newcomer, outcomes), (value, before) in zip(coming, going, strict=False):
        if outcomes <= _OUTWEIGHS * before:
            break
        found.append((newcomer, value))
    return found


OTHERS = 0
"""Number of the value that stands for all others."""
NONE = -1
"""Stands for a missing segment, row, or range of candidates."""

DONE, NEW_SEGMENT, NEW_VALUE, NEW_OTHERS, NEW_CANDIDATES, CROWDED, EPOCH_ENDED = range(7)
"""Reasons for which the loop returns; the caller provides what is missing, and calls it again."""
_LEFT_OUT = -1
_STOP = -2
"""Rows at or below this encode a reason."""

OUTCOME, ENTRY, WRITTEN = range(3)
"""Fields of the cursor: next outcome, its next segment, number of rows written."""


class SegmentedOutcomes(NamedTuple):
    """Outcomes with segments: i has `lengths[i]` entries of `names` and `values` from `starts[i]` on."""

    models: NDArray[np.int32]
    """Row of each outcome's model, (n,)."""
    true_class: NDArray[np.int32]
    """Class of each outcome's label, (n,)."""
    starts: NDArray[np.int32]
    lengths: NDArray[np.int32]
    names: NDArray[np.int32]
    """Number of a segment's name, by entry."""
    values: NDArray[np.int32]
    """Number of the segment's value, by entry."""


class SegmentRecords(NamedTuple):
    """Records of models, segments and values; all but `numbers` are changed."""

    numbers: NDArray[np.int32]
    """Number of each model's segment by name, or `NONE`, (models, names)."""
    segments: NDArray[Any]
    """Records `SEGMENT` by segment number."""
    values: NDArray[Any]
    """Records `VALUE` by row."""
    last: NDArray[np.int32]
    """Class of each model's latest label, (models,); `NONE` before the first."""


class ValueIndex(NamedTuple):
    """Hash table of the values, changed."""

    keys: NDArray[np.int64]
    meanings: NDArray[np.int32]
    """Row of the value, or −1 minus its position among the candidates, by slot."""
    taken: NDArray[np.int64]
    """Number of keys, (1,)."""


class Candidates(NamedTuple):
    """Values without a row of their own in ranges of `CANDIDATES` per segment, changed."""

    values: NDArray[np.int32]
    counts: NDArray[np.int64]
    """Number of outcomes in this epoch."""


class Limits(NamedTuple):
    """Limits and fading factor of the values of a segment."""

    alpha: float
    """Fading factor."""
    own: int
    """Most values of a segment with rows of their own."""
    room: bool
    """Whether the table has a free row."""


class FoundRows(NamedTuple):
    """Output of the loop, by row written."""

    rows: NDArray[np.int32]
    positions: NDArray[np.int64]
    """Position of the outcome in the batch."""
    previous: NDArray[np.int32]
    """Class of the previous label in the model's stream, whatever segments that outcome had."""


@hot
def row_of(segment, number, value, index, candidates, limits):
    """Row in which an outcome of a value counts, `_LEFT_OUT`, or `_STOP` minus a reason to return."""
    at = slot_of(index.keys, key_of(number, value))
    known = index.keys[at] != EMPTY
    if known and index.meanings[at] >= 0:
        return np.int64(index.meanings[at])
    if value == OTHERS and segment.other != NONE:
        return np.int64(segment.other)
    if value != OTHERS and segment.own < limits.own:
        if limits.room:
            return np.int64(_STOP - NEW_VALUE)
        if segment.other == NONE:  # with a row for the others it counts there until there is room
            return np.int64(_LEFT_OUT)
    if segment.other == NONE and limits.room:
        return np.int64(_STOP - NEW_OTHERS)
    if known:
        candidates.counts[-1 - index.meanings[at]] += 1
    elif segment.candidates < CANDIDATES:
        if segment.stretch == NONE:
            return np.int64(_STOP - NEW_CANDIDATES)
        if 2 * (index.taken[0] + 1) > index.keys.shape[0]:
            return np.int64(_STOP - CROWDED)
        position = segment.stretch * CANDIDATES + segment.candidates
        candidates.values[position], candidates.counts[position] = value, 1
        index.keys[at], index.meanings[at] = key_of(number, value), -1 - position
        index.taken[0] += 1
        segment.candidates += 1
    return np.int64(segment.other if segment.other != NONE else _LEFT_OUT)


@entry
def observe(outcomes, records, index, candidates, limits, cursor, found):
    """Find the table rows of outcomes by segment, in order, and count the traffic.

    Parameters
    ----------
    outcomes, records, index, candidates, limits
        Instances of the named tuples above.
    cursor
        int64 (3,), changed: position from which to continue.
    found
        `FoundRows`, written.

    Returns
    -------
    int
        Reason for which the loop returned.
    """
    i, k, written = cursor[OUTCOME], cursor[ENTRY], cursor[WRITTEN]
    reason = DONE
    while i < outcomes.models.shape[0] and reason == DONE:
        model = outcomes.models[i]
        while k < outcomes.lengths[i] and reason == DONE:
            which = outcomes.starts[i] + k
            number = records.numbers[model, outcomes.names[which]]
            if number == NONE:
                reason = NEW_SEGMENT
                break
            segment = records.segments[number]
            row = row_of(segment, number, outcomes.values[which], index, candidates, limits)
            if row <= _STOP:
                reason = _STOP - row
                break
            k += 1
            if row == _LEFT_OUT:
                segment.left_out += 1
                continue
            segment.counted += 1
            value = records.values[row]
            value.weight = value.weight * math.pow(limits.alpha, float(segment.counted - value.at)) + 1.0
            value.at = segment.counted
            value.outcomes += 1
            value.in_epoch += 1
            found.rows[written], found.positions[written] = row, i
            found.previous[written] = records.last[model]
            written += 1
            if segment.counted % EPOCH == 0:
                reason = EPOCH_ENDED
        if reason == DONE:
            records.last[model] = outcomes.true_class[i]
            i, k = i + 1, 0
    cursor[OUTCOME], cursor[ENTRY], cursor[WRITTEN] = i, k, written
    return reason
