"""Cache of the places of (model, class) pairs, by the numbers of their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_UNKNOWN: Final = -2
MOST_PAIRS: Final = 1 << 22
"""Largest number of cached pairs; with more, every prediction is looked up by name."""


class NumberTable:
    """Caches the results of a function of two names, by the names' numbers.

    Parameters
    ----------
    place
        Function from names of model and class to their place, −1 or more.
    """

    def __init__(self, place: Callable[[str, str], int]) -> None:
        self._place = place
        self._models: Sequence[str] = ()
        self._classes: Sequence[str] = ()
        self._table: NDArray[np.int32] = np.zeros((0, 0), np.int32)

    def clear(self) -> None:
        """Clear the cache."""
        self._table = np.zeros((0, 0), np.int32)

    def places(
        self,
        models: NDArray[np.int32],
        classes: NDArray[np.int32],
        model_names: Sequence[str],
        class_names: Sequence[str],
    ) -> NDArray[np.int32]:
        """Places of pairs, looked up in this order; all arrays (n,)."""
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
