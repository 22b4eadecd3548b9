"""The loop over outcomes: which row of the table each counts in, and the traffic of its value."""

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
"""Segment of a model that has had none of that name; row, or stretch of candidates, of who has none."""

DONE, NEW_SEGMENT, NEW_VALUE, NEW_OTHERS, NEW_CANDIDATES, CROWDED, EPOCH_ENDED = range(7)
"""Reasons for which the loop ends; it goes on where it was once what is missing has been made."""
_LEFT_OUT = -1
_STOP = -2
"""A row of so much and less stands for a reason."""

OUTCOME, ENTRY, PLACED = range(3)
"""What the cursor says: outcome and which of its segments come next, and how many rows were written."""


@hot
def row_of(segment, number, value, most, room, keys, meanings, taken, candidates, counts):
    """Row that an outcome of a value counts in, `_LEFT_OUT`, or `_STOP` less a reason to end the loop."""
    at = place_of(keys, key_of(number, value))
    known = keys[at] != EMPTY
    if known and meanings[at] >= 0:
        return np.int64(meanings[at])
    if value == OTHERS and segment.other != NONE:
        return np.int64(segment.other)
    if value != OTHERS and segment.own < most:
        if room:
            return np.int64(_STOP - NEW_VALUE)
        if segment.other == NONE:  # with a row of the others, it is one of them until there is room
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
    """Find the rows of outcomes by segment, in order, and count the traffic; gives why it ended.

    Parameters
    ----------
    models, starts, lengths
        int32 (n,): row of each outcome's model, and which of `names` and `values` are its segments.
    names, values
        int32: number of a segment's name, and of its value.
    segment_of
        int32 (models, names): number of each model's segment of a name, or `NONE`.
    segments, kept
        Of dtype `SEGMENT` and `VALUE`, by number and by row, changed.
    keys, meanings, taken
        Table of values, changed: what a key means is its row, or −1 less its place among candidates; `taken`,
        int64 (1,), is how many there are.
    candidates, counts
        int32 and int64, changed: a stretch of `CANDIDATES` places for each segment that needs them.
    alpha, most, room
        Fading factor, values of a segment with rows of their own, and whether the table has a free row.
    cursor
        int64 (3,), changed: where to begin.
    rows, positions
        int32 and int64, written: row, and which outcome.
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
