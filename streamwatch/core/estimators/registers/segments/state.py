"""State of the segments of all models: records by segment number and by row, and the hash table of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.segments.observe import (
    CANDIDATES,
    EMPTY,
    NONE,
    OTHERS,
    Candidates,
    FoundRows,
    Limits,
    SegmentedOutcomes,
    SegmentRecords,
    ValueIndex,
    forget,
    observe,
    remember,
)
from streamwatch.core.records.events import OTHER, segments_of
from streamwatch.core.records.outcomes import OutcomeBatch

# Numbers for segment names and values, so that a compiled loop can process them.


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
    """Numbers of segment names, which are permanent, and of values, which are released when unused.

    Parameters
    ----------
    named
        Names of the segments that count; None: any. Predictions that waited for their label when a segment
        was removed from a mapping still carry it.
    """

    __slots__ = ("_columns", "_crowd", "_named", "_texts", "names", "values")

    def __init__(self, named: frozenset[str] | None = None) -> None:
        self._named = named
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

    def counts(self, name: str) -> bool:
        """Tell whether a segment counts."""
        return self._named is None or name in self._named

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
        """Tell whether values should be released: over 65,536, and over twice as many as needed last time."""
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

    def of(self, outcomes: OutcomeBatch) -> Given | None:
        """Convert the segments of outcomes that count to numbers; None if no outcome has segments."""
        numbers = outcomes.segment_numbers()
        if numbers is None or numbers.max(initial=-1) < 0:
            return None
        if self._columns is None or self._columns.texts is not outcomes.segments:
            self._columns = _Columns(self, outcomes.segments)
        return self._columns.of(numbers)

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
            given = segments_of(self.texts[number])
            segments = {name: value for name, value in given.items() if self._numbers.counts(name)}
            self._starts[number], self._lengths[number] = self._used + len(names), len(segments)
            self._numbers.put(segments, names, values)
        used = self._used + len(names)
        if used > self._pairs.shape[1]:
            larger = np.zeros((2, 2 * used), np.int32)
            larger[:, : self._used] = self._pairs[:, : self._used]
            self._pairs = larger
        self._pairs[:, self._used : used] = names, values
        self._used = used


SEGMENT: Final = np.dtype(
    [
        ("counted", "i8"),  # number of outcomes
        ("left_out", "i8"),  # outcomes that count for no value, as the table had no free row
        ("own", "i4"),  # number of values with a row of their own, without `__other__`
        ("other", "i4"),  # row of `__other__`, or NONE
        ("candidates", "i4"),  # number of values without a row that are counted in this epoch
        ("stretch", "i4"),  # number of their range in the candidates' arrays, or NONE
    ],
    align=True,
)
VALUE: Final = np.dtype(
    [
        ("outcomes", "i8"),
        ("in_epoch", "i8"),
        ("weight", "f8"),  # faded number of the value's outcomes, in steps of the segment, as of `at`
        ("at", "i8"),  # number of the last outcome among the segment's outcomes of the model, from 1
    ],
    align=True,
)
_FIRST_SEGMENTS: Final = 4
_FIRST_SLOTS: Final = 1 << 10
_LOWER: Final = np.int64((1 << 32) - 1)
"""Mask of a key's bits that hold the number of the value."""


