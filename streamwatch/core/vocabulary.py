"""Names and values of segments as numbers: one vocabulary for all topics, so that columns can carry them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_NAMES: Final = 65_536
"""Names of one kind that get a number; records with others are handed on as objects."""
MAX_SEGMENTS: Final = 65_535
"""Different values of segments that get a number; 16 bits of a row are theirs."""

NO_NAME: Final = -1
"""Stands for a model that a record does not name."""


class Names:
    """Names of one kind, numbered from 0 in the order they were met; a number is never used again.

    Parameters
    ----------
    most
        Names that get a number.
    """

    def __init__(self, most: int = MAX_NAMES) -> None:
        self._most = most
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def __len__(self) -> int:
        return len(self._names)

    @property
    def names(self) -> Sequence[str]:
        """Names by number; grows."""
        return self._names

    def number(self, name: str) -> int:
        """Give the number of a name, a new one if it has none; `NO_NAME` once all are given out."""
        number = self._numbers.get(name, NO_NAME)
        if number < 0 and len(self._names) < self._most:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number


class Vocabulary:
    """Names of the models and of the classes met by this process.

    Attributes
    ----------
    models, classes, segments
        Each numbered on its own; of segments it is their values, as `segments_text` writes them.
    """

    __slots__ = ("classes", "models", "segments")

    def __init__(self, most: int = MAX_NAMES) -> None:
        self.models = Names(most)
        self.classes = Names(most)
        self.segments = Names(min(most, MAX_SEGMENTS))
