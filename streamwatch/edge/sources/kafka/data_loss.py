"""Detects that a log was changed, judges how, and counts what was lost.

The topic's id from the broker, and the records that are now at the offsets of remembered ones, decide:

| topic id | last record delivered        | earlier ones       | the log was | reading continues at |
|----------|------------------------------|--------------------|-------------|--------------------|
| another  | any                          | any                | recreated   | its beginning      |
| the same | the same                     | any                | unchanged   | the position       |
| the same | another                      | any                | truncated   | the position       |
| the same | offsets do not reach it      | any                | truncated   | its end            |
| unknown  | the same                     | any                | unchanged   | the position       |
| unknown  | another, or do not reach it  | one is the same    | truncated   | position, or end   |
| unknown  | another, or do not reach it  | else: one differs  | recreated   | its beginning      |
| unknown  | offsets do not reach it      | all gone, or none  | truncated   | its end            |
| any but another | gone (retention, compaction, aborted) | any  | unverifiable | the position      |
| any but another | the log begins after the position | any      | overtaken by retention | its first record |

Every record of a recreated log is new. After a truncation reading never goes back, so that no record counts
twice; records written between the truncation and the position, before it was detected, are not read. The
number of lost records is counted only where it is known: for `retention`, and for the unreadable batches of
`corrupt_batch` and `oversized_batch`. It is a number of offsets, whether or not compaction removed some.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import xxhash

from streamwatch.core.ports import Record
from streamwatch.core.records.events import Fingerprint, Mark, Partition
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
"""State of the log at the offset of a delivered record; `hidden`: it cannot be read for now."""

Verdict: TypeAlias = Literal["intact", "unverified", "truncation", "recreated"]

Kinship: TypeAlias = Literal["same", "other", "unknown"]
"""Relation of the earlier and the present topic id."""


class ReadingEnded(Exception):  # noqa: N818 - it names what is the case
    """Reading cannot continue, and no retry helps; the message says what to change."""


class LogLost(ReadingEnded):
    """The log was replaced, or lacks the next record, and `on_data_loss` is `fail`."""


def judge(topic: Kinship, found: Sequence[Found]) -> Verdict:
    """Judge what happened to a log, by the table above; `found` begins with the newest mark."""
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
    """Counts of data loss as of a poll."""

    times: Mapping[str, int] = field(default_factory=dict[str, int])
    records: Mapping[str, int] = field(default_factory=dict[str, int])
    unverified_positions: int = 0


class DataLossTracker:
    """Counts data loss, or raises `LogLost` with `on_data_loss: fail`.

    Counts become visible (`release`) together with the new positions, at the next poll that succeeds. A
    commit in between would store them with the old position, and a start from there would count the loss
    twice.

    Parameters
    ----------
    on_data_loss
        The setting `kafka.on_data_loss`.
    emit
        Receives internal events.
    """

    def __init__(
        self, on_data_loss: Literal["continue", "fail"], emit: Callable[[InternalEvent], None]
    ) -> None:
        self._on_data_loss = on_data_loss
        self._emit = emit
        self.times: Counter[str] = Counter()
        """Number of findings, by cause."""
        self.records: Counter[str] = Counter()
        """Number of skipped offsets, by cause, where it is known."""
        self.unverified_positions = 0
        """Number of logs whose identifying record was gone."""
        self.released = DataLossSnapshot()
        """Counts as of the last `release`."""
        self._at_least: dict[str, int] = {}  # findings about the group, which is read only once

    def release(self) -> None:
        """Make the counts visible, as a poll now reports the positions after all findings."""
        self.released = DataLossSnapshot(dict(self.times), dict(self.records), self.unverified_positions)

    def count_from(self, durable: DataLossSnapshot) -> None:
        """Continue from the counts in a commit; findings after it will be made again from its positions."""
        self.times = Counter(durable.times) | Counter(self._at_least)
        self.records, self.unverified_positions = Counter(durable.records), durable.unverified_positions
        self.release()

    def overtaken(self, partition: Partition, wanted: int, first: int) -> None:
        """Count records that retention removed before they were read."""
        self._lost("retention", partition, wanted, first, f"its log now begins at {first}", first - wanted)

    def truncated(self, partition: Partition, wanted: int, resumed: int) -> None:
        """Count a truncation: records that were read are gone, and others may have their offsets now."""
        now = f"its log now ends at {resumed}" if resumed < wanted else "other records now stand before that"
        self._lost("truncation", partition, wanted, resumed, now)

    def recreated(self, partition: Partition, wanted: int, first: int) -> None:
        """Count a partition whose topic was deleted and created again."""
        self._lost("recreated", partition, wanted, first, "its topic has been deleted and created again")

    def unreadable(self, partition: Partition, damage: Damage) -> None:
        """Count a batch that cannot be read."""
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
        """Count a partition that no longer exists: its topic was created again with fewer."""
        self._lost("partition_vanished", partition, wanted, -1, "it is no longer there")

    def foreign(self, cause: str, what: str, remedy: str) -> None:
        """Count a consumer group that another state used last.

        It changes no position, so the count becomes visible at once.
        """
        self._refuse(
            f"{what} ({cause}): {remedy}, or set kafka.on_data_loss to continue, to go on with this one"
        )
        self.times[cause] += 1
        self._at_least[cause] = self.times[cause]
        self.released = replace(self.released, times={**self.released.times, cause: self.times[cause]})
        self._emit(StateMismatchDetected(cause, what))

    def unverified(self, partition: Partition, offset: int) -> None:
        """Count a log whose identifying record is gone, without a sign that the log was replaced."""
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


# Fingerprints identify logs by hashes of delivered records, computed on demand.


MARKS = 8
GROWTH = 16
"""Largest ratio of the distances from the newest mark of two marks with others removed between them."""

_HEAD = struct.Struct("<qqq")


def mark_of(record: Record) -> Mark:
    """Return offset, and 64-bit XXH3 of timestamp, key and value; absent and empty ones differ."""
    key, value = record.key, record.value
    lengths = (-1 if key is None else len(key), -1 if value is None else len(value))
    return Mark(
        record.offset,
        xxhash.xxh3_64_intdigest(_HEAD.pack(record.timestamp, *lengths) + (key or b"") + (value or b"")),
    )


def with_newest(newest: Mark, marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Prepend a mark, and thin the others out, so that at most `MARKS` reach far back."""
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

    If a log is found to be replaced, `all` returns its old fingerprint until the next poll reports the new
    position: a commit in between would otherwise store the old position for the new log.
    """

    def __init__(self) -> None:
        self._newest: dict[Partition, Record] = {}
        self._taken: dict[Partition, Fingerprint] = {}
        self._polled: dict[Partition, Fingerprint] = {}  # as of the last poll, where changed since

    def replace(self, fingerprints: Mapping[Partition, Fingerprint]) -> None:
        """Continue from the fingerprints of a store."""
        self._newest.clear()
        self._polled.clear()
        self._taken = dict(fingerprints)

    def delivered(self, partition: Partition, record: Record) -> None:
        """Remember the last evaluated record of a partition.

        Records over the size limit are skipped: with another limit, they would have another hash.
        """
        if record.fault == TOO_LARGE:
            return
        self._newest[partition] = record

    def polled(self) -> None:
        """Note that a poll has reported all positions, including those in replaced logs."""
        self._polled.clear()

    def set_topic_id(self, partition: Partition, topic_id: str | None) -> Fingerprint:
        """Return the fingerprint of a partition, and set its topic id for later calls."""
        fingerprint = self.of(partition)
        if topic_id is not None and fingerprint.topic_id != topic_id:
            self._taken[partition] = Fingerprint(topic_id, fingerprint.marks)
        return fingerprint

    def renew(self, partition: Partition, topic_id: str | None, marks: tuple[Mark, ...] = ()) -> None:
        """Replace topic id and marks of a log that was replaced or truncated."""
        self._polled.setdefault(partition, self.of(partition))
        self._taken[partition] = Fingerprint(topic_id, marks)

    def forget(self, partition: Partition) -> None:
        """Forget a partition that is no longer read."""
        self._polled.setdefault(partition, self.of(partition))
        self._taken.pop(partition, None)

    def of(self, partition: Partition) -> Fingerprint:
        """Return the fingerprint of one partition."""
        fingerprint = self._taken.get(partition) or Fingerprint()
        if (record := self._newest.pop(partition, None)) is not None:
            fingerprint = Fingerprint(fingerprint.topic_id, with_newest(mark_of(record), fingerprint.marks))
            self._taken[partition] = fingerprint
        return fingerprint

    def all(self) -> Mapping[Partition, Fingerprint]:
        """Return the fingerprints of all partitions as of the last poll; hashes one record of each."""
        for partition in list(self._newest):
            self.of(partition)
        return self._taken | self._polled
