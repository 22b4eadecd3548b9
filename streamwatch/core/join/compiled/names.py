"""Names of models and classes as numbers, as long as an entry or a model refers to them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

MIN_NAMES = 65_536
"""As long as there are no more, nobody looks which are needed."""


class NumberedNames(dict[str, int]):
    """Number of each name, given when it is first asked for, and given to another once it was released.

    So a stream of ever new names costs no more memory than the entries that carry them.
    """

    __slots__ = ("_crowded", "_free", "names", "version")

    def __init__(self) -> None:
        super().__init__()
        self._free: list[int] = []
        self._crowded = MIN_NAMES
        self.names: list[str] = []
        """Names by number. Another list takes its place when numbers change their names."""
        self.version = 0
        """Times that numbers were released."""

    def __missing__(self, name: str) -> int:
        if self._free:
            number = self._free.pop()
            self.names[number] = name
        else:
            number = len(self.names)
            self.names.append(name)
        self[name] = number
        return number

    @property
    def crowded(self) -> bool:
        """Tell whether it is time to release names: there are twice as many as were needed last."""
        return len(self) > self._crowded

    def release_all_but(self, needed: Iterable[NDArray[np.int32]]) -> NDArray[np.intp]:
        """Release the numbers that are in none of these columns (negative ones stand for nothing)."""
        kept = np.zeros(len(self.names), np.bool_)
        for column in needed:
            kept[column[column >= 0]] = True
        kept[self._free] = True
        released = np.flatnonzero(~kept)
        self.names = list(self.names)
        for number in released.tolist():
            del self[self.names[number]]
        self._free += released.tolist()
        self._crowded = max(MIN_NAMES, 2 * len(self))
        self.version += 1
        return released


class HeldScores(dict[int, dict[str, float]]):
    """Scores of pending predictions by number."""

    __slots__ = ("_free",)

    def __init__(self) -> None:
        super().__init__()
        self._free: list[int] = []

    def add(self, scores: dict[str, float]) -> int:
        """Keep scores; their number."""
        number = self._free.pop() if self._free else len(self)
        self[number] = scores
        return number

    def take(self, numbers: list[int]) -> dict[int, dict[str, float]]:
        """Hand over the scores with these numbers, which others may then have."""
        taken = {number: self.pop(number) for number in numbers}
        self._free += numbers
        return taken
