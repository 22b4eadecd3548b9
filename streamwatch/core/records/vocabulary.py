"""`Vocabulary`: numbers of names and of values of segments, for columns; one for all topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

MAX_NAMES: Final = 65_536
"""Most names of one kind that have a number; a record with another name is kept as an event object."""
MAX_SEGMENTS: Final = 65_535
"""Most combinations of segment values that have a number, which has 16 bits in a row."""

NO_NAME: Final = -1
"""Number of an absent name, such as the model of a label without one, and of a name beyond the limit."""

_NO_CLASSES: Final = np.empty(0, np.int32)


class Names:
    """Names of one kind, numbered from 0 in the order they were met; released numbers are used again.

    Parameters
    ----------
    most
        Most names that have a number.
    """

    def __init__(self, most: int = MAX_NAMES) -> None:
        self._most = most
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._free: list[int] = []
        self._fixed: set[int] = set()
        self._refused = self._needed = 0

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def names(self) -> Sequence[str]:
        """Names by number: a live view, to which new names are appended; "" for a released number."""
        return self._names

    @property
    def is_full(self) -> bool:
        """Return whether numbers should be released: more names were refused than the last release left."""
        return self._refused > self._needed

    def number(self, name: str) -> int:
        """Return the number of a name, a new one for a new name; `NO_NAME` if the limit is reached."""
        number = self._numbers.get(name, NO_NAME)
        if number >= 0:
            return number
        if self._free:
            number = self._free.pop()
            self._names[number] = name
        elif len(self._names) < self._most:
            number = len(self._names)
            self._names.append(name)
        else:
            self._refused += 1
            return NO_NAME
        self._numbers[name] = number
        return number

    def fixed_number(self, name: str) -> int:
        """Return the number of a name, as `number` does, and never release it."""
        number = self.number(name)
        if number >= 0:
            self._fixed.add(number)
        return number

    def release_all_but(self, needed: NDArray[np.int64]) -> None:
        """Release the numbers that are not in this column and not fixed; negative ones are ignored."""
        kept = np.zeros(len(self._names), np.bool_)
        kept[needed[needed >= 0]] = True
        kept[list(self._fixed)] = True
        self._free = np.flatnonzero(~kept).tolist()
        for number in self._free:
            self._numbers.pop(self._names[number], None)
            self._names[number] = ""
        self._refused, self._needed = 0, len(self._numbers)


class Vocabulary:
    """Numbers of the models, classes and segment values met by this process.

    Attributes
    ----------
    models, classes
        Names, each kind numbered on its own.
    segments
        Combinations of segment values, as `segments_text` writes them.
    version
        How many times numbers were released. Numbers that were looked up are valid until it changes.
    """

    __slots__ = ("classes", "models", "segments", "version")

    def __init__(self, most: int = MAX_NAMES) -> None:
        self.models = Names(most)
        self.classes = Names(most)
        self.segments = Names(min(most, MAX_SEGMENTS))
        self.version = 0

    def full(self) -> list[str]:
        """List the kinds of names of which more were refused a number than the last release left."""
        kinds = {"models": self.models, "classes": self.classes, "segments": self.segments}
        return [kind for kind, names in kinds.items() if names.is_full]

    def release_all_but(
        self, rows: NDArray[np.void], classes_of_scores: NDArray[np.int32] = _NO_CLASSES
    ) -> None:
        """Release the numbers that are neither in these rows (`ROW`) nor among these classes of scores."""
        self.models.release_all_but(rows["model"].astype(np.int64))
        self.classes.release_all_but(np.concatenate([rows["class"], classes_of_scores]).astype(np.int64))
        self.segments.release_all_but(rows["segments"].astype(np.int64) - 1)
        self.version += 1
