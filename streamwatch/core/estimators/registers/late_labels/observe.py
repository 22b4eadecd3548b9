"""Compiled loop over outcomes: counts by prediction time, kind and delay, for all models."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.registers.late_labels.geometry import BUCKETS
from streamwatch.core.jit import entry, hot, without_refcount

NONE = -1
"""Bucket number of an empty slot; also the time where there was no outcome."""


@hot
def bucket_of(time_ms, width_ms, inverse):
    """Floor of time / width without a division: the product with the inverse can be off by one."""
    bucket = np.int64(time_ms * inverse)
    rest = time_ms - bucket * width_ms
    if rest < 0:
        return bucket - 1
    if rest >= width_ms:
        return bucket + 1
    return bucket


@hot
def bin_of(delay_ms, steps_ms):
    """Bin of a delay: number of inner edges below it; a search without unpredictable branches."""
    found = 0
    found += 16 * (steps_ms[found + 16] < delay_ms)
    found += 8 * (steps_ms[found + 8] < delay_ms)
    found += 4 * (steps_ms[found + 4] < delay_ms)
    found += 2 * (steps_ms[found + 2] < delay_ms)
    found += 1 * (steps_ms[found + 1] < delay_ms)
    return found


@hot
def take_slot(counts, buckets, newest_ms, row, bucket):
    """Slot of a bucket, emptied if an earlier bucket had it; -1 if a later bucket has it."""
    slot = bucket & (BUCKETS - 1)
    held = buckets[row, slot]
    if held == bucket:
        return slot
    if held > bucket:
        return -1
    if held != NONE:
        counts[row, slot] = 0
    buckets[row, slot] = bucket
    newest_ms[row, slot] = NONE
    return slot


@entry
def observe(counts, buckets, newest_ms, steps_ms, width_ms, longest_ms, rows, hits, event_ms, delay_ms):
    """Count outcomes.

    Parameters
    ----------
    counts
        int32 (models, 64, 2, 23), changed: outcomes by slot, kind and bin of delay.
    buckets
        int64 (models, 64), changed: number of the bucket in each slot, `NONE` for an empty one.
    newest_ms
        int64 (models, 64), changed: newest event time of an outcome in this bucket of event time, or `NONE`.
    steps_ms, width_ms, longest_ms
        Fields of a `Geometry`.
    rows, hits, event_ms, delay_ms
        int32, bool, int64, int64 (n,).
    """
    cells = without_refcount(counts)
    held, newest, steps = (
        without_refcount(buckets),
        without_refcount(newest_ms),
        without_refcount(steps_ms),
    )
    inverse = 1.0 / width_ms
    known_bucket = np.int64(0)
    for i in range(rows.shape[0]):
        row, known_ms, delay = rows[i], event_ms[i], delay_ms[i]
        if delay > longest_ms:
            continue
        if not 0 <= known_ms - known_bucket * width_ms < width_ms:  # otherwise the previous outcome's bucket
            known_bucket = bucket_of(known_ms, width_ms, inverse)
        slot = take_slot(cells, held, newest, row, known_bucket)
        if slot >= 0:
            newest[row, slot] = max(newest[row, slot], known_ms)
        slot = take_slot(cells, held, newest, row, bucket_of(known_ms - delay, width_ms, inverse))
        if slot >= 0:
            cells[row, slot, np.int64(hits[i]), bin_of(delay, steps)] += 1
