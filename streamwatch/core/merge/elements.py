"""Expansion of released records that hold several events, or none, into a row for each event.

Until its release a record is one row, as waiting, lateness and positions concern whole records. Afterwards
each of its events is a row with the record's place and time. All but the last are marked (`CONTINUED`), so
that neither a turn nor a commit ends between them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Decoded, Event, EventGroup, Skipped
from streamwatch.core.merge.released import CONTINUED, Released
from streamwatch.core.records import OBJECT, RecordBatch, rows_of, words_of

EVENTS_PER_TURN: Final = 4_096
"""Events of records with several that become rows at a time; a record with more has a turn of its own."""


def expanded(released: Released) -> Released:
    """Give a stretch of the sequence with a row for each event, and one for a record without any."""
    several = _several(released)
    return _with_rows(released, several) if several else released


def expanded_in_turns(stretches: Iterable[Released]) -> Generator[Released, None, None]:
    """Give stretches of the sequence as `expanded` does, in shorter ones where records hold many events."""
    for released in stretches:
        several = _several(released)
        start = events = 0
        for place, found in several.items():
            events += len(found.events)
            if events >= EVENTS_PER_TURN:
                yield expanded(released.part(start, place + 1))
                start, events = place + 1, 0
        if start < len(released):
            yield expanded(released.part(start, len(released))) if several else released


def _several(released: Released) -> dict[int, EventGroup]:
    """Find the records that hold several events, by place."""
    records = released.records
    if not records.objects:
        return {}
    places = np.flatnonzero(records.rows["side"] == OBJECT)
    numbers: list[int] = records.rows["object"][places].tolist()
    return {
        place: found
        for place, number in zip(places.tolist(), numbers, strict=True)
        if isinstance(found := records.objects[number], EventGroup)
    }


def _with_rows(released: Released, several: dict[int, EventGroup]) -> Released:
    count = len(released)
    at = np.fromiter(several, np.int64, len(several))
    held, tied = np.ones(count, np.int64), np.zeros(count, np.int64)
    held[at] = [len(each.events) for each in several.values()]
    tied[at] = [each.tied for each in several.values()]
    sizes = np.maximum(held, 1)
    of = np.repeat(np.arange(count), sizes)
    ends = np.cumsum(sizes) - 1
    is_last = np.zeros(len(of), np.bool_)
    is_last[ends] = True

    def told_last(column: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(is_last, column[of], 0)

    return Released(
        _batch(released.records, of, several, ends - sizes + 1),
        released.partitions,
        released.places[of],
        released.offsets[of],
        released.times_ms[of],
        released.clock_ms[of],
        np.where(is_last, released.lateness_ms[of], CONTINUED),
        np.where(is_last, released.reasons[of], 0).astype(np.uint8),
        told_last(held),
        told_last(tied),
    )


def _batch(
    records: RecordBatch, of: NDArray[np.int64], several: dict[int, EventGroup], starts: NDArray[np.int64]
) -> RecordBatch:
    """Rows with the objects of their own: those of before, then the events of records with several."""
    rows = rows_of(words_of(records.rows).take(of, axis=0))
    places = np.flatnonzero(records.rows["side"] == OBJECT).tolist()
    objects: list[Decoded] = []
    for place, number in zip(places, records.rows["object"][places].tolist(), strict=True):
        found = several.get(place)
        own: Sequence[Decoded] = (records.objects[number],) if found is None else _events(found)
        first = int(starts[place])
        rows["object"][first : first + len(own)] = np.arange(len(objects), len(objects) + len(own))
        objects += own
    return RecordBatch(rows, records.texts, objects, records.vocabulary, records.topics)


def _events(found: EventGroup) -> Sequence[Event]:
    return found.events or (Skipped(found.record_ms),)
