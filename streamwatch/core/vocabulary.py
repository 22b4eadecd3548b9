"""Names of models and classes as numbers: one vocabulary for all topics, so that columns can carry them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_NAMES: Final = 65_536
"""Names of one kind that get a number; records with others are handed on as objects."""

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
    models, classes
        Each numbered on its own.
    """

    __slots__ = ("classes", "models")

    def __init__(self, most: int = MAX_NAMES) -> None:
        self.models = Names(most)
        self.classes = Names(most)
