"""The log under a reader changed: which way, whether that is a loss, and whether reading may go on.

The topic's id as the broker reports it, and what is now at the offset of a remembered record, decide:

| topic id | last record delivered        | earlier ones       | the log was | reading goes on at |
|----------|------------------------------|--------------------|-------------|--------------------|
| another  | any                          | any                | recreated   | its beginning      |
| the same | the same                     | any                | left alone  | the position       |
| the same | another                      | any                | truncated   | the position       |
| the same | offsets do not reach it      | any                | truncated   | its end            |
| unknown  | the same                     | any                | left alone  | the position       |
| unknown  | another, or do not reach it  | one is the same    | truncated   | position, or end   |
| unknown  | another, or do not reach it  | else: one differs  | recreated   | its beginning      |
| unknown  | offsets do not reach it      | all gone, or none  | truncated   | its end            |
| any but another | gone (retention, compaction, aborted) | any  | unverifiable | the position      |
| any but another | the log begins after the position | any      | overtaken by retention | its first record |

Every record of a recreated log is new. After a truncation reading never goes back, so nothing counts twice;
what was written between the cut and the position before that was noticed is not read. Where the number of
records lost is not known it is not made up: only `retention` has one, and `corrupt_batch` and
`oversized_batch`, by which single batches are passed over that cannot be read; there each offset counts,
compacted away or not.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import xxhash

from streamwatch.core.events import Fingerprint, Mark, Partition
from streamwatch.core.ports import Record
from streamwatch.edge.sources.kafka.batches.frames import Damage
from streamwatch.edge.sources.kafka.batches.record import TOO_LARGE
from streamwatch.telemetry import (
    BatchSkipped,
    InternalEvent,
    PositionLost,
    PositionUnverified,
    StateMismatchDetected,
)

Found: TypeAlias = Literal["same", "other", "absent", "beyond", "hidden"]
"""What stands in the log at the offset of a record that was delivered; hidden: not readable at the moment."""

Verdict: TypeAlias = Literal["intact", "unverified", "truncation", "recreated"]

Kinship: TypeAlias = Literal["same", "other", "unknown"]
"""Relation of the topic ids then and now."""


class ReadingEnded(Exception):  # noqa: N818 - it names what is the case
    """Reading cannot go on and no retry will cure it; the message has what to change."""


class LogLost(ReadingEnded):
    """The log is not the one that was read, or lacks what is next; `on_data_loss: fail` asks to stop then."""


def judge(topic: Kinship, found: Sequence[Found]) -> Verdict:
    """Judge what happened to a log, by the table above; `found` is about the newest mark first."""
    if topic == "other":
        return "recreated"
    newest = found[0] if found else "beyond"
    if newest in ("same", "hidden"):
        return "intact"
    if newest == "absent":
        return "unverified"
    recreated = topic == "unknown" and "same" not in found and "other" in found
    return "recreated" if recreated else "truncation"


@dataclass(frozen=True, slots=True)
class DataLossSnapshot:
    """Counts of data loss up to a poll, as `DataLossTracker` releases them."""

    times: Mapping[str, int] = field(default_factory=dict[str, int])
    records: Mapping[str, int] = field(default_factory=dict[str, int])
    unverified_positions: int = 0


class DataLossTracker:
    """Counts what was lost, or refuses to go on.

    Findings between two polls, or in one that is given up, are released together with the new positions: a
    commit in between would store them with the old position, and a start from there would count them twice.

    Parameters
    ----------
    on_data_loss
        What the operator chose.
    emit
        Where internal events go.
    """

    def __init__(
        self, on_data_loss: Literal["continue", "fail"], emit: Callable[[InternalEvent], None]
    ) -> None:
        self._on_data_loss = on_data_loss
        self._emit = emit
        self.times: Counter[str] = Counter()
        """Times the log was found changed, by cause."""
        self.records: Counter[str] = Counter()
        """Offsets skipped, by cause, where their number is known."""
        self.unverified_positions = 0
        """Times the record that identifies a log was gone."""
        self.released = DataLossSnapshot()
        """As of the last poll."""
        self._at_least: dict[str, int] = {}  # found in the group, which is asked only once

    def release(self) -> None:
        """Release the counts, as the positions of a poll now include all that was found."""
        self.released = DataLossSnapshot(dict(self.times), dict(self.records), self.unverified_positions)

    def count_from(self, durable: DataLossSnapshot) -> None:
        """Go on from what a commit holds; what was found since will be found again, from where it stands."""
        self.times = Counter(durable.times) | Counter(self._at_least)
        self.records, self.unverified_positions = Counter(durable.records), durable.unverified_positions
        self.release()

    def overtaken(self, partition: Partition, wanted: int, first: int) -> None:
        """Count records that retention removed before they were read."""
        self._lost("retention", partition, wanted, first, f"its log now begins at {first}", first - wanted)

    def truncated(self, partition: Partition, wanted: int, resumed: int) -> None:
        """Count a truncation: records that were read are gone, and others may be at their offsets now."""
        now = f"its log now ends at {resumed}" if resumed < wanted else "other records now stand before that"
        self._lost("truncation", partition, wanted, resumed, now)

    def recreated(self, partition: Partition, wanted: int, first: int) -> None:
        """Count a topic that was deleted and created again under its name."""
        self._lost("recreated", partition, wanted, first, "its topic has been deleted and created again")

    def unreadable(self, partition: Partition, damage: Damage) -> None:
        """Count a batch that cannot be read, on any connection."""
        topic, number = partition
        first, after = damage.first, damage.next_offset
        self._refuse(
            f"{topic}/{number} cannot be read from offset {first} to {after - 1}: {damage.reason}"
            f" ({damage.cause}): set kafka.on_data_loss to continue, to go on at offset {after}"
        )
        self.times[damage.cause] += 1
        self.records[damage.cause] += damage.records
        self._emit(BatchSkipped(topic, number, first, damage.records, damage.cause, damage.reason))

    def vanished(self, partition: Partition, wanted: int) -> None:
        """Count a partition that is gone: its topic was created again with fewer."""
        self._lost("partition_vanished", partition, wanted, -1, "it is no longer there")

    def foreign(self, cause: str, what: str, remedy: str) -> None:
        """Count a consumer group that was last used by another state; nothing is lost by reading on.

        That moves no position, and is released at once.
        """
        self._refuse(
            f"{what} ({cause}): {remedy}, or set kafka.on_data_loss to continue, to go on with this one"
        )
        self.times[cause] += 1
        self._at_least[cause] = self.times[cause]
        self.released = replace(self.released, times={**self.released.times, cause: self.times[cause]})
        self._emit(StateMismatchDetected(cause, what))

    def unverified(self, partition: Partition, offset: int) -> None:
        """Count a log whose identifying record is gone, while nothing shows that it is another log."""
        self.unverified_positions += 1
        self._emit(PositionUnverified(partition.topic, partition.partition, offset))

    def _lost(
        self,
        cause: str,
        partition: Partition,
        wanted: int,
        resumed: int,
        what: str,
        records: int | None = None,
    ) -> None:
        onward = "without it" if resumed < 0 else f"at offset {resumed}"
        self._refuse(
            f"{partition.topic}/{partition.partition} was read up to offset {wanted}, and {what} ({cause}):"
            f" set kafka.on_data_loss to continue, to go on {onward}"
        )
        self.times[cause] += 1
        if records is not None:
            self.records[cause] += records
        self._emit(PositionLost(partition.topic, partition.partition, wanted, resumed, cause))

    def _refuse(self, message: str) -> None:
        if self._on_data_loss == "fail":
            raise LogLost(message)


# How logs are recognised: hashes of records that were delivered, taken only when somebody asks.


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
    """Fingerprints of all partitions that are read.

    The fingerprint of a log that was found to be another one between two polls, or in one that is given up,
    changes together with its position: a commit in between would store the old position for the new log.
    """

    def __init__(self) -> None:
        self._newest: dict[Partition, Record] = {}
        self._taken: dict[Partition, Fingerprint] = {}
        self._polled: dict[Partition, Fingerprint] = {}  # as of the last poll, of those that are others since

    def replace(self, fingerprints: Mapping[Partition, Fingerprint]) -> None:
        """Continue from the fingerprints of a store."""
        self._newest.clear()
        self._polled.clear()
        self._taken = dict(fingerprints)

    def delivered(self, partition: Partition, record: Record) -> None:
        """Remember the last record that was evaluated.

        Records that were too large are skipped: with another limit, the same record would have another hash.
        """
        if record.fault == TOO_LARGE:
            return
        self._newest[partition] = record

    def polled(self) -> None:
        """Note that a poll reported the positions in all logs as they are known now."""
        self._polled.clear()

    def belong(self, partition: Partition, topic_id: str | None) -> Fingerprint:
        """Return the fingerprint of a partition so far; from now on it has this topic id."""
        fingerprint = self.of(partition)
        if topic_id is not None and fingerprint.topic_id != topic_id:
            self._taken[partition] = Fingerprint(topic_id, fingerprint.marks)
        return fingerprint

    def renew(self, partition: Partition, topic_id: str | None, marks: tuple[Mark, ...] = ()) -> None:
        """Keep only these marks of a log that is another one now, or that ends earlier."""
        self._polled.setdefault(partition, self.of(partition))
        self._taken[partition] = Fingerprint(topic_id, marks)

    def forget(self, partition: Partition) -> None:
        """Forget a partition that is not read any more."""
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
