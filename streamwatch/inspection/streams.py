"""Streams: records of a topic as columns, whole, divided into elements or of one kind; fields with times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from math import log10
from statistics import median
from typing import Any, Final

from streamwatch.core.specs import DAY_MS
from streamwatch.edge.decoders.fields import joined_text, timestamp_ms
from streamwatch.edge.decoders.mapping import Affixes, TimestampUnit
from streamwatch.inspection.columns import Column, FlatRecord, Vector, vectors_of, walk
from streamwatch.inspection.words import TIME, weight

MAX_GROUPS: Final = 4
"""Most groups of arrays that are examined."""
MAX_EACH: Final = 256
"""Most elements of an array that are examined."""
MAX_ROWS: Final = 40_000
"""Most elements of all records that are examined."""


def elements_of(records: Sequence[FlatRecord]) -> list[Sequence[FlatRecord]]:
    """Divide records into the elements of their arrays, as a mapping with `[]` does.

    Returns a sequence of elements for each group of arrays with equal lengths.
    """
    return [
        rows for group in _groups(records)[:MAX_GROUPS] if (rows := list(_limited(_rows(records, group))))
    ]


def _limited(rows: Iterator[FlatRecord]) -> Iterator[FlatRecord]:
    for count, row in enumerate(rows):
        if count >= MAX_ROWS:
            return
        yield row


def _groups(records: Sequence[FlatRecord]) -> list[list[str]]:
    """Group the locations of arrays that have equal lengths in every record, as one mapping can read them."""
    locations = dict.fromkeys(location for record in records for location in record.arrays)
    groups: list[list[str]] = []
    for location in locations:
        if not _is_addressable(location, records) or not any(
            record.arrays.get(location) for record in records
        ):
            continue
        fitting = next((group for group in groups if _side_by_side(group, location, records)), None)
        if fitting is None:
            groups.append([location])
        else:
            fitting.append(location)
    return groups


def _is_addressable(location: str, records: Sequence[FlatRecord]) -> bool:
    """Return whether every array around a location has only the element that the location names."""
    outer = [location[:at] for at, sign in enumerate(location) if sign == "["]
    return all(len(record.arrays.get(array, (0,))) == 1 for array in outer for record in records)


def _side_by_side(group: Sequence[str], location: str, records: Sequence[FlatRecord]) -> bool:
    """Return whether an array is as long as those of a group that are beside it, and is beside one at all."""
    beside = [
        (len(record.arrays[location]), len(record.arrays[other]))
        for record in records
        if location in record.arrays
        for other in group
        if other in record.arrays
    ]
    return bool(beside) and all(own == other for own, other in beside)


def _rows(records: Sequence[FlatRecord], group: Sequence[str]) -> Iterator[FlatRecord]:
    inside = tuple(f"{location}[" for location in group)
    for record in records:
        arrays = {location: record.arrays[location] for location in group if location in record.arrays}
        shared = {
            location: scalar for location, scalar in record.scalars.items() if not location.startswith(inside)
        }
        for at in range(min(MAX_EACH, max(map(len, arrays.values()), default=0))):
            row = FlatRecord(record.record, dict(shared), element=at)
            for location, array in arrays.items():
                content: Any = array[at]
                walk(f"{location}[]", content, row)
            yield row


KEY: Final = "key_of"
"""Name of the column of fields' names, if each field of an object is an event."""
EACH: Final = "[]"
"""Part of the locations in elements of arrays, if each element is an event."""