class SegmentState:
    """Segments of up to `models` models, and their values; the caller allocates the values' rows.

    Segments count if they are among `named`; None: all.
    """

    __slots__ = (
        "_candidates",
        "_counts",
        "_free",
        "_free_stretches",
        "_keys",
        "_meanings",
        "_of",
        "_stretches",
        "_taken",
        "last",
        "numbers",
        "rows",
        "segments",
        "values",
    )

    def __init__(self, models: int, named: frozenset[str] | None = None) -> None:
        self.numbers = SegmentNumbers(named)
        self.segments: NDArray[np.void] = np.zeros(0, SEGMENT)
        """Records by segment number; a segment belongs to one model."""
        self.values: NDArray[np.void] = np.zeros(0, VALUE)
        """Records by row."""
        self.rows: list[dict[str, int]] = []
        """Row of each value that has one, by segment number."""
        self.last: NDArray[np.int32] = np.full(models, NONE, np.int32)
        """Class of each model's latest label, by the model's row; NONE before the first."""
        self._of = np.full((models, _FIRST_SEGMENTS), NONE, np.int32)
        self._free: list[int] = []
        self._keys, self._meanings = _table(_FIRST_SLOTS)
        self._taken = np.zeros(1, np.int64)
        self._candidates = np.zeros(0, np.int32)
        self._counts = np.zeros(0, np.int64)
        self._stretches = 0
        self._free_stretches: list[int] = []

    def observe(
        self,
        models: NDArray[np.int32],
        true_class: NDArray[np.int32],
        given: Given,
        limits: Limits,
        cursor: NDArray[np.int64],
        found: FoundRows,
    ) -> int:
        """Count outcomes from the cursor on; see `observe.observe`."""
        self._reserve_names()
        reason = observe(
            SegmentedOutcomes(models, true_class, *given),
            SegmentRecords(self._of, self.segments, self.values, self.last),
            ValueIndex(self._keys, self._meanings, self._taken),
            Candidates(self._candidates, self._counts),
            limits,
            cursor,
            found,
        )
        return int(reason)

    def segments_of(self, model: int) -> list[tuple[str, int]]:
        """Names and numbers of a model's segments, ordered by name."""
        self._reserve_names()
        numbers = self._of[model].tolist()
        return sorted((name, numbers[k]) for name, k in self.numbers.names.items() if numbers[k] != NONE)

    def number_of(self, model: int, name: int) -> int:
        """Number of a model's segment, which must exist."""
        return int(self._of[model, name])

    def add_segment(self, model: int, name: int) -> int:
        """Add a segment to a model, and return its number."""
        self._reserve_names()
        if not self._free:
            before = len(self.segments)
            self.segments = _longer(self.segments, max(_FIRST_SEGMENTS, 2 * before))
            self._free = list(range(before, len(self.segments)))
            self.rows += [{} for _ in self._free]
        number = self._free.pop()
        self.segments[number] = (0, 0, 0, NONE, 0, NONE)
        self._of[model, name] = number
        return number

    def enter(self, number: int, value: str, row: int) -> None:
        """Give a value of a segment a row, with all counts zero."""
        segment = self.segments[number]
        if row >= len(self.values):
            self.values = _longer(self.values, max(row + 1, 2 * len(self.values)))
        self.values[row] = (0, 0, 0.0, segment["counted"])
        self.rows[number][value] = row
        if value == OTHER:
            segment["other"] = row
            return
        segment["own"] += 1
        self._remember(self._key(number, np.array([self.numbers.value_of(value)])), np.array([row], np.int32))

    def leave(self, number: int, value: str) -> int:
        """Remove a value, and return its row."""
        self._forget(self._key(number, np.array([self.numbers.values[value]])))
        self.segments[number]["own"] -= 1
        return self.rows[number].pop(value)

    def reserve_candidates(self, number: int) -> None:
        """Reserve a segment's range for the candidates of an epoch."""
        if not self._free_stretches:
            self._free_stretches = [self._stretches]
            self._stretches += 1
            needed = self._stretches * CANDIDATES
            if needed > len(self._candidates):
                self._candidates = _longer(self._candidates, 2 * needed)
                self._counts = _longer(self._counts, 2 * needed)
        self.segments[number]["stretch"] = self._free_stretches.pop()

    def candidates(self, number: int) -> dict[str, int]:
        """Outcomes in this epoch of the values without a row of their own."""
        text = self.numbers.text
        values, counts = (
            column[self._candidates_of(number)].tolist() for column in (self._candidates, self._counts)
        )
        return {text(value): count for value, count in zip(values, counts, strict=True)}

    def set_candidates(self, number: int, candidates: Mapping[str, int]) -> None:
        """Replace the candidates of a segment and their counts."""
        segment = self.segments[number]
        self._forget(self._key(number, self._candidates[self._candidates_of(number)]))
        segment["candidates"] = len(candidates)
        if not candidates:
            return
        if segment["stretch"] == NONE:
            self.reserve_candidates(number)
        positions = self._candidates_of(number)
        values = np.array([self.numbers.value_of(value) for value in candidates], np.int32)
        self._candidates[positions] = values
        self._counts[positions] = list(candidates.values())
        meanings = -1 - np.arange(positions.start, positions.stop, dtype=np.int32)
        self._remember(self._key(number, values), meanings)

    def remove(self, model: int) -> list[int]:
        """Remove the segments of a model and its latest label, and return the rows of the values."""
        self.last[model] = NONE
        rows: list[int] = []
        for name, number in self.segments_of(model):
            self.set_candidates(number, {})
            own = [value for value in self.rows[number] if value != OTHER]
            self._forget(self._key(number, np.array([self.numbers.values[value] for value in own], np.int32)))
            rows += self.rows[number].values()
            self.rows[number] = {}
            if self.segments[number]["stretch"] != NONE:
                self._free_stretches.append(int(self.segments[number]["stretch"]))
            self._free.append(number)
            self._of[model, self.numbers.names[name]] = NONE
        return rows

    def make_room(self) -> None:
        """Double the size of the hash table."""
        self._move(2 * len(self._keys), self._keys[self._keys != EMPTY])

    def release_values(self) -> None:
        """Release the numbers of unused values, once there are many of them."""
        if not self.numbers.crowded:
            return
        keys = self._keys[self._keys != EMPTY]
        moved = self.numbers.keep_only(keys & _LOWER)
        self._candidates = moved[self._candidates]
        self._move(len(self._keys), keys, (keys & ~_LOWER) | moved[keys & _LOWER])

    def _reserve_names(self) -> None:
        missing = len(self.numbers.names) - self._of.shape[1]
        if missing > 0:
            more = np.full((len(self._of), missing), NONE, np.int32)
            self._of = np.hstack([self._of, more])

    def _move(self, slots: int, keys: NDArray[np.int64], become: NDArray[np.int64] | None = None) -> None:
        """Rebuild the hash table with this many slots; `become` are new keys in place of `keys`."""
        meanings = self._meanings[self._keys != EMPTY]
        self._keys, self._meanings = _table(slots)
        remember(self._keys, self._meanings, keys if become is None else become, meanings)

    def _candidates_of(self, number: int) -> slice:
        segment = self.segments[number]
        start = max(0, int(segment["stretch"])) * CANDIDATES
        return slice(start, start + int(segment["candidates"]))

    def _key(self, number: int, values: NDArray[Any]) -> NDArray[np.int64]:
        return values.astype(np.int64) | number << 32

    def _remember(self, keys: NDArray[np.int64], meanings: NDArray[np.int32]) -> None:
        while 2 * (int(self._taken[0]) + len(keys)) > len(self._keys):
            self.make_room()
        self._taken[0] += remember(self._keys, self._meanings, keys, meanings)

    def _forget(self, keys: NDArray[np.int64]) -> None:
        self._taken[0] -= forget(self._keys, self._meanings, keys)


def _table(slots: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    return np.full(slots, EMPTY, np.int64), np.zeros(slots, np.int32)


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer
