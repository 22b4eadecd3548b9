"""Arrays of records taken apart: one element, one event, as a mapping with `[]` makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from streamwatch.lab.inspection.flatten import FlatRecord, walk

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
    places = dict.fromkeys(place for record in records for place in record.arrays)
    groups: list[list[str]] = []
    for place in places:
        if not _is_addressable(place, records) or not any(record.arrays.get(place) for record in records):
            continue
        fitting = next((group for group in groups if _side_by_side(group[0], place, records)), None)
        if fitting is None:
            groups.append([place])
        else:
            fitting.append(place)
    return groups


def _is_addressable(place: str, records: Sequence[FlatRecord]) -> bool:
    """Tell whether every array around it has one element, the one that the place names."""
    outer = [place[:at] for at, sign in enumerate(place) if sign == "["]
    return all(len(record.arrays.get(array, (0,))) == 1 for array in outer for record in records)


def _side_by_side(one: str, other: str, records: Sequence[FlatRecord]) -> bool:
    both = [(r.arrays[one], r.arrays[other]) for r in records if one in r.arrays and other in r.arrays]
    return bool(both) and all(len(a) == len(b) for a, b in both)


def _rows(records: Sequence[FlatRecord], group: Sequence[str]) -> Iterator[FlatRecord]:
    inside = tuple(f"{place}[" for place in group)
    for record in records:
        arrays = {place: record.arrays[place] for place in group if place in record.arrays}
        shared = {place: scalar for place, scalar in record.scalars.items() if not place.startswith(inside)}
        for at in range(min(MAX_EACH, max(map(len, arrays.values()), default=0))):
            row = FlatRecord(record.record, dict(shared), element=at)
            for place, array in arrays.items():
                content: Any = array[at]
                walk(f"{place}[]", content, row)
            yield row
