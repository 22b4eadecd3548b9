"""Compiled loop over outcomes: finds the table row of each, and counts the traffic of its value."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import math

import numpy as np

from streamwatch.core.estimators.registers.segments.places import EMPTY, key_of, place_of
from streamwatch.core.estimators.registers.segments.values import CANDIDATES, EPOCH
from streamwatch.core.jit import entry, hot, without_refcount

OTHERS = 0
"""Number of the value that stands for all others."""
NONE = -1
"""Stands for a missing segment, row, or range of candidates."""

DONE, NEW_SEGMENT, NEW_VALUE, NEW_OTHERS, NEW_CANDIDATES, CROWDED, EPOCH_ENDED = range(7)
"""Reasons for which the loop returns; after the caller has provided what is missing, it continues."""
_LEFT_OUT = -1
_STOP = -2
"""Rows at or below this encode a reason."""

OUTCOME, ENTRY, PLACED = range(3)
"""Fields of the cursor: next outcome, its next segment, number of rows written."""


@hot
def row_of(segment, number, value, most, room, keys, meanings, taken, candidates, counts):
    """Row in which an outcome of a value counts, `_LEFT_OUT`, or `_STOP` minus a reason to return."""
    at = place_of(keys, key_of(number, value))
    known = keys[at] != EMPTY
    if known and meanings[at] >= 0:
        return np.int64(meanings[at])
    if value == OTHERS and segment.other != NONE:
        return np.int64(segment.other)
    if value != OTHERS and segment.own < most:
        if room:
            return np.int64(_STOP - NEW_VALUE)
        if segment.other == NONE:  # with a row for the others it counts there until there is room
            return np.int64(_LEFT_OUT)
    if segment.other == NONE and room:
        return np.int64(_STOP - NEW_OTHERS)
    if known:
        counts[-1 - meanings[at]] += 1
    elif segment.candidates < CANDIDATES:
        if segment.stretch == NONE:
            return np.int64(_STOP - NEW_CANDIDATES)
        if 2 * (taken[0] + 1) > keys.shape[0]:
            return np.int64(_STOP - CROWDED)
        place = segment.stretch * CANDIDATES + segment.candidates
        candidates[place], counts[place] = value, 1
        keys[at], meanings[at] = key_of(number, value), -1 - place
        taken[0] += 1
        segment.candidates += 1
    return np.int64(segment.other if segment.other != NONE else _LEFT_OUT)


@entry
def observe(
    models,
    starts,
    lengths,
    names,
    values,
    segment_of,
    segments,
    kept,
    keys,
    meanings,
    taken,
    candidates,
    counts,
    alpha,
    most,
    room,
    cursor,
    rows,
    positions,
):
    """Find the table rows of outcomes by segment, in order, and count the traffic.

    Return the reason of the end.

    Parameters
    ----------
    models, starts, lengths
        int32 (n,): row of each outcome's model, and the range of its segments in `names` and `values`.
    names, values
        int32: number of a segment's name, and of its value.
    segment_of
        int32 (models, names): number of each model's segment by name, or `NONE`.
    segments, kept
        Records `SEGMENT` by segment number, and `VALUE` by row, changed.
    keys, meanings, taken
        Hash table of values, changed: `meanings` is the row, or −1 minus the position among candidates;
        `taken`, int64 (1,), is the number of keys.
    candidates, counts
        int32 and int64, changed: value and number of outcomes, in ranges of `CANDIDATES` per segment.
    alpha, most, room
        Fading factor, values of a segment with rows of their own, and whether the table has a free row.
    cursor
        int64 (3,), changed: position from which to continue.
    rows, positions
        int32 and int64, output: row, and position of the outcome.
    """
    segments, kept, segment_of = (
        without_refcount(segments),
        without_refcount(kept),
        without_refcount(segment_of),
    )
    keys, meanings, taken = without_refcount(keys), without_refcount(meanings), without_refcount(taken)
    candidates, counts = without_refcount(candidates), without_refcount(counts)
    i, k, placed = cursor[OUTCOME], cursor[ENTRY], cursor[PLACED]
    reason = DONE
    while i < models.shape[0] and reason == DONE:
        while k < lengths[i] and reason == DONE:
            which = starts[i] + k
            number = segment_of[models[i], names[which]]
            if number == NONE:
                reason = NEW_SEGMENT
                break
            segment = segments[number]
            row = row_of(
                segment, number, values[which], most, room, keys, meanings, taken, candidates, counts
            )
            if row <= _STOP:
                reason = _STOP - row
                break
            k += 1
            if row == _LEFT_OUT:
                segment.left_out += 1
                continue
            segment.counted += 1
            value = kept[row]
            value.weight = value.weight * math.pow(alpha, float(segment.counted - value.at)) + 1.0
            value.at = segment.counted
            value.outcomes += 1
            value.in_epoch += 1
            rows[placed], positions[placed] = row, i
            placed += 1
            if segment.counted % EPOCH == 0:
                reason = EPOCH_ENDED
        if reason == DONE:
            i, k = i + 1, 0
    cursor[OUTCOME], cursor[ENTRY], cursor[PLACED] = i, k, placed
    return reason
