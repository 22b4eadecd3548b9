"""The records read last, so that a log can be recognised by the one that was evaluated last."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence

from streamwatch.core.events import Partition
from streamwatch.core.ports import Record


class RecentRecords:
    """Keeps what was delivered of each partition until a later record of it has been evaluated."""

    def __init__(self) -> None:
        self._delivered: dict[Partition, deque[Sequence[Record]]] = {}

    def add(self, partition: Partition, records: Sequence[Record]) -> None:
        """Remember records in offset order, one or more."""
        self._delivered.setdefault(partition, deque()).append(records)

    def forget(self, partition: Partition) -> None:
        """Drop what is known of a partition."""
        self._delivered.pop(partition, None)

    def take(self, offsets: Mapping[Partition, int]) -> dict[Partition, Record]:
        """Find the records at these offsets, and drop all before them; without those that were forgotten."""
        found: dict[Partition, Record] = {}
        for partition, offset in offsets.items():
            delivered = self._delivered.get(partition)
            while delivered and delivered[0][-1].offset < offset:
                delivered.popleft()
            if delivered:
                records = delivered[0]
                place = bisect_left(records, offset, key=lambda record: record.offset)
                if records[place].offset == offset:
                    found[partition] = records[place]
        return found