@dataclass
class Stream:
    """Records of a topic, or of one kind in it, as columns."""

    topic: str
    records: Sequence[FlatRecord]
    """Records, or elements of their arrays, or fields of an object, each of which is an event."""
    kind: tuple[str, str] | None = None
    """Location that distinguishes kinds, and its text for this kind; None: all records of the topic."""
    fields: str = ""
    """Location such as `value.scores.*` whose fields are the records, with names in the column `KEY`."""
    affixes: Mapping[str, Affixes] = field(default_factory=dict[str, Affixes])
    """Prefix and suffix to remove from ids, by location."""
    composites: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Locations whose texts together are an id, by the name of the joined column."""
    columns: Mapping[str, Column] = field(init=False)
    """Columns by location."""

    def __post_init__(self) -> None:
        """Make the columns."""
        locations = dict.fromkeys(location for record in self.records for location in record.scalars)
        self.columns = {
            location: Column(location, [record.scalars.get(location) for record in self.records])
            for location in locations
        }

    @cached_property
    def vectors(self) -> Mapping[str, Vector]:
        """Numbers for each class, by location."""
        return {vector.location: vector for vector in vectors_of(self.records)}

    @cached_property
    def id_columns(self) -> Mapping[str, Column]:
        """Columns with the texts that a mapping would make ids of, by location.

        Texts beside an array are followed by `#` and the number of the element; affixes are removed.
        """
        composites = {
            name: self._composite(name)
            for name, locations in self.composites.items()
            if all(location in self.columns for location in locations)
        }
        found = {**self.columns, **composites}
        if self.records and self.records[0].element is not None:
            found = {
                location: column if EACH in location else Column(location, self._numbered(column))
                for location, column in found.items()
            }
        for location, affixes in self.affixes.items():
            if location in found:
                texts = found[location].texts
                found[location] = Column(
                    location, [None if text is None else affixes.off(text) for text in texts]
                )
        return found

    def _composite(self, name: str) -> Column:
        """Join the texts of several columns, as a mapping with these locations does."""
        columns = [self.columns[location].raw for location in self.composites[name]]
        optional = (False,) * len(columns)
        texts = [joined_text(contents, optional) for contents in zip(*columns, strict=True)]
        return Column(name, [text if isinstance(text, str) else None for text in texts])

    def _numbered(self, column: Column) -> Sequence[str | None]:
        return [
            None if text is None else f"{text}#{record.element}"
            for text, record in zip(column.texts, self.records, strict=True)
        ]

    def filled(self, location: str) -> float:
        """Return the share of records that have a content, or numbers, at a location."""
        if location in self.columns:
            return self.columns[location].filled
        rows = self.vectors[location].rows
        return sum(row is not None for row in rows) / len(rows)

    def longest(self, location: str) -> int:
        """Return the largest length of the array around a location; 0 if none, or if elements are events."""
        array, bracket, _ = location.partition("[")
        if not bracket or location.startswith(f"{array}{EACH}"):
            return 0
        return max((len(record.arrays.get(array, ())) for record in self.records), default=0)

    @property
    def name(self) -> str:
        """Name of the topic, with the kind if there are several."""
        return self.topic if self.kind is None else f"{self.topic} ({self.kind[0]} = {self.kind[1]})"


def streams_of(topic: str, records: Sequence[FlatRecord]) -> Sequence[Stream]:
    """Return the streams of a topic: whole, by elements of arrays, and by kinds of each location with any."""
    readable = [record for record in records if not record.fault]
    whole = Stream(topic, readable)
    found = [whole, *(Stream(topic, rows) for rows in elements_of(readable))]
    for column in whole.columns.values():
        if column.location.startswith(_OF_CHANGES):
            continue  # an update repeats the row, which may have a prediction and its label
        if column.filled < KIND_FILLED or not 2 <= len(column.counts) <= MAX_KINDS or column.is_continuous:
            continue
        groups = {
            text: [r for r, t in zip(readable, column.texts, strict=True) if t == text]
            for text in column.counts
        }
        shapes = {text: _shape(group) for text, group in groups.items()}
        if len(set(shapes.values())) > 1:
            found += [Stream(topic, group, (column.location, text)) for text, group in groups.items()]
    return found


_OF_CHANGES: Final = "value.__"
"""Beginning of the locations that Debezium's envelope adds to a row's columns."""
KIND_FILLED: Final = 0.98
"""Least share of records that have a location that distinguishes kinds."""
MAX_KINDS: Final = 8
USUAL: Final = 0.5


def _shape(group: Sequence[FlatRecord]) -> frozenset[str]:
    """Return the locations that most records of a group have."""
    counts = Counter(location for record in group for location in record.scalars)
    return frozenset(location for location, count in counts.items() if count > USUAL * len(group))


# Times: fields with event times, and their units.


UNITS: Final[tuple[TimestampUnit, ...]] = ("ms", "s", "us", "ns")
BEFORE_MS: Final = 400 * DAY_MS
"""Longest plausible time from an event to its record."""
AFTER_MS: Final = DAY_MS
"""Longest plausible time from a record to an event."""
OLDEST_MS: Final = 946_684_800_000
NEWEST_MS: Final = 4_102_444_800_000
"""Range of plausible times without record times: 2000 to 2100."""
MISREAD_MS: Final = (OLDEST_MS // 1_000, NEWEST_MS // 1_000)
"""Range of times that were written in seconds and are read as milliseconds: January and February 1970."""
SHORTEST_TEXT: Final = 16
"""Least characters of ISO 8601 with a time of day: `2026-01-31T10:00`."""
SEEN: Final = 0.5


@dataclass(frozen=True, slots=True)
class Moment:
    """A field with times."""

    location: str
    unit: TimestampUnit
    distance_ms: float
    """Median distance to the record times; 0 without record times."""
    rank: float
    """Score by which candidates are ordered."""


def unit_of(column: Column, record_ms: Collection[int]) -> TimestampUnit | None:
    """Find the unit in which every content is a plausible time; None if there is none.

    Parameters
    ----------
    column
        Contents, one for each record.
    record_ms
        Record times in milliseconds; -1 if unknown.
    """
    filled = [raw is not None for raw in column.raw]
    contents = [raw for raw in column.raw if raw is not None]
    if not contents or column.is_boolean:
        return None
    near = [stamp for stamp in compress(record_ms, filled) if stamp > 0]
    texts = [raw for raw in contents if isinstance(raw, str)]
    if len(texts) == len(contents) and not all(
        text.lstrip("-").replace(".", "", 1).isdigit() for text in texts
    ):
        dated = all(
            len(text) >= SHORTEST_TEXT and timestamp_ms(text, "iso8601") is not None for text in texts
        )
        return "iso8601" if dated else None
    lowest, highest = (min(near) - BEFORE_MS, max(near) + AFTER_MS) if near else (OLDEST_MS, NEWEST_MS)
    for unit in UNITS:
        found = [timestamp_ms(raw, unit) for raw in contents]
        if all(ms is not None and lowest <= ms <= highest for ms in found):
            return unit
    return None


def are_misread(times_ms: Collection[int]) -> bool:
    """Return whether times are probably seconds that are read as milliseconds; False for none."""
    return bool(times_ms) and min(times_ms) >= MISREAD_MS[0] and max(times_ms) <= MISREAD_MS[1]


def stamps(column: Column, unit: TimestampUnit) -> list[int | None]:
    """Convert contents to milliseconds; None for missing ones, and for those that are no times."""
    return [None if raw is None else timestamp_ms(raw, unit) for raw in column.raw]


def moments(stream: Stream, without: Collection[str] = ()) -> list[Moment]:
    """Find fields with times, except at the locations `without`, the likeliest first."""
    record_ms = [record.record_ms for record in stream.records]
    found: list[Moment] = []
    for location, column in stream.columns.items():
        if location in without or location == "key" or column.filled < SEEN or len(column.counts) < MOVING:
            continue
        unit = unit_of(column, record_ms)
        if unit is None:
            continue
        gaps = [
            abs(ms - at)
            for ms, at in zip(stamps(column, unit), record_ms, strict=True)
            if ms is not None and at > 0
        ]
        distance = median(gaps) if gaps else 0.0
        rank = weight(location, TIME) - 0.35 * log10(1 + distance / 1_000)
        found.append(Moment(location, unit, distance, rank))
    return sorted(found, key=lambda moment: -moment.rank)


MOVING: Final = 2
"""Least number of distinct times of a field."""
