"""How much is decoded, and how much evaluated, before others have a turn: by records, bytes and scores.

What a poll delivers may be of any make: a batch within all limits can hold tens of megabytes of text, or
hundreds of thousands of scores, each of which takes a microsecond or more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Event, Outcome, Partition, Prediction
from streamwatch.core.merge import Arrivals
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.ports import Record
from streamwatch.core.records import FetchedRecords, RecordBatch

RECORDS_PER_TURN: Final = 500
"""Records kept as objects that are decoded (of one partition) or evaluated (of all) before others have a
turn."""
ROWS_PER_TURN: Final = 4_096
"""Records in columns that are joined before others have a turn; no more than 500 of them are objects."""
SCORES_PER_TURN: Final = 20_000
"""Scores that are looked at and written before others have a turn."""
_PLAIN_SHARE: Final = 8
"""Few objects are one in so many records, or fewer."""


class Room(NamedTuple):
    """Most that is decoded before others have a turn."""

    fetched: int
    """Fetched records of a partition."""
    size_bytes: int
    """Of values and keys, over all partitions."""


ROOM: Final = Room(2_000, 1 << 18)
ROOM_OF_COLUMNS: Final = Room(8_000, 1 << 20)
"""Room where few of the records decoded before became objects: a compiled pass over so many takes about a
millisecond."""


def in_turns(
    delivered: Mapping[Partition, Sequence[Record]], room_now: Callable[[], Room] = lambda: ROOM
) -> Generator[Mapping[Partition, Sequence[Record]]]:
    """Divide what was delivered into what is decoded at a time, for which room is asked before each.

    A record larger than that has a turn of its own.
    """
    begin = dict.fromkeys(delivered, 0)
    while begin:
        turn: dict[Partition, Sequence[Record]] = {}
        fetched, room = room_now()
        for partition, start in list(begin.items()):
            records = delivered[partition]
            if room > 0 or not turn:
                most = fetched if isinstance(records, FetchedRecords) else RECORDS_PER_TURN
                ends = np.cumsum(_sizes(records[start : start + most]))
                count = min(len(ends), int(np.searchsorted(ends, room)) + 1)
                end = start + count
                if count:
                    room -= int(ends[count - 1])
                    turn[partition] = records[start:end]
            else:
                end = start
            if end == len(records):
                del begin[partition]
            else:
                begin[partition] = end
        if turn:
            yield turn


def room_after(decoded: Collection[Arrivals]) -> Room:
    """Room for the turn after one that decoded these: more where they are nearly all columns.

    An object takes some microseconds, as long as many rows; where there were few, a larger turn takes no
    longer than one of objects alone.
    """
    rows = sum(map(len, decoded))
    objects = sum(len(arrivals.records.objects) for arrivals in decoded)
    return ROOM_OF_COLUMNS if _PLAIN_SHARE * objects <= rows else ROOM


def up_to_scores(events: Sequence[Event]) -> Sequence[Event]:
    """The first of these events that together carry no more scores than fit a turn; one at least."""
    room = SCORES_PER_TURN
    for count, event in enumerate(events):
        if type(event) is Prediction and event.scores:
            room -= len(event.scores)
            if room < 0 and count:
                return events[:count]
    return events


def scores_of(events: Iterable[Event], outcomes: Iterable[Outcome]) -> int:
    """Number of scores that these events bring, and of those that these outcomes take along."""
    brought = sum(len(event.scores) for event in events if type(event) is Prediction and event.scores)
    if isinstance(outcomes, OutcomeBatch):
        return brought + len(outcomes.scores.values)
    return brought + sum(len(outcome.scores) for outcome in outcomes if outcome.scores)


def scores_in_columns(records: RecordBatch) -> int:
    """Number of scores that these records have in columns."""
    return int(records.scores.sizes(records.rows["object"][records.scored_rows()]).sum())


def _rows_up_to_scores(records: RecordBatch) -> int:
    """Number of the first of these records with no more scores in columns than fit a turn; one at least."""
    at = records.scored_rows()
    sizes = records.scores.sizes(records.rows["object"][at])
    fitting = max(int(np.searchsorted(np.cumsum(sizes), SCORES_PER_TURN, "right")), 1)
    return len(records) if fitting >= len(at) else int(at[fitting])


def rows_up_to_objects(records: RecordBatch) -> int:
    """Number of the first of these records among which no more are objects, or scores, than fit a turn."""
    count = _rows_up_to_scores(records.part(0, ROWS_PER_TURN))
    at = records.part(0, count).object_rows()
    if not len(at):
        return count
    most = at[:RECORDS_PER_TURN]
    events = up_to_scores([records.objects[number] for number in records.rows["object"][most].tolist()])
    return count if len(events) == len(at) else int(at[len(events)])


def _sizes(records: Sequence[Record]) -> NDArray[np.int64]:
    """Bytes of key and value of each record."""
    if isinstance(records, FetchedRecords):
        return records.sizes_bytes
    return np.array([len(record.value or b"") + len(record.key or b"") for record in records], np.int64)
