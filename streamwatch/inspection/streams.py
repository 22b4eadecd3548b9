"""Records of one topic as columns: whole, by the elements of their arrays, or of one kind."""

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

# Arrays of records taken apart: one element, one event, as a mapping with `[]` makes them.


MAX_GROUPS: Final = 4
"""Groups of arrays that are looked at."""
MAX_EACH: Final = 256
"""First elements of one record that are looked at."""
MAX_ROWS: Final = 40_000


def elements_of(records: Sequence[FlatRecord]) -> list[Sequence[FlatRecord]]:
    """Give for each group of arrays that run side by side the elements of all records."""
    return [
        rows for group in _groups(records)[:MAX_GROUPS] if (rows := list(_limited(_rows(records, group))))
    ]


def _limited(rows: Iterator[FlatRecord]) -> Iterator[FlatRecord]:
    for count, row in enumerate(rows):
        if count >= MAX_ROWS:
            return
        yield row


def _groups(records: Sequence[FlatRecord]) -> list[list[str]]:
    """Arrays of equal lengths in every record that has them; one mapping reads them side by side."""
    locations = dict.fromkeys(location for record in records for location in record.arrays)
    groups: list[list[str]] = []
    for location in locations:
        if not _is_addressable(location, records) or not any(
            record.arrays.get(location) for record in records
        ):
            continue
        fitting = next((group for group in groups if _side_by_side(group[0], location, records)), None)
        if fitting is None:
            groups.append([location])
        else:
            fitting.append(location)
    return groups


def _is_addressable(location: str, records: Sequence[FlatRecord]) -> bool:
    """Tell whether every array around it has one element, the one that the location names."""
    outer = [location[:at] for at, sign in enumerate(location) if sign == "["]
    return all(len(record.arrays.get(array, (0,))) == 1 for array in outer for record in records)


def _side_by_side(one: str, other: str, records: Sequence[FlatRecord]) -> bool:
    both = [(r.arrays[one], r.arrays[other]) for r in records if one in r.arrays and other in r.arrays]
    return bool(both) and all(len(a) == len(b) for a, b in both)


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
"""Column of the names of fields that are events."""
EACH: Final = "[]"
"""Sign of a location that is in each element of an array."""


@dataclass
class Stream:
    """Records of one topic, or of one kind in it, as columns.

    `kind` is the location that distinguishes kinds, and its content; None where the topic has one kind.
    `records` are elements of arrays where each of them is an event, or the fields of an object at `fields`,
    such as `value.scores.*`, whose names are in the column `KEY`. `affixes` are what ids lose, by location;
    `composites` locations that make an id together, by the name of the column of what they make.
    """

    topic: str
    records: Sequence[FlatRecord]
    kind: tuple[str, str] | None = None
    fields: str = ""
    affixes: Mapping[str, Affixes] = field(default_factory=dict[str, Affixes])
    composites: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    columns: Mapping[str, Column] = field(init=False)

    def __post_init__(self) -> None:
        """Lay the records out by location."""
        locations = dict.fromkeys(location for record in self.records for location in record.scalars)
        self.columns = {
            location: Column(location, [record.scalars.get(location) for record in self.records])
            for location in locations
        }

    @cached_property
    def vectors(self) -> Mapping[str, Vector]:
        """Numbers for each of several classes, by their location."""
        return {vector.location: vector for vector in vectors_of(self.records)}

    @cached_property
    def id_columns(self) -> Mapping[str, Column]:
        """Columns as ids are made of them: beside an array followed by `#` and the number of the element."""
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
        """Texts that several columns make together, as a mapping with all of their locations makes them."""
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
        """Share of the records that have a content at a location, or a number for each class."""
        if location in self.columns:
            return self.columns[location].filled
        rows = self.vectors[location].rows
        return sum(row is not None for row in rows) / len(rows)

    def longest(self, location: str) -> int:
        """Most elements that the array around a location has; 0 where there is none, or each is an event."""
        array, bracket, _ = location.partition("[")
        if not bracket or location.startswith(f"{array}{EACH}"):
            return 0
        return max((len(record.arrays.get(array, ())) for record in self.records), default=0)

    @property
    def name(self) -> str:
        """Topic, and what stands at the location of its kind."""
        return self.topic if self.kind is None else f"{self.topic} ({self.kind[0]} = {self.kind[1]})"


def streams_of(topic: str, records: Sequence[FlatRecord]) -> Sequence[Stream]:
    """Give the whole topic, then its arrays apart, then kinds of records by each location that names them."""
    readable = [record for record in records if not record.fault]
    whole = Stream(topic, readable)
    found = [whole, *(Stream(topic, rows) for rows in elements_of(readable))]
    for column in whole.columns.values():
        if column.location.startswith(_OF_CHANGES):
            continue  # an update repeats the row: it may hold a prediction and its label
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
"""Beginning of locations that Debezium's envelope puts beside a row's columns."""
KIND_FILLED: Final = 0.98
MAX_KINDS: Final = 8
USUAL: Final = 0.5


def _shape(group: Sequence[FlatRecord]) -> frozenset[str]:
    """Locations that most records of a group have."""
    counts = Counter(location for record in group for location in record.scalars)
    return frozenset(location for location, count in counts.items() if count > USUAL * len(group))
