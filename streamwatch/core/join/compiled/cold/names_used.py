"""Which names and segments the entries of a run refer to, so that their numbers are not given to others."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.cold.block import WORDS, Words
from streamwatch.core.join.entry import PENDING
from streamwatch.core.outcomes import SEGMENTS_FROM

_HALVES: Final = 2 * WORDS


_MODEL, _PREDICTED, _TRUE, _KNOWN, _STATE = range(10, 15)
"""Places of `PACKED_ENTRY`'s fields of 4 bytes among the halves of an entry's words."""


class NamesUsed:
    """Collects the numbers of names as entries come."""

    def __init__(self) -> None:
        self._models = np.zeros(0, np.bool_)
        self._classes = np.zeros(0, np.bool_)
        self._segments = np.zeros(0, np.bool_)

    def add(self, words: Words) -> None:
        """Note what these entries, uint64 (n, 8), refer to."""
        halves = words.view(np.int32).reshape(-1, _HALVES)
        self._models = _with(self._models, halves[:, _MODEL])
        waits = halves[:, _STATE] == PENDING  # the number of scores or segments stands for a class there
        self._segments = _with(self._segments, halves[waits, _TRUE] - np.int32(SEGMENTS_FROM))
        for column in (halves[:, _PREDICTED], halves[~waits, _TRUE], halves[:, _KNOWN]):
            self._classes = _with(self._classes, column)

    def models(self) -> bytes:
        """Numbers of the models, int32, ascending."""
        return np.flatnonzero(self._models).astype(np.int32).tobytes()

    def classes(self) -> bytes:
        """Numbers of the classes, likewise."""
        return np.flatnonzero(self._classes).astype(np.int32).tobytes()

    def segments(self) -> bytes:
        """Numbers of the segments, likewise."""
        return np.flatnonzero(self._segments).astype(np.int32).tobytes()


def _with(marks: NDArray[np.bool_], numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
    most = int(numbers.max(initial=-1))
    if most < 0:
        return marks
    if most >= len(marks):
        marks = np.concatenate([marks, np.zeros(most + 1 + most // 2 - len(marks), np.bool_)])
    marks[numbers[numbers >= 0]] = True
    return marks
