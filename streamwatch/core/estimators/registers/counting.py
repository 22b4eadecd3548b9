"""Compiled passes over outcomes: counts by minute for histories, and counts of label delays."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import entry

_MINUTE_MS = 60_000
_LONGEST_MS = 2**40
"""Delay of 35 years; a longer one is summed as this, so that a sum cannot overflow."""
_MOST_MS = 2**62
"""Largest sum of delays; it stays there."""


@entry
def count_minutes(rows, true_class, predicted_class, event_ms, previous, gathered, used, left_rows, left):
    """Count outcomes by minute, in order; outcomes of a minute for which a row has no room are left.

    A minute is looked for among those of its row from the last to the first, so labels in time order find
    theirs at once.

    Parameters
    ----------
    rows, true_class, predicted_class, event_ms
        Columns of `Batch`, each (n,).
    previous
        int32 (rows of the table,), changed: class index of the previous label; negative before the first.
    gathered
        int64 (rows of the table, m, 4), changed: minute since 1970, outcomes, hits, hits of no change.
    used
        int32 (rows of the table,), changed: number of minutes gathered.
    left_rows, left
        int32 (n,) and int64 (n, 4), output: rows of the outcomes that are left, and what `gathered` would
        have of each.

    Returns
    -------
    int
        Number of outcomes that are left.
    """
    count = 0
    for i in range(rows.shape[0]):
        row, minute, truth = rows[i], event_ms[i] // _MINUTE_MS, true_class[i]
        right, no_change = np.int64(predicted_class[i] == truth), np.int64(previous[row] == truth)
        previous[row] = truth
        k = np.int64(used[row]) - 1
        while k >= 0 and gathered[row, k, 0] != minute:
            k -= 1
        if k >= 0:
            gathered[row, k, 1] += 1
            gathered[row, k, 2] += right
            gathered[row, k, 3] += no_change
            continue
        k = np.int64(used[row])
        if k < gathered.shape[1]:
            used[row] = k + 1
            gathered[row, k, 0] = minute
            gathered[row, k, 1] = 1
            gathered[row, k, 2] = right
            gathered[row, k, 3] = no_change
        else:
            left_rows[count] = row
            left[count, 0] = minute
            left[count, 1] = 1
            left[count, 2] = right
            left[count, 3] = no_change
            count += 1
    return count


@entry
def count_delays(rows, delay_ms, event_ms, assumed, bounds_ms, counts, sum_ms, latest_ms):
    """Count the delays of labels that came, not of assumed ones.

    Parameters
    ----------
    rows, delay_ms, event_ms, assumed
        Columns of `Batch`, each (n,).
    bounds_ms
        int64 (b,): upper bounds of buckets, increasing; the last bucket has none.
    counts
        int64 (rows of the table, b + 1), changed: labels per bucket.
    sum_ms, latest_ms
        int64 (rows of the table,), changed: sum of delays, event time of the latest label.
    """
    for i in range(rows.shape[0]):
        if assumed[i]:
            continue
        row, delay = rows[i], delay_ms[i]
        low, high = 0, bounds_ms.shape[0]
        while low < high:
            middle = (low + high) // 2
            if bounds_ms[middle] < delay:
                low = middle + 1
            else:
                high = middle
        counts[row, low] += 1
        sum_ms[row] = min(sum_ms[row] + min(delay, _LONGEST_MS), _MOST_MS)
        latest_ms[row] = max(latest_ms[row], event_ms[i])
