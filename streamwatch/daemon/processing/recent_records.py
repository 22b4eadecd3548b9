"""The records read last, so that a log can be recognised by the one that was evaluated last."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from streamwatch.core.events import Partition
from streamwatch.core.fetched import OFFSET, FetchedRecords
from streamwatch.core.ports import Record


class RecentRecords:
    """Keeps what was delivered of each partition until all of it has been evaluated, then its last record."""

    def __init__(self) -> None:
        self._delivered: dict[Partition, deque[Sequence[Record]]] = {}

    def add(self, partition: Partition, records: Sequence[Record]) -> None:
        """Remember records in offset order, one or more."""
        self._delivered.setdefault(partition, deque()).append(records)

    def forget(self, partition: Partition) -> None:
        """Drop what is known of a partition."""
        self._delivered.pop(partition, None)

    def let_go(self, offsets: Mapping[Partition, int]) -> None:
        """Drop what lies before these offsets; of what ends at one, only that record is kept.

        Values are most of what a backlog brings: kept from one commit to the next they take its memory.
        """
        for partition, offset in offsets.items():
            delivered = self._delivered.get(partition)
            if not delivered:
                continue
            while delivered and _last_offset(delivered[0]) < offset:
                delivered.popleft()
            if delivered and len(delivered[0]) > 1 and _last_offset(delivered[0]) == offset:
                delivered[0] = (delivered[0][-1],)

    def take(self, offsets: Mapping[Partition, int]) -> dict[Partition, Record]:
        """Find the records at these offsets, and drop all before them; without those that were forgotten."""
        found: dict[Partition, Record] = {}
        for partition, offset in offsets.items():
            delivered = self._delivered.get(partition)
            while delivered and _last_offset(delivered[0]) < offset:
                delivered.popleft()
            if delivered:
                record = delivered[0][_place(delivered[0], offset)]
                if record.offset == offset:
                    found[partition] = record
        return found


def _last_offset(records: Sequence[Record]) -> int:
    """Offset of the last record; of columns without making an object of it."""
    if isinstance(records, FetchedRecords):
        return int(records.rows[-1, OFFSET])
    return records[-1].offset


def _place(records: Sequence[Record], offset: int) -> int:
    """Place of the first record that does not lie before an offset."""
    if isinstance(records, FetchedRecords):
        return int(np.searchsorted(records.rows[:, OFFSET], offset))
    return bisect_left(records, offset, key=lambda record: record.offset)
