"""Outcomes in columns as commits write them, and renumbering of columns.

All fields are copied in one pass, since copying one field of records reads as much memory as copying all.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.join.durable.columns import Column, PackedError, pack_table
from streamwatch.core.join.durable.packed import carried_in, steps_within
from streamwatch.core.records.batch import Records, words_of_array
from streamwatch.core.records.events import CARRIED
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM

_CARRIED: Final = len(CARRIED)
LOW, HIGH, DELAY, MODEL, TRUE, PREDICTED, LABEL, ASSUMED, MADE, RESOLVED = range(10)
"""Numbers of the columns; those of `CARRIED` follow after `SEGMENTS`."""
_AFTER, _BEHIND, LAST, SEGMENTS = range(10, 14)
"""Further columns: resolution less the label's time; the prediction's own time less its record's, which
gives `waited_ms`; the class predicted last; the number of the segments."""
COLUMNS: Final = SEGMENTS + 1 + _CARRIED
CLASSES: Final = (TRUE, PREDICTED, LABEL)
_MADE: Final = 2**32
"""Number at which `made` begins again at 0."""
_MOST_MS: Final = 2**60
"""Bound of times and of differences between them, so that sums of a few do not overflow."""


@entry
def split_outcomes(outcomes, columns, start):
    """Copy fields of outcomes to columns from `start` on.

    Parameters
    ----------
    outcomes
        Records `OUTCOME`, (n,).
    columns
        Output: int64 (at least `COLUMNS`, rows). Segments are -1.
    start
        Row of the first outcome in the columns.
    """
    for i in range(outcomes.shape[0]):
        o, at = outcomes[i], start + i
        after = o.resolved_ms - o.event_ms
        columns[LOW, at] = np.int64(o.low)
        columns[HIGH, at] = np.int64(o.high)
        columns[DELAY, at] = o.delay_ms
        columns[MODEL, at] = o.model
        columns[TRUE, at] = o.true_class
        columns[PREDICTED, at] = o.predicted_class
        columns[LABEL, at] = o.label_at_prediction
        columns[ASSUMED, at] = o.assumed
        columns[MADE, at] = o.made
        columns[RESOLVED, at] = o.resolved_ms
        columns[_AFTER, at] = after
        columns[_BEHIND, at] = o.waited_ms - o.delay_ms - after
        columns[LAST, at] = o.last_class
        columns[SEGMENTS, at] = -1
        for k in range(_CARRIED):
            columns[SEGMENTS + 1 + k, at] = o.carried[k]


def columns_of(parts: Sequence[Records], more: int = 0) -> NDArray[np.int64]:
    """Copy the fields of records `OUTCOME`, one part after another, to columns: shape (COLUMNS + more, n).

    Segments are -1, and further columns undefined.
    """
    columns = np.empty((COLUMNS + more, sum(map(len, parts))), np.int64)
    start = 0
    for part in parts:
        split_outcomes(words_of_array(part).reshape(-1).view(OUTCOME), columns, start)
        start += len(part)
    return columns


def outcomes_of(columns: Sequence[Column], models: int, classes: int, segments: int) -> Records:
    """Join columns to records `OUTCOME`, with numbers of segments where scores would be.

    Parameters
    ----------
    columns
        Those of `columns_of`.
    models, classes, segments
        Numbers of names of each kind.

    Raises
    ------
    PackedError
        If they are of the wrong kind, a number has no name, or a time is beyond 2^60 ms.
    """
    if any((column.dtype == np.uint64) != (number < DELAY) for number, column in enumerate(columns)):
        raise PackedError("expected digests of outcomes in the first two columns and small numbers in others")
    for number, least, most, name in (
        (MODEL, 0, models, "model"),
        (TRUE, -1, classes, "true_class"),
        (PREDICTED, -1, classes, "predicted_class"),
        (LABEL, -1, classes, "label_at_prediction"),
        (LAST, 0, classes + 1, "last_class"),
        (SEGMENTS, -1, segments, "segments"),
        (ASSUMED, 0, 2, "assumed"),
        (MADE, 0, _MADE, "number of predictions"),
        (DELAY, -_MOST_MS, _MOST_MS, "delay_ms"),
        (RESOLVED, -_MOST_MS, _MOST_MS, "resolved_ms"),
        (_AFTER, -_MOST_MS, _MOST_MS, "time from the label to the outcome"),
        (_BEHIND, -_MOST_MS, _MOST_MS, "time from the prediction to its record"),
    ):
        column = columns[number]
        if not are_within(column, least, most):
            raise PackedError(
                f"expected numbers from {least} to {most - 1} of outcomes as {name}, "
                f"got {column.min()} to {column.max()}"
            )
    records = np.zeros(len(columns[0]), OUTCOME)
    for number, name in (
        (LOW, "low"),
        (HIGH, "high"),
        (DELAY, "delay_ms"),
        (MODEL, "model"),
        (TRUE, "true_class"),
        (PREDICTED, "predicted_class"),
        (LABEL, "label_at_prediction"),
        (ASSUMED, "assumed"),
        (MADE, "made"),
        (RESOLVED, "resolved_ms"),
        (LAST, "last_class"),
    ):
        records[name] = columns[number]
    after, behind, of_segments = (columns[number].astype(np.int64) for number in (_AFTER, _BEHIND, SEGMENTS))
    records["event_ms"] = records["resolved_ms"] - after
    records["waited_ms"] = records["delay_ms"] + after + behind
    records["scores"] = np.where(of_segments < 0, -1, of_segments + SEGMENTS_FROM)
    records["carried"] = carried_in(columns[SEGMENTS + 1 : COLUMNS])
    return records


def are_within(column: NDArray[Any], least: int, most: int) -> bool:
    """Return whether all numbers are at least `least` and below `most`."""
    return not len(column) or (least <= int(column.min()) and int(column.max()) < most)


@entry
def mark_used(column, used):
    """Mark in a bool array the numbers that occur in an int64 column; -1 stands for none."""
    for i in range(column.shape[0]):
        if column[i] >= 0:
            used[column[i]] = True


@entry
def renumber(column, here, found):
    """Write `here[number]` to `found` for each number of an int64 column; -1 stays -1."""
    for i in range(column.shape[0]):
        found[i] = here[column[i]] if column[i] >= 0 else -1


def warm_up_columns() -> None:
    """Split, pack and renumber outcomes, so that every compiled function is called."""
    columns = columns_of([np.zeros(1, OUTCOME)])
    steps_within(columns[MODEL], columns[MADE])
    pack_table(columns, (LOW, HIGH))
    mark_used(columns[MODEL], np.zeros(1, np.bool_))
    renumber(columns[MODEL], np.zeros(1, np.int64), columns[MODEL])
