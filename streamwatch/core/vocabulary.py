"""Names and values of segments as numbers: one vocabulary for all topics, so that columns can carry them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_NAMES: Final = 65_536
"""Most names of one kind that get a number; records with other names are passed on as event objects."""
MAX_SEGMENTS: Final = 65_535
"""Most combinations of segment values that get a number, which has 16 bits in a row."""

NO_NAME: Final = -1
"""Number of a missing name, as of a label without a model, and of one beyond the limit."""


class Names:
    """Names of one kind, numbered from 0 in the order they were met; a number is never used again.

    Parameters
    ----------
    most
        Most names that get a number.
    """

    def __init__(self, most: int = MAX_NAMES) -> None:
        self._most = most
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def __len__(self) -> int:
        return len(self._names)

    @property
    def names(self) -> Sequence[str]:
        """Names by number: a live view, to which new names are appended."""
        return self._names

    def number(self, name: str) -> int:
        """Return the number of a name, a new one for a new name; `NO_NAME` if the limit is reached."""
        number = self._numbers.get(name, NO_NAME)
        if number < 0 and len(self._names) < self._most:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number


class Vocabulary:
    """Numbers of the models, classes and segment values met by this process.

    Attributes
    ----------
    models, classes
        Names, each kind numbered on its own.
    segments
        Combinations of segment values, as `segments_text` writes them.
    """

    __slots__ = ("classes", "models", "segments")

    def __init__(self, most: int = MAX_NAMES) -> None:
        self.models = Names(most)
        self.classes = Names(most)
        self.segments = Names(min(most, MAX_SEGMENTS))
