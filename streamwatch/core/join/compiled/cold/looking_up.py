"""Look-up of ids in one run: by filter, then by fences, then in the blocks that may contain them."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import entry, hot, prefetch, word_at
from streamwatch.core.join.compiled.cold.bits import is_set
from streamwatch.core.join.compiled.cold.block import (
    HEADER_BYTES,
    SMALLEST_AT,
    WIDTHS_AT,
    count_at,
    mask_of,
    unpack_entries,
)
from streamwatch.core.join.compiled.cold.bloom import line_of, may_have
from streamwatch.core.join.compiled.cold.dropped import is_dropped

_AHEAD = 12
_STEPS = 8
"""Number of fences examined one by one around the interpolated position, before a binary search."""


@hot
def fences_below(fences, low):
    """Count the fences smaller than `low`, by interpolation, as digests are uniform."""
    n = fences.shape[0]
    span = fences[n - 1] - fences[0]
    at = 0
    if low > fences[0] and span > 0:
        at = n if low > fences[n - 1] else np.int64(np.float64(low - fences[0]) / np.float64(span) * (n - 1))
    at = min(max(at, 0), n)
    for _ in range(_STEPS):
        if at < n and fences[at] < low:
            at += 1
        elif at > 0 and fences[at - 1] >= low:
            at -= 1
        else:
            return at
    a, b = 0, n
    while a < b:
        middle = (a + b) >> 1
        if fences[middle] < low:
            a = middle + 1
        else:
            b = middle
    return a


@entry
def find_candidates(low, high, bloom, fences, which, first, last):
    """Find which ids (sorted by `low`) may be in the run, and in which blocks; return their number."""
    count = 0
    n = low.shape[0]
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(bloom, 8 * line_of(bloom, low[i + _AHEAD]))
        if not may_have(bloom, low[i], high[i]):
            continue
        end = fences_below(fences, low[i])
        which[count] = i
        first[count] = max(end - 1, 0)
        while end < fences.shape[0] and fences[end] == low[i]:
            end += 1
        last[count] = max(end - 1, 0)
        count += 1
    return count


@hot
def first_at_least(data, at, low):
    """Position in the block at byte `at` of the first entry whose `low` is not smaller."""
    width = np.int64(data[at + WIDTHS_AT])
    smallest = word_at(data, at + SMALLEST_AT)
    mask = mask_of(width)
    a, b = 0, count_at(data, at)
    if low <= smallest:
        return a
    sought = low - smallest
    while a < b:
        middle = (a + b) >> 1
        if word_at(data, at + HEADER_BYTES + middle * width) & mask < sought:
            a = middle + 1
        else:
            b = middle
    return a


@hot
def low_at(data, at, i):
    """Field `low` of entry i of the block at byte `at`."""
    width = np.int64(data[at + WIDTHS_AT])
    value = word_at(data, at + HEADER_BYTES + i * width) & mask_of(width)
    return value + word_at(data, at + SMALLEST_AT)


@entry
def distinct_blocks(first, last, numbers, slots):
    """Write the distinct numbers of the blocks of ids, sorted by `low`; return how many they are.

    `slots` receives the index in `numbers` of the first block of each id; its other blocks follow.
    """
    count = 0
    for m in range(first.shape[0]):
        # Blocks shared with earlier ids are the last ones written.
        known = 0 if count == 0 else max(numbers[count - 1] - first[m] + 1, 0)
        slots[m] = count - known
        for number in range(first[m] + known, last[m] + 1):
            numbers[count] = number
            count += 1
    return count


@entry
def search(
    low,
    high,
    asked,
    slots,
    more,
    data,
    begins,
    numbers,
    block_entries,
    dead,
    floor,
    run,
    words,
    places,
    count,
):
    """Append the living entries of ids to the `count` entries found before; return the new number.

    If the result is not less than the length of `words`, some were not written for lack of room.

    Parameters
    ----------
    low, high
        uint64 (ids,): all ids.
    asked
        int64 (n,): indices of those that may be in the run.
    slots, more
        int64 (n,): first block of each, as an index of `numbers`, and how many further blocks to search.
    data, begins, numbers
        Consecutive blocks, where each begins (and the last ends), and their numbers in the run.
    block_entries, dead, floor
        Block size and dead bits of the run; oldest generation of dedup entries that is not dropped.
    run
        Number of the run.
    words, places
        uint64 (room, 8); int64 (room, 3), output: entry; index of the id, position in the run, and the run.
    """
    room = words.shape[0] - 1
    for m in range(asked.shape[0]):
        sought = low[asked[m]]
        for slot in range(slots[m], slots[m] + more[m] + 1):
            at = begins[slot]
            size = count_at(data, at)
            for i in range(first_at_least(data, at, sought), size):
                if low_at(data, at, i) != sought:
                    break
                position = numbers[slot] * block_entries + i
                if is_set(dead, position):
                    continue
                k = min(count, room)
                unpack_entries(data, at, i, 1, words, k)
                if words[k, 1] == high[asked[m]] and not is_dropped(words, k, floor):
                    places[k, 0] = asked[m]
                    places[k, 1] = position
                    places[k, 2] = run
                    count += 1
    return count
