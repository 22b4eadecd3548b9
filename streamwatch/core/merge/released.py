"""A stretch of the sequence: records in order, with the clock at each of them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.queues import IN_ORDER, LATENESS_UNKNOWN
from streamwatch.core.records.batch import SEVERAL, RecordBatch, no_records, rows_of, words_of
from streamwatch.core.records.events import Partition

__all__ = ["CONTINUED", "IN_ORDER", "LATENESS_UNKNOWN", "Released", "together"]

CONTINUED: Final = -3
"""Instead of a lateness: the next row is of the same record, and has the lateness of both."""


@dataclass(frozen=True, slots=True)
class Released:
    """Released records, in order; columns of one length.

    Attributes
    ----------
    records
        Decoded records, with the clock at each of them.
    partitions
        Partitions that `indices` refer to.
    indices
        int64: which partition each record is of.
    offsets, times_ms
        int64: offset, and time in its partition.
    clock_ms
        int64: the clock at each record, in milliseconds since the epoch; not decreasing.
    lateness_ms
        int64: the clock less the record's time, if a later record was released before; otherwise `IN_ORDER`.
        `LATENESS_UNKNOWN` if such a record has no own time, as it could not be decoded; or `CONTINUED`.
    reasons
        uint8: why its timestamp was corrected (`timestamps.REASONS`), or 0.
    events, tied
        int64: events that the record holds, 0 if it was skipped, and predictions among them whose class was
        one of several with the largest score. A record that has several rows reports all at its last.
        None where every record holds one event, and no class was tied.
    """

    records: RecordBatch
    partitions: Sequence[Partition]
    indices: NDArray[np.int64]
    offsets: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    clock_ms: NDArray[np.int64]
    lateness_ms: NDArray[np.int64]
    reasons: NDArray[np.uint8]
    events: NDArray[np.int64] | None = None
    tied: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.records)

    def end_of_record(self, stop: int) -> int:
        """Return the first row, from `stop` (at least 1) on, before which a record ends."""
        if stop < len(self):
            while self.lateness_ms[stop - 1] == CONTINUED:
                stop += 1
        return min(stop, len(self))

    def part(self, start: int, stop: int) -> Released:
        """Take the records from `start` up to `stop`."""
        columns: list[Any] = [getattr(self, name) for name in _COLUMNS]
        parts: list[Any] = [None if column is None else column[start:stop] for column in columns]
        return Released(self.records.part(start, stop), self.partitions, *parts)


_COLUMNS: Final = tuple(field.name for field in fields(Released))[2:]


def together(parts: Sequence[Released]) -> Released:
    """Concatenate stretches of the sequence that were released one after another, before they are expanded.

    Texts, names and objects are those of the last, which has those of all.
    """
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none, codes = np.empty(0, np.int64), np.empty(0, np.uint8)
        return Released(no_records(), (), none, none, none, none, none, codes)
    last = parts[-1].records
    return Released(
        RecordBatch(
            rows_of(np.concatenate([words_of(part.records.rows) for part in parts])),
            last.texts,
            last.objects,
            last.vocabulary,
            last.topics,
            last.scores,
            last.elements,
        ),
        parts[0].partitions,
        *(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS[:-2]),
    )


# Expansion of released records that hold several events, or none, into a row for each event.
#
# Until its release a record is one row, as waiting, lateness and positions concern whole records.
# Afterwards each of its events is a row with the record's offset and time. All but the last are marked
# (`CONTINUED`), so that neither a turn nor a commit ends between them.


EVENTS_PER_TURN: Final = 4_096
"""Events, of records with several, after which a turn ends: with the record that reaches this number."""


def expanded(released: Released) -> Released:
    """Return a stretch of the sequence with a row for each event, and one for each record without any."""
    if not len(_several(released.records)):
        return released
    batch, of, events, tied = released.records.spread()
    is_last = np.ones(len(of), np.bool_)
    is_last[:-1] = of[1:] != of[:-1]

    def at_last_row(column: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(is_last, column[of], 0)

    return Released(
        batch,
        released.partitions,
        released.indices[of],
        released.offsets[of],
        released.times_ms[of],
        released.clock_ms[of],
        np.where(is_last, released.lateness_ms[of], CONTINUED),
        np.where(is_last, released.reasons[of], 0).astype(np.uint8),
        at_last_row(events),
        at_last_row(tied),
    )


def expanded_in_turns(stretches: Iterable[Released]) -> Generator[Released, None, None]:
    """Yield stretches of the sequence, expanded, in shorter ones where records hold many events."""
    for released in stretches:
        start = 0
        for stop in _stops(released.records):
            yield expanded(released.part(start, stop))
            start = stop
        if start < len(released):
            yield expanded(released.part(start, len(released)))


def _stops(records: RecordBatch) -> Generator[int, None, None]:
    """Yield the row after each record with which the events of records with several fill a turn."""
    indices = _several(records)
    ends = np.cumsum(records.elements.sizes(records.rows["object"][indices]))
    before = 0
    while len(ends) and ends[-1] >= before + EVENTS_PER_TURN:
        last = int(np.searchsorted(ends, before + EVENTS_PER_TURN))
        yield int(indices[last]) + 1
        before = int(ends[last])


def _several(records: RecordBatch) -> NDArray[np.intp]:
    """Find the records that hold several events, or none."""
    return np.flatnonzero(records.rows["side"] == SEVERAL) if len(records.elements) else np.empty(0, np.intp)
