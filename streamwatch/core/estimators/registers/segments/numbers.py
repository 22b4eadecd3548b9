"""Numbers for segment names and values, so that a compiled loop can process them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.segments.observe import OTHERS
from streamwatch.core.estimators.registers.segments.values import OTHER
from streamwatch.core.events import Outcome
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.segments import segments_of

Numbers = NDArray[np.int32]

_MIN_CROWD: Final = 65_536
"""Number of values up to which unused ones are not released."""
_UNKNOWN: Final = -1
_FIRST_PAIRS: Final = 64


class Given(NamedTuple):
    """Segments of outcomes: i has `lengths[i]` entries of `names` and `values` from `starts[i]` on."""

    starts: Numbers
    lengths: Numbers
    names: Numbers
    values: Numbers


class SegmentNumbers:
    """Numbers of segment names, which are permanent, and of values, which are released when unused."""

    __slots__ = ("_columns", "_crowd", "_texts", "names", "values")

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        """Number of each segment name; limited by the settings."""
        self.values: dict[str, int] = {OTHER: OTHERS}
        """Number of each value, shared by all segments."""
        self._texts: list[str] = [OTHER]
        self._crowd = _MIN_CROWD
        self._columns: _Columns | None = None

    def text(self, value: int) -> str:
        """Text of a value, by number."""
        return self._texts[value]

    def name_of(self, name: str) -> int:
        """Number of a segment name."""
        return self.names.setdefault(name, len(self.names))

    def value_of(self, value: str) -> int:
        """Number of a value; a new value gets the next number."""
        number = self.values.get(value)
        if number is None:
            number = self.values[value] = len(self._texts)
            self._texts.append(value)
        return number

    @property
    def crowded(self) -> bool:
        """Tell whether values should be released: there are over twice as many as needed last time."""
        return len(self._texts) > self._crowd

    def keep_only(self, needed: NDArray[np.int64]) -> Numbers:
        """Release all values but these (and `OTHER`), renumber these, and return new numbers by old ones.

        Released values have the number of `OTHER` in the result.
        """
        kept = [OTHERS, *np.unique(needed[needed != OTHERS]).tolist()]
        moved = np.full(len(self._texts), OTHERS, np.int32)
        moved[kept] = np.arange(len(kept), dtype=np.int32)
        self._texts = [self._texts[number] for number in kept]
        self.values = {text: number for number, text in enumerate(self._texts)}
        self._crowd = max(_MIN_CROWD, 2 * len(kept))
        self._columns = None
        return moved

    def of(self, outcomes: Sequence[Outcome]) -> Given | None:
        """Convert the segments of outcomes to numbers; None if no outcome has any."""
        if not isinstance(outcomes, OutcomeBatch):
            return self._of_objects(outcomes)
        numbers = outcomes.segment_numbers()
        if numbers is None or numbers.max(initial=-1) < 0:
            return None
        if self._columns is None or self._columns.texts is not outcomes.segments:
            self._columns = _Columns(self, outcomes.segments)
        return self._columns.of(numbers)

    def _of_objects(self, outcomes: Sequence[Outcome]) -> Given | None:
        lengths = [len(outcome.segments) if outcome.segments else 0 for outcome in outcomes]
        names: list[int] = []
        values: list[int] = []
        for outcome in outcomes:
            if outcome.segments:
                self.put(outcome.segments, names, values)
        if not names:
            return None
        each = np.array(lengths, np.int32)
        starts = np.cumsum(each, dtype=np.int32) - each
        return Given(starts, each, np.array(names, np.int32), np.array(values, np.int32))

    def put(self, segments: Mapping[str, str], names: list[int], values: list[int]) -> None:
        """Append the numbers of segment names and values."""
        for name, value in segments.items():
            names.append(self.name_of(name))
            values.append(self.value_of(value))


class _Columns:
    """Cache from numbers in outcome columns to segments; each text is parsed once.

    A number has the same meaning as long as the list of texts is the same object (see `OutcomeBatch`).
    """

    __slots__ = ("_lengths", "_numbers", "_pairs", "_starts", "_used", "texts")

    def __init__(self, numbers: SegmentNumbers, texts: Sequence[str]) -> None:
        self.texts = texts
        self._numbers = numbers
        self._starts = np.zeros(1, np.int32)
        """By number; the last entry is for −1, which means no segments."""
        self._lengths = np.zeros(1, np.int32)
        self._pairs = np.zeros((2, _FIRST_PAIRS), np.int32)
        """Numbers of names, and of values."""
        self._used = 0

    def of(self, numbers: Numbers) -> Given:
        """Look up the segments of outcomes by these numbers."""
        self._reserve(len(self.texts))
        starts = self._starts[numbers]
        unknown = starts == _UNKNOWN
        if unknown.any():
            self._read(np.unique(numbers[unknown]).tolist())
            starts = self._starts[numbers]
        return Given(starts, self._lengths[numbers], *self._pairs)

    def _reserve(self, texts: int) -> None:
        room = len(self._starts) - 1
        if texts > room:
            more = max(texts, 2 * room) - room
            self._starts = np.insert(self._starts, room, np.full(more, _UNKNOWN, np.int32))
            self._lengths = np.insert(self._lengths, room, np.zeros(more, np.int32))

    def _read(self, numbers: Sequence[int]) -> None:
        names: list[int] = []
        values: list[int] = []
        for number in numbers:
            segments = segments_of(self.texts[number])
            self._starts[number], self._lengths[number] = self._used + len(names), len(segments)
            self._numbers.put(segments, names, values)
        used = self._used + len(names)
        if used > self._pairs.shape[1]:
            larger = np.zeros((2, 2 * used), np.int32)
            larger[:, : self._used] = self._pairs[:, : self._used]
            self._pairs = larger
        self._pairs[:, self._used : used] = names, values
        self._used = used
