"""Compiled search for the label known at each prediction, in the history of its model's last label."""

from __future__ import annotations

from typing import Any

from streamwatch.core.jit import entry, hot


@hot
def is_before(history: Any, n: int, accepted: Any, k: int) -> Any:
    """Tell whether a change's place is before that of a prediction."""
    for column in range(4):
        if history[n, column] != accepted[k, column]:
            return history[n, column] < accepted[k, column]
    return False


@entry
def look_up(history: Any, count: int, accepted: Any, resolved: Any, labels: Any, known: Any) -> int:
    """Find the label known at each prediction, and add the labels that resolve them to the history, in order.

    Parameters
    ----------
    history
        int64 (room, 6): places and labels of changes, oldest first; with room for one more per outcome.
    count
        Number of changes.
    accepted
        int64 (n, 4): places of the predictions.
    resolved
        int64 (n, 5): places of their resolutions, ascending.
    labels
        int64 (n,): labels that resolved them; -1 for assumed outcomes, which change nothing.
    known
        int64 (n,), output: labels known at prediction; -1 if none was known.

    Returns
    -------
    int
        New number of changes.
    """
    low = count
    for k in range(accepted.shape[0]):
        # Predictions are mostly resolved in their order: the search widens from where the last one ended.
        step = 1
        while low > 0 and not is_before(history, low - 1, accepted, k):
            low = max(0, low - step)
            step *= 2
        step = 1
        high = low
        while high < count and is_before(history, high, accepted, k):
            low = high + 1
            high = min(count, high + step)
            step *= 2
        while low < high:  # how many stand before it
            middle = (low + high) // 2
            if is_before(history, middle, accepted, k):
                low = middle + 1
            else:
                high = middle
        known[k] = history[low - 1, 5] if low > 0 else -1
        if labels[k] >= 0 and (count == 0 or history[count - 1, 5] != labels[k]):
            for column in range(5):
                history[count, column] = resolved[k, column]
            history[count, 5] = labels[k]
            count += 1
    return count
