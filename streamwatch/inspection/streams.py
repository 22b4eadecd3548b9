"""Streams: records of a topic as columns, whole, divided into elements of arrays, or of one kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from streamwatch.edge.decoders.field_locations import joined_text
from streamwatch.edge.decoders.mapping import Affixes
from streamwatch.inspection.columns import Column, FlatRecord, walk
from streamwatch.inspection.vectors import Vector, vectors_of

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
