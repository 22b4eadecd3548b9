"""Numbers of names of models, classes, segments and topics.

Those of models, classes and segments are valid as long as an entry or a model uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.held_scores import HeldScores
from streamwatch.core.records.batch import MOST_TOPICS
from streamwatch.core.records.events import others_of, segments_text

MIN_NAMES = 65_536
"""Number of names up to which unused ones are not released."""
MOST_SEGMENTS: Final = 262_144
"""Most distinct combinations of segment values of waiting predictions; others become `events.OTHER`."""


class NumberedNames(dict[str, int]):
    """Number of each name, assigned when first looked up, and reused after its release.

    So a stream of ever new names takes no more memory than the entries that use them.
    """

    __slots__ = ("_changed", "_crowded", "_free", "assigned", "names", "version")

    def __init__(self) -> None:
        super().__init__()
        self._free: list[int] = []
        self._crowded = MIN_NAMES
        self._changed: set[int] = set()
        self.names: list[str] = []
        """Names by number; replaced by a new list when numbers change their names."""
        self.version = 0
        """Number of times that numbers were released or restored."""
        self.assigned: list[int] = []
        """Numbers assigned since `version` changed, in order; released ones are reused in any order."""

    def __missing__(self, name: str) -> int:
        if self._free:
            number = self._free.pop()
            self.names[number] = name
        else:
            number = len(self.names)
            self.names.append(name)
        self[name] = number
        self._changed.add(number)
        self.assigned.append(number)
        return number

    def take_changed(self) -> dict[int, str | None]:
        """Numbers assigned since the last call with their names, and None for released numbers."""
        changed = {number: self.names[number] for number in sorted(self._changed)}
        self._changed.clear()
        return {number: name if self.get(name) == number else None for number, name in changed.items()}

    def mark_all_changed(self) -> None:
        """Make the next `take_changed` return every name."""
        self._changed = set(self.values())

    def restore(self, names: Mapping[int, str]) -> None:
        """Assign these numbers to these names, and no others.

        Raises
        ------
        ValueError
            If a name has several numbers.
        """
        self.clear()
        self.names = [names.get(number, "") for number in range(max(names, default=-1) + 1)]
        self.update((name, number) for number, name in names.items())
        if len(self) < len(names):
            raise ValueError(f"expected each name once, got {len(names)} numbers of {len(self)} names")
        self._free = [number for number in range(len(self.names)) if number not in names]
        self._changed.clear()
        self.version += 1
        self.assigned.clear()

    def assigned_since(self, version: int, count: int) -> list[int]:
        """Return the numbers assigned after the first `count` of a version; all if it has changed since."""
        return self.assigned[count:] if version == self.version else list(self.values())

    @property
    def crowded(self) -> bool:
        """Return whether names should be released: there are over twice as many as needed last time."""
        return len(self) > self._crowded

    def release_all_but(self, needed: Iterable[NDArray[np.int32]]) -> NDArray[np.intp]:
        """Release the numbers that are in none of these columns, and return them.

        Negative numbers are ignored.
        """
        kept = np.zeros(len(self.names), np.bool_)
        for column in needed:
            kept[column[column >= 0]] = True
        kept[self._free] = True
        released = np.flatnonzero(~kept)
        self.names = list(self.names)
        for number in released.tolist():
            del self[self.names[number]]
        self._changed.update(released.tolist())
        self._free += released.tolist()
        self._crowded = max(MIN_NAMES, 2 * len(self))
        self.version += 1
        self.assigned.clear()
        return released


class NumberedTopics(NumberedNames):
    """Number of each topic, at most 255 ever; 0 for no topic, and for topics beyond the limit."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self.restore({})

    def __missing__(self, name: str) -> int:
        return super().__missing__(name) if len(self.names) < MOST_TOPICS else 0

    def mark_all_changed(self) -> None:
        """Make the next `take_changed` return every topic, without number 0."""
        super().mark_all_changed()
        self._changed.discard(0)

    def restore(self, names: Mapping[int, str]) -> None:
        """Assign these numbers to these topics, and no others.

        Raises
        ------
        ValueError
            If a topic has several numbers, there are too many, or 0 is one of them.
        """
        if names and not (min(names) > 0 and max(names) < MOST_TOPICS and "" not in names.values()):
            raise ValueError(f"expected numbers of topics from 1 to {MOST_TOPICS - 1}, got {sorted(names)}")
        super().restore({0: "", **names})


class NumberedSegments(NumberedNames):
    """Number of each combination of a prediction's segment values, as `segments_text` writes them.

    Parameters
    ----------
    most
        Largest number of distinct combinations; None for `MOST_SEGMENTS`.
    """

    __slots__ = ("_most", "_refused", "over_limit")

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = MOST_SEGMENTS if most is None else most
        self._refused = 0
        self.over_limit = 0
        """Number of times that values were replaced by `events.OTHER` as no number was left."""

    def number(self, segments: Mapping[str, str]) -> int:
        """Number of these values; at the limit, the number of `OTHER` for each of these segments."""
        text = segments_text(segments)
        if text not in self and len(self) >= self._most:
            self.over_limit += 1
            self._refused += 1
            text = segments_text(others_of(segments))
        return self[text]

    @property
    def crowded(self) -> bool:
        """Return whether numbers should be released, as for names; refused values count as needed."""
        return len(self) + self._refused > self._crowded

    def release_all_but(self, needed: Iterable[NDArray[np.int32]]) -> NDArray[np.intp]:
        """Release the numbers that are in none of these columns, as for names."""
        self._refused = 0
        return super().release_all_but(needed)


class JoinNames(NamedTuple):
    """All names and scores that a join numbers."""

    models: NumberedNames
    classes: NumberedNames
    segments: NumberedSegments
    topics: NumberedTopics
    scores: HeldScores


def new_names() -> JoinNames:
    """Build the names of an empty join."""
    return JoinNames(NumberedNames(), NumberedNames(), NumberedSegments(), NumberedTopics(), HeldScores())
