"""Fields of outcomes, copied to columns in one pass, and columns of numbers under other numbers.

To copy a field alone would read as much memory as to copy all of them.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import CARRIED
from streamwatch.core.jit import entry
from streamwatch.core.outcomes import OUTCOME
from streamwatch.core.records import Records, words_of_array

NUMBERS: Final = (
    "model",
    "true_class",
    "predicted_class",
    "label_at_prediction",
    "assumed",
    "last_class",
)
TIMES: Final = ("event_ms", "delay_ms", "resolved_ms", "waited_ms", "made")
_CARRIED: Final = len(CARRIED)
_FIRST_CARRIED: Final = len(NUMBERS)


@entry
def split_outcomes(outcomes, numbers, times, start):
    """Copy fields of outcomes to columns from `start` on.

    Parameters
    ----------
    outcomes
        Records `OUTCOME`, (n,).
    numbers, times
        Output: int32 columns of `NUMBERS` and the carried numbers, and int64 columns of `TIMES`.
    start
        Place of the first outcome in the columns.
    """
    for i in range(outcomes.shape[0]):
        o, at = outcomes[i], start + i
        numbers[0, at] = o.model
        numbers[1, at] = o.true_class
        numbers[2, at] = o.predicted_class
        numbers[3, at] = o.label_at_prediction
        numbers[4, at] = o.assumed
        numbers[5, at] = o.last_class
        for k in range(_CARRIED):
            numbers[_FIRST_CARRIED + k, at] = o.carried[k]
        times[0, at] = o.event_ms
        times[1, at] = o.delay_ms
        times[2, at] = o.resolved_ms
        times[3, at] = o.waited_ms
        times[4, at] = o.made


def columns_of(parts: Sequence[Records]) -> dict[str, NDArray[Any]]:
    """Copy the fields of records `OUTCOME`, one part after another, to columns by name.

    "carried" has the shape (n, len(CARRIED)), the others (n,).
    """
    count = sum(map(len, parts))
    numbers = np.empty((len(NUMBERS) + _CARRIED, count), np.int32)
    times = np.empty((len(TIMES), count), np.int64)
    start = 0
    for part in parts:
        split_outcomes(words_of_array(part).reshape(-1).view(OUTCOME), numbers, times, start)
        start += len(part)
    found = {**dict(zip(NUMBERS, numbers, strict=False)), **dict(zip(TIMES, times, strict=True))}
    found["carried"] = numbers[len(NUMBERS) :].T
    return found


@entry
def mark_used(column, used):
    """Mark in a bool array the numbers that occur in an int32 column; -1 stands for none."""
    for i in range(column.shape[0]):
        if column[i] >= 0:
            used[column[i]] = True


@entry
def renumber(column, here, found):
    """Write what numbers in an int32 column are called in `here` to `found`; -1 stays what it is."""
    for i in range(column.shape[0]):
        found[i] = here[column[i]] if column[i] >= 0 else -1


def used_numbers(column: NDArray[np.int32], numbers: int) -> NDArray[np.intp]:
    """Find the numbers that occur in a column, all below `numbers`, ascending; -1 stands for none."""
    used = np.zeros(numbers, np.bool_)
    mark_used(column, used)
    return np.flatnonzero(used)


def renumbered(column: NDArray[np.int32], here: NDArray[np.int32]) -> NDArray[np.int32]:
    """Give the numbers of a column others, those that `here` has for them; -1 stays what it is."""
    found = np.empty(len(column), np.int32)
    renumber(column, here, found)
    return found


def warm_up_columns() -> None:
    """Split and renumber outcomes, so that every compiled function is called."""
    column = columns_of([np.zeros(1, OUTCOME)])["model"]
    renumbered(column, used_numbers(column, 1).astype(np.int32))
