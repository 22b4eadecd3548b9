"""How logs are recognised: hashes of records that were delivered, taken only when somebody asks."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import xxhash

from streamwatch.core.events import Fingerprint, Mark, Partition
from streamwatch.core.ports import Record
from streamwatch.edge.sources.kafka.batches.record import TOO_LARGE

MARKS = 8
GROWTH = 16
"""Over two marks, the distance from the newest grows at most this much, if there was anything between."""

_HEAD = struct.Struct("<qqq")


def mark_of(record: Record) -> Mark:
    """Offset, and the 64-bit xxh3 of timestamp, key and value; an absent one differs from an empty one."""
    key, value = record.key, record.value
    lengths = (-1 if key is None else len(key), -1 if value is None else len(value))
    return Mark(
        record.offset,
        xxhash.xxh3_64_intdigest(_HEAD.pack(record.timestamp, *lengths) + (key or b"") + (value or b"")),
    )


def with_newest(newest: Mark, marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Put a mark before others and thin these out, so that few of them reach far back."""
    kept = [newest, *marks]
    i = 2
    while i < len(kept) - 1:
        if newest.offset - kept[i + 1].offset <= GROWTH * (newest.offset - kept[i - 1].offset):
            del kept[i]
        else:
            i += 1
    return tuple(kept[:MARKS])


class Fingerprints:
    """Those of all partitions that are read.

    A log found to be another one between two polls, or in one that is given up, is not told of before its
    position is: a commit in between would put the old position into the new log.
    """

    def __init__(self) -> None:
        self._newest: dict[Partition, Record] = {}
        self._taken: dict[Partition, Fingerprint] = {}
        self._polled: dict[Partition, Fingerprint] = {}  # as of the last poll, of those that are others since

    def replace(self, fingerprints: Mapping[Partition, Fingerprint]) -> None:
        """Begin from what a store kept."""
        self._newest.clear()
        self._polled.clear()
        self._taken = dict(fingerprints)

    def delivered(self, partition: Partition, record: Record) -> None:
        """Remember the last record that was evaluated.

        Not one that was too large: where the limit is another, the same record would have another hash.
        """
        if record.fault == TOO_LARGE:
            return
        self._newest[partition] = record

    def told(self) -> None:
        """A poll tells where reading stands in every log, as it is known now."""
        self._polled.clear()

    def belong(self, partition: Partition, topic_id: str | None) -> Fingerprint:
        """Fingerprint of a partition, which is one of this topic; as it was until now."""
        fingerprint = self.of(partition)
        if topic_id is not None and fingerprint.topic_id != topic_id:
            self._taken[partition] = Fingerprint(topic_id, fingerprint.marks)
        return fingerprint

    def renew(self, partition: Partition, topic_id: str | None, marks: tuple[Mark, ...] = ()) -> None:
        """The log is another one, or ends before: only these marks, if any, are of it."""
        self._polled.setdefault(partition, self.of(partition))
        self._taken[partition] = Fingerprint(topic_id, marks)

    def forget(self, partition: Partition) -> None:
        """The partition is not read any more."""
        self._polled.setdefault(partition, self.of(partition))
        self._taken.pop(partition, None)

    def of(self, partition: Partition) -> Fingerprint:
        """Fingerprint of one partition."""
        fingerprint = self._taken.get(partition) or Fingerprint()
        if (record := self._newest.pop(partition, None)) is not None:
            fingerprint = Fingerprint(fingerprint.topic_id, with_newest(mark_of(record), fingerprint.marks))
            self._taken[partition] = fingerprint
        return fingerprint

    def all(self) -> Mapping[Partition, Fingerprint]:
        """Fingerprints of all partitions at the last poll: one hash for each that delivered since then."""
        for partition in list(self._newest):
            self.of(partition)
        return self._taken | self._polled
