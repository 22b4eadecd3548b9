"""Names of models and classes as numbers, as long as an entry or a model refers to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records import MOST_TOPICS
from streamwatch.core.segments import others_of, segments_text

MIN_NAMES = 65_536
"""As long as there are no more, nobody looks which are needed."""
MOST_SEGMENTS: Final = 262_144
"""Different values of segments that predictions wait with; beyond, they are `segments.OTHER`."""


class NumberedNames(dict[str, int]):
    """Number of each name, given when it is first asked for, and given to another once it was released.

    So a stream of ever new names costs no more memory than the entries that carry them.
    """

    __slots__ = ("_changed", "_crowded", "_free", "names", "version")

    def __init__(self) -> None:
        super().__init__()
        self._free: list[int] = []
        self._crowded = MIN_NAMES
        self._changed: set[int] = set()
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
        self._changed.add(number)
        return number

    def take_changed(self) -> dict[int, str | None]:
        """Hand over the numbers given since the last call, with their names, and None for those released."""
        changed = {number: self.names[number] for number in sorted(self._changed)}
        self._changed.clear()
        return {number: name if self.get(name) == number else None for number, name in changed.items()}

    def tell_all(self) -> None:
        """Have `take_changed` hand over every name next."""
        self._changed = set(self.values())

    def restore(self, names: Mapping[int, str]) -> None:
        """Give these names these numbers, and no others.

        Raises
        ------
        ValueError
            If one name has several numbers.
        """
        self.clear()
        self.names = [names.get(number, "") for number in range(max(names, default=-1) + 1)]
        self.update((name, number) for number, name in names.items())
        if len(self) < len(names):
            raise ValueError(f"expected each name once, got {len(names)} numbers of {len(self)} names")
        self._free = [number for number in range(len(self.names)) if number not in names]
        self._changed.clear()
        self.version += 1

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
        self._changed.update(released.tolist())
        self._free += released.tolist()
        self._crowded = max(MIN_NAMES, 2 * len(self))
        self.version += 1
        return released


class NumberedTopics(NumberedNames):
    """Number of each topic, at most 255 since the state began; 0 for no topic, and for those beyond."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self.restore({})

    def __missing__(self, name: str) -> int:
        return super().__missing__(name) if len(self.names) < MOST_TOPICS else 0

    def tell_all(self) -> None:
        """Have `take_changed` hand over every topic next; 0 stands for none, and is none."""
        super().tell_all()
        self._changed.discard(0)

    def restore(self, names: Mapping[int, str]) -> None:
        """Give these topics these numbers, and no others.

        Raises
        ------
        ValueError
            If one has several numbers, there are too many, or 0 is one of them.
        """
        if names and not (min(names) > 0 and max(names) < MOST_TOPICS and "" not in names.values()):
            raise ValueError(f"expected numbers of topics from 1 to {MOST_TOPICS - 1}, got {sorted(names)}")
        super().restore({0: "", **names})


class NumberedSegments(NumberedNames):
    """Number of the values of all segments of a prediction, as `segments_text` writes them.

    Parameters
    ----------
    most
        Different ones that get a number; None for `MOST_SEGMENTS`.
    """

    __slots__ = ("_most", "_refused", "over_limit")

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = MOST_SEGMENTS if most is None else most
        self._refused = 0
        self.over_limit = 0
        """Times that values were taken for `segments.OTHER` as there was no number left."""

    def number(self, segments: Mapping[str, str]) -> int:
        """Give the number of these values, or that of all others of these segments."""
        text = segments_text(segments)
        if text not in self and len(self) >= self._most:
            self.over_limit += 1
            self._refused += 1
            text = segments_text(others_of(segments))
        return self[text]

    @property
    def crowded(self) -> bool:
        """Tell whether it is time to release numbers: as of names, those refused being wanted, too."""
        return len(self) + self._refused > self._crowded

    def release_all_but(self, needed: Iterable[NDArray[np.int32]]) -> NDArray[np.intp]:
        """Release the numbers that are in none of these columns, as of names."""
        self._refused = 0
        return super().release_all_but(needed)


class HeldScores(dict[int, dict[str, float]]):
    """Scores of pending predictions by number."""

    __slots__ = ("_free", "segments")

    def __init__(self) -> None:
        super().__init__()
        self._free: list[int] = []
        self.segments: dict[int, int] = {}
        """Number of the segments of the predictions that have some, by that of their scores."""

    def add(self, scores: dict[str, float], segments: int = -1) -> int:
        """Keep scores, and the number of the segments beside them; their number."""
        number = self._free.pop() if self._free else len(self)
        self[number] = scores
        if segments >= 0:
            self.segments[number] = segments
        return number

    def take(self, numbers: list[int]) -> dict[int, dict[str, float]]:
        """Hand over the scores with these numbers, which others may then have."""
        taken = {number: self.pop(number) for number in numbers}
        if self.segments:
            for number in numbers:
                self.segments.pop(number, None)
        self._free += numbers
        return taken


class JoinNames(NamedTuple):
    """Everything that a join numbers."""

    models: NumberedNames
    classes: NumberedNames
    segments: NumberedSegments
    topics: NumberedTopics
    scores: HeldScores


def new_names() -> JoinNames:
    """Names of a join that has seen nothing."""
    return JoinNames(NumberedNames(), NumberedNames(), NumberedSegments(), NumberedTopics(), HeldScores())
