"""Limits of what is decoded or evaluated in one turn of the event loop: records, bytes and scores.

Polls differ much: one within the fetch limits can contain tens of megabytes of text, or hundreds of thousands
of scores. A score of an object takes a microsecond or more, one in columns a twentieth of that.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge import Arrivals
from streamwatch.core.ports import Record
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import Event, Outcome, Partition, Prediction
from streamwatch.core.records.fetched import FetchedRecords
from streamwatch.core.records.outcomes import OutcomeBatch

RECORDS_PER_TURN: Final = 500
"""Most records that are decoded (of a partition) or evaluated (of all) as Python objects in a turn."""
ROWS_PER_TURN: Final = 4_096
"""Most records in columns that are joined in a turn, at most `RECORDS_PER_TURN` of them objects."""
ROWS_PER_SHORT_TURN: Final = 8_192
"""The same while turns are short (`TurnLength`)."""
SHORT_SECONDS: Final = 0.005
"""Processor time of a turn of `ROWS_PER_TURN` records after which twice as many are joined in one."""
LONG_SECONDS: Final = 0.015
"""Processor time of a turn after which no more than `ROWS_PER_TURN` records are joined in the next."""
SCORES_PER_TURN: Final = 20_000
"""Most scores of objects that are evaluated in a turn."""
COLUMN_SCORES_PER_TURN: Final = 100_000
"""Most scores in columns that are joined in a turn."""
SCORES_PER_COMMIT: Final = 100_000
"""Scores at which a commit is due, which is written in one turn; all are in columns by then."""
_PLAIN_SHARE: Final = 8
"""Records per object from which on a turn counts as decoded to columns."""


class Room(NamedTuple):
    """Most that is decoded in one turn."""

    fetched: int
    """Fetched records of one partition."""
    size_bytes: int
    """Bytes of keys and values of all partitions."""


ROOM: Final = Room(2_000, 1 << 18)
"""Limits while many records are decoded to objects."""
ROOM_OF_COLUMNS: Final = Room(16_000, 1 << 21)
"""Limits while nearly all records are decoded to columns: compiled decoding of so many takes about 2 ms."""


class TurnLength:
    """Chooses how many records in columns are joined in a turn: twice as many while turns are short.

    Part of what a turn costs does not depend on its length: calls of the interpreter and of numpy. The time
    is the processor's, so turns do not become shorter where others use it, too. No result depends on where
    turns end.

    Parameters
    ----------
    thread_seconds
        Processor time of the calling thread, in seconds.
    """

    def __init__(self, thread_seconds: Callable[[], float] = time.thread_time) -> None:
        self._thread_seconds = thread_seconds
        self._began = 0.0
        self.rows = ROWS_PER_TURN
        """Most records of the next turn."""

    def begin(self) -> None:
        """Note the beginning of a turn."""
        self._began = self._thread_seconds()

    def end(self, rows: int) -> None:
        """Note the end of a turn in which this many records were joined."""
        seconds = self._thread_seconds() - self._began
        if seconds > LONG_SECONDS:
            self.rows = ROWS_PER_TURN
        elif seconds * ROWS_PER_TURN < SHORT_SECONDS * rows:
            self.rows = ROWS_PER_SHORT_TURN


def in_turns(
    delivered: Mapping[Partition, Sequence[Record]], room_of: Callable[[str], Room] = lambda _: ROOM
) -> Generator[Mapping[Partition, Sequence[Record]]]:
    """Divide the records of a poll into turns; each may exceed the limit of bytes by its last record.

    Parameters
    ----------
    delivered
        Records by partition.
    room_of
        Returns the limits of the next turn for a topic; called before each. Topics with equal limits share
        them.
    """
    begin = dict.fromkeys(delivered, 0)
    while begin:
        turn: dict[Partition, Sequence[Record]] = {}
        taken_bytes: dict[Room, int] = {}
        for partition, start in list(begin.items()):
            records, room = delivered[partition], room_of(partition.topic)
            left = room.size_bytes - taken_bytes.get(room, 0)
            if left > 0 or not turn:
                most = room.fetched if isinstance(records, FetchedRecords) else RECORDS_PER_TURN
                ends = np.cumsum(_sizes(records[start : start + most]))
                count = min(len(ends), int(np.searchsorted(ends, left)) + 1)
                end = start + count
                if count:
                    taken_bytes[room] = taken_bytes.get(room, 0) + int(ends[count - 1])
                    turn[partition] = records[start:end]
            else:
                end = start
            if end == len(records):
                del begin[partition]
            else:
                begin[partition] = end
        if turn:
            yield turn


def rooms_after(decoded: Mapping[Partition, Arrivals]) -> dict[str, Room]:
    """Choose the limits of a topic's next turn: larger ones if this one decoded nearly all to columns.

    Decoding an object takes some microseconds, as long as many rows: with few objects, a larger turn takes no
    longer. Topics are apart, as polls of a backlog bring one and then the other.
    """
    rows: Counter[str] = Counter()
    objects: Counter[str] = Counter()
    for partition, arrivals in decoded.items():
        rows[partition.topic] += len(arrivals)
        objects[partition.topic] += len(arrivals.records.objects)
    return {
        topic: ROOM_OF_COLUMNS if _PLAIN_SHARE * objects[topic] <= count else ROOM
        for topic, count in rows.items()
    }


def up_to_scores(events: Sequence[Event]) -> Sequence[Event]:
    """Return the first of these events, at least one, up to `SCORES_PER_TURN` scores."""
    room = SCORES_PER_TURN
    for count, event in enumerate(events):
        if type(event) is Prediction and event.scores:
            room -= len(event.scores)
            if room < 0 and count:
                return events[:count]
    return events


def scores_of(events: Iterable[Event], outcomes: Iterable[Outcome]) -> int:
    """Number of scores of these events and of these outcomes."""
    brought = sum(len(event.scores) for event in events if type(event) is Prediction and event.scores)
    if isinstance(outcomes, OutcomeBatch):
        return brought + len(outcomes.scores.values)
    return brought + sum(len(outcome.scores) for outcome in outcomes if outcome.scores)


def scores_in_columns(records: RecordBatch) -> int:
    """Number of scores in the columns of these records."""
    return int(records.scores.sizes(records.rows["object"][records.scored_rows()]).sum())


def _rows_up_to_scores(records: RecordBatch) -> int:
    """Number of leading records, at least one, with up to `COLUMN_SCORES_PER_TURN` scores in columns."""
    at = records.scored_rows()
    sizes = records.scores.sizes(records.rows["object"][at])
    fitting = max(int(np.searchsorted(np.cumsum(sizes), COLUMN_SCORES_PER_TURN, "right")), 1)
    return len(records) if fitting >= len(at) else int(at[fitting])


def rows_up_to_objects(records: RecordBatch, most: int = ROWS_PER_TURN) -> int:
    """Number of leading records, at least one and at most `most`, within the limits of a turn."""
    count = _rows_up_to_scores(records.part(0, most))
    at = records.part(0, count).object_rows()
    if not len(at):
        return count
    numbers = records.rows["object"][at[:RECORDS_PER_TURN]]
    events = up_to_scores([records.objects[number] for number in numbers.tolist()])
    return count if len(events) == len(at) else int(at[len(events)])


def _sizes(records: Sequence[Record]) -> NDArray[np.int64]:
    """Bytes of key and value of each record."""
    if isinstance(records, FetchedRecords):
        return records.sizes_bytes
    return np.array([len(record.value or b"") + len(record.key or b"") for record in records], np.int64)
