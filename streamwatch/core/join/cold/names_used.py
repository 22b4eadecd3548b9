"""Names and segments that the entries of a run use, so that their numbers are not released."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import detached, hot
from streamwatch.core.join.cold.block import WORDS, Words
from streamwatch.core.join.counters import PENDING
from streamwatch.core.join.layout import OF_CLASSES
from streamwatch.core.records.outcomes import SEGMENTS_FROM

_NAMES, _CLASSES = WORDS - 3, WORDS - 2
"""Words of `PACKED_ENTRY` with model and predicted class, and with true class and label at prediction."""
_ROOM = 256
"""Initial number of names of a kind for which there is room; with more, entries are read again."""


@hot
def lower_half(word):
    """Number in the lower half of a word."""
    return np.int32(word)


@hot
def upper_half(word):
    """Number in the upper half of a word."""
    return np.int32(word >> np.uint64(32))


@hot
def mark_number(marks, number, most):
    """Mark a number if it is in range and stands for a name; return the larger of it and `most`."""
    if 0 <= number < marks.shape[0]:
        marks[number] = True
    return max(most, number)


@detached
def mark_names(words, models, classes, segments, of_classes):
    """Mark the names that entries, uint64 (n, words), use; return the largest number of each kind.

    `of_classes`, int64: indices of the words that hold 1 + the number of a class, or 0.

    Numbers beyond the end of the marks are not marked.
    """
    model = np.int32(-1)
    most = np.int32(-1)
    values = np.int32(-1)
    for i in range(words.shape[0]):
        model = mark_number(models, lower_half(words[i, _NAMES]), model)
        most = mark_number(classes, upper_half(words[i, _NAMES]), most)
        most = mark_number(classes, upper_half(words[i, _CLASSES]), most)
        for k in range(of_classes.shape[0]):
            most = mark_number(classes, np.int32(np.int64(words[i, of_classes[k]]) - 1), most)
        # A pending prediction has the number of its scores or segments instead of the true class.
        carried = lower_half(words[i, _CLASSES])
        if lower_half(words[i, WORDS - 1]) != PENDING:
            most = mark_number(classes, carried, most)
        elif carried >= SEGMENTS_FROM:
            values = mark_number(segments, np.int32(carried - SEGMENTS_FROM), values)
    return model, most, values


class NamesUsed:
    """Collects the numbers of used names as entries are added.

    Parameters
    ----------
    side
        Names of the entries' side columns.
    """

    def __init__(self, side: tuple[str, ...]) -> None:
        columns = [WORDS + column for column, name in enumerate(side) if name in OF_CLASSES]
        self._of_classes = np.array(columns, np.int64)
        self._marks: list[NDArray[np.bool_]] = [np.zeros(_ROOM, np.bool_) for _ in range(3)]
        """Whether a number is used, by number, of models, classes and segments."""

    def add(self, words: Words) -> None:
        """Collect the numbers that these entries, uint64 (n, words), use."""
        models, classes, segments = self._marks
        largest = [*map(int, mark_names(words, models, classes, segments, self._of_classes))]
        if any(most >= len(marks) for most, marks in zip(largest, self._marks, strict=True)):
            self._marks = [_with_room(marks, most) for most, marks in zip(largest, self._marks, strict=True)]
            models, classes, segments = self._marks
            mark_names(words, models, classes, segments, self._of_classes)

    def used(self) -> tuple[bytes, bytes, bytes]:
        """Numbers of the models, of the classes and of the segments, each int32, ascending."""
        models, classes, segments = (np.flatnonzero(marks).astype(np.int32) for marks in self._marks)
        return models.tobytes(), classes.tobytes(), segments.tobytes()


def _with_room(marks: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Enlarge marks so that `most` fits, with half as much again."""
    if most < len(marks):
        return marks
    return np.concatenate([marks, np.zeros(most + 1 + most // 2 - len(marks), np.bool_)])
