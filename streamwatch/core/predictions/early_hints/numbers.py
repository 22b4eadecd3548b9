"""Places of pairs of numbers, for a model and a class: each pair is looked at by name once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_UNKNOWN: Final = -2
MOST_PAIRS: Final = 1 << 22
"""Pairs that are remembered; with more names every prediction is looked at by name."""


class NumberTable:
    """Remembers what a function says of two names, by their numbers.

    Parameters
    ----------
    place
        Gives the place of a model's class, −1 or more.
    """

    def __init__(self, place: Callable[[str, str], int]) -> None:
        self._place = place
        self._models: Sequence[str] = ()
        self._classes: Sequence[str] = ()
        self._table: NDArray[np.int32] = np.zeros((0, 0), np.int32)

    def clear(self) -> None:
        """Forget all of it."""
        self._table = np.zeros((0, 0), np.int32)

    def places(
        self,
        models: NDArray[np.int32],
        classes: NDArray[np.int32],
        model_names: Sequence[str],
        class_names: Sequence[str],
    ) -> NDArray[np.int32]:
        """Places of pairs, in order, asked for in that order; all (n,)."""
        if self._models is not model_names or self._classes is not class_names:
            self._models, self._classes = model_names, class_names
            self.clear()
        shape = len(model_names), len(class_names)
        if shape[0] * shape[1] > MOST_PAIRS:
            pairs = zip(models.tolist(), classes.tolist(), strict=True)
            return np.array(
                [self._place(model_names[int(m)], class_names[int(c)]) for m, c in pairs], np.int32
            )
        if self._table.shape[0] < shape[0] or self._table.shape[1] < shape[1]:
            room = [2 * size for size in shape]
            table = np.full(room, _UNKNOWN, np.int32)
            table[: self._table.shape[0], : self._table.shape[1]] = self._table
            self._table = table
        places = self._table[models, classes]
        for i in np.flatnonzero(places == _UNKNOWN).tolist():
            m, c = int(models[i]), int(classes[i])
            if self._table[m, c] == _UNKNOWN:
                self._table[m, c] = self._place(model_names[m], class_names[c])
            places[i] = self._table[m, c]
        return places
