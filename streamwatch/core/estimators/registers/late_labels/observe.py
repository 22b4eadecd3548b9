"""Compiled loop over outcomes: counts by prediction time, kind and delay, for all models."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot, inner

# Buckets of prediction time and bins of delay in which late labels are counted.


Integers: TypeAlias = NDArray[np.int64]
Counts: TypeAlias = NDArray[np.int32]

BUCKETS: Final = 64
"""Number of buckets of prediction time kept; together they span one and a half horizons."""
BINS: Final = 23
"""Number of bins of delay, whose widths grow geometrically."""
ERROR, HIT = 0, 1
"""Kinds of outcomes."""
KINDS: Final = 2
HALF: Final = 21
"""Number of buckets in half a horizon."""
_FIRST_EDGE: Final = 240
"""The first bin of delay is the horizon divided by this."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Buckets of prediction time, counted from the epoch, and bins of delay, in milliseconds.

    Attributes
    ----------
    horizon_ms
        Longest time that a label may take.
    width_ms
        Width of a bucket: 1.5 horizons / 64, rounded up.
    edges_ms
        Edges of the bins, shape (24,): 0, a 240th of the horizon, … the horizon. A delay d lies in bin k
        where edges_ms[k] < d ≤ edges_ms[k + 1]; a delay of 0 lies in bin 0.
    """

    horizon_ms: int
    width_ms: int
    edges_ms: Integers
    steps_ms: Integers
    """Edges for the binary search of a bin, (32,): inner edges at 1 … 22, padded by values never reached."""

    @property
    def early_bins(self) -> int:
        """Number of bins of delays of at most half a horizon."""
        return int(np.searchsorted(self.edges_ms[1:], self.horizon_ms / 2, side="right"))

    @property
    def longest_ms(self) -> int:
        """Delay beyond which an outcome is ignored, as the times of its events contradict the horizon."""
        return self.horizon_ms + self.width_ms


def geometry_of(horizon_ms: int) -> Geometry:
    """Compute the buckets and bins of a horizon of at least a second."""
    width_ms = -(-3 * horizon_ms // (2 * BUCKETS))
    edges = np.geomspace(horizon_ms / _FIRST_EDGE, horizon_ms, BINS)
    edges_ms = np.concatenate(([0], np.rint(edges).astype(np.int64)))
    steps_ms = np.full(32, np.iinfo(np.int64).max)
    steps_ms[:BINS] = edges_ms[:BINS]
    return Geometry(horizon_ms, width_ms, edges_ms, steps_ms)


NONE = -1
"""Bucket number of an empty slot; also the time where there was no outcome."""
MOST: Final = 2**31 - 1
"""Largest count."""


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


@inner
def halve(counts, row):
    """Halve all counts of a model, of which one is `MOST`; what is there stays at least 1.

    Shares stay as they are, and effective sample sizes are halved.
    """
    for slot in range(BUCKETS):
        for z in range(KINDS):
            for k in range(BINS):
                counts[row, slot, z, k] -= counts[row, slot, z, k] >> 1


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
    inverse = 1.0 / width_ms
    known_bucket = np.int64(0)
    for i in range(rows.shape[0]):
        row, known_ms, delay = rows[i], event_ms[i], delay_ms[i]
        if delay > longest_ms:
            continue
        if not 0 <= known_ms - known_bucket * width_ms < width_ms:  # otherwise the previous outcome's bucket
            known_bucket = bucket_of(known_ms, width_ms, inverse)
        slot = take_slot(counts, buckets, newest_ms, row, known_bucket)
        if slot >= 0:
            newest_ms[row, slot] = max(newest_ms[row, slot], known_ms)
        slot = take_slot(counts, buckets, newest_ms, row, bucket_of(known_ms - delay, width_ms, inverse))
        if slot >= 0:
            z, k = np.int64(hits[i]), bin_of(delay, steps_ms)
            if counts[row, slot, z, k] == MOST:
                halve(counts, row)
            counts[row, slot, z, k] += 1


@entry
def add_up(counts, last, early_bins, outcomes, early, in_bin, up_to):
    """Add up the counts of m models, in one pass over them.

    Parameters
    ----------
    counts
        int32 (m, 64, 2, 23): outcomes by bucket (oldest first), kind and bin of delay.
    last
        int64 (m, 23): newest bucket that is added up in each bin, -1 for none.
    early_bins
        Number of bins, from the first, that `early` adds up.
    outcomes
        int64 (m, 64, 2), output: outcomes by bucket and kind.
    early
        int64 (3, m, 64, 2), output: outcomes of the first bins, and the sums of the numbers of their bins and
        of the squares of these.
    in_bin, up_to
        int64 (m, 2, 23), zeros, output: outcomes in each bin, and in it or an earlier one, of the buckets up
        to `last`.
    """
    for m in range(counts.shape[0]):
        for c in range(BUCKETS):
            for z in range(KINDS):
                so_far = np.int64(0)
                n = total = squares = np.int64(0)
                for k in range(BINS):
                    own = np.int64(counts[m, c, z, k])
                    so_far += own
                    if c <= last[m, k]:
                        in_bin[m, z, k] += own
                        up_to[m, z, k] += so_far
                    if k < early_bins:
                        n += own
                        total += k * own
                        squares += k * k * own
                outcomes[m, c, z] = so_far
                early[0, m, c, z] = n
                early[1, m, c, z] = total
                early[2, m, c, z] = squares


@entry
def mean_bins(early, last, block_lengths, mean, variance, outcomes):
    """Compute the mean bin number of early outcomes, and its variance, over 21 buckets of m models.

    Parameters
    ----------
    early
        As `add_up` gives it.
    last
        int64 (m,): last of the 21 buckets; bucket indices below 0 are left out.
    block_lengths
        int64: numbers of buckets in a block, divisors of 21. The variance is the largest of those between
        blocks of each length, and of that of single outcomes.
    mean, variance, outcomes
        float64 (m, 2), output, by kind; `mean` and `variance` are 0 without outcomes.
    """
    for m in range(last.shape[0]):
        first = last[m] - HALF + 1
        for z in range(KINDS):
            n = total = squares = 0.0
            for c in range(max(first, 0), last[m] + 1):
                n += early[0, m, c, z]
                total += early[1, m, c, z]
                squares += early[2, m, c, z]
            at_least = max(n, 1.0)
            mean[m, z] = middle = total / at_least
            largest = max(squares / at_least - middle * middle, 0.0) / at_least
            for length in block_lengths:
                number = HALF // length
                sum_of_squares = 0.0
                for block in range(number):
                    left = 0.0
                    for c in range(max(first + block * length, 0), first + (block + 1) * length):
                        left += early[1, m, c, z] - early[0, m, c, z] * middle
                    sum_of_squares += left * left
                largest = max(largest, sum_of_squares * number / (number - 1.0) / (at_least * at_least))
            variance[m, z] = largest
            outcomes[m, z] = n


# Optimal partition of buckets into segments of constant error, at a penalty per boundary.


_NOTHING = 1e-9
"""Weight below which only rounding error is left."""


@hot
def log_likelihood(wrong, weight, start, stop):
    """Maximum log likelihood of the buckets from start to stop as binomials of one probability.

    `wrong`, `weight`: cumulative sums of errors and of outcomes before each bucket.
    """
    n = weight[stop] - weight[start]
    errors = wrong[stop] - wrong[start]
    hits = n - errors
    found = 0.0
    if errors > _NOTHING:
        found += errors * log(errors / n)
    if hits > _NOTHING:
        found += hits * log(hits / n)
    return found


@entry
def last_boundary(wrong, weight, price, best, before, lost):
    """Find the last two boundaries of the best partition of n buckets; among equals, that with the fewest.

    Optimal partitioning (Jackson et al. 2005), O(n²). Returns (boundary before the last, last boundary), with
    0 for one that does not exist.

    Parameters
    ----------
    wrong, weight
        float64 (n + 1,): cumulative sums of errors and outcomes before each bucket, and of all.
    price
        Log likelihood that a boundary must gain.
    best, before
        float64, int64 (n + 1,), output: value of the best partition of the buckets before each, and its last
        boundary.
    lost
        float64 (n + 1,), written between the boundary before the last and the end, if there is a last one:
        twice the log likelihood that is lost with this bucket as the last boundary.
    """
    end = wrong.shape[0] - 1
    best[0] = price
    before[0] = 0
    for stop in range(1, end + 1):
        best[stop] = -np.inf
        for start in range(stop):
            worth = best[start] + log_likelihood(wrong, weight, start, stop) - price
            if worth > best[stop]:
                best[stop] = worth
                before[stop] = start
    split = before[end]
    start = before[split]
    if split > 0:
        most = log_likelihood(wrong, weight, start, split) + log_likelihood(wrong, weight, split, end)
        for at in range(start + 1, end):
            own = log_likelihood(wrong, weight, start, at) + log_likelihood(wrong, weight, at, end)
            lost[at] = 2.0 * (most - own)
    return start, split
