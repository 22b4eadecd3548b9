"""Times: fields with event times, and their units."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import compress
from math import log10
from statistics import median
from typing import Final

from streamwatch.core.specs import DAY_MS
from streamwatch.edge.decoders.fields import timestamp_ms
from streamwatch.edge.decoders.mapping import TimestampUnit
from streamwatch.inspection.columns import Column
from streamwatch.inspection.streams import Stream
from streamwatch.inspection.words import TIME, weight

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
    """Convert contents to milliseconds; None for missing ones."""
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
