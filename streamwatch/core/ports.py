"""The protocols the edge implements. The core is handed these shapes; it never imports an implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streamwatch.core.commit.batch import CommitBatch, RecoveredState
from streamwatch.core.events import Decoded, Fingerprint, Partition
from streamwatch.core.join.entry import JoinEntry
from streamwatch.core.pipeline import BatchResult, ReadSet, WorkingSet
from streamwatch.core.records import RecordBatch
from streamwatch.core.series import Family, Report


class Record(Protocol):
    """A record as the Kafka client delivers it (structural)."""

    @property
    def topic(self) -> str:
        """Name of the topic."""
        ...

    @property
    def partition(self) -> int:
        """Partition number."""
        ...

    @property
    def offset(self) -> int:
        """Place in the partition."""
        ...

    @property
    def timestamp(self) -> int:
        """Record time as the broker or the producer set it, in ms; not judged."""
        ...

    @property
    def timestamp_type(self) -> int:
        """1 where the broker set the timestamp (LogAppendTime), else 0."""
        ...

    @property
    def key(self) -> bytes | None:
        """Raw key."""
        ...

    @property
    def value(self) -> bytes | None:
        """Raw value; None is a null record."""
        ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        """Headers in order; a name may repeat."""
        ...

    @property
    def fault(self) -> str | None:
        """Reason why the content cannot be read, as of an invalid record; None for an ordinary one."""
        ...


class Decoder(Protocol):
    """Turns the records of one topic into events; never raises on bad input."""

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """For each record, with its timestamp: the event that it holds, or `Several`."""
        ...

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """The same for records and their own timestamps, as columns."""
        ...


@dataclass(frozen=True, slots=True)
class PartitionState:
    """State of one partition as of a poll."""

    position: int
    """Offset of the next record to be delivered (after control records)."""
    high_watermark: int
    """As of the last fetch; -1 before the first."""
    caught_up: bool
    at_end_ms: int | None = None
    """When the latest fetch was sent that found no record behind `position`, in milliseconds of a clock that
    never goes back; None if the partition is not known to be at its end."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Records of one poll by partition in offset order, and the state of every partition."""

    records: Mapping[Partition, Sequence[Record]] = field(default_factory=dict)
    partitions: Mapping[Partition, PartitionState] = field(default_factory=dict)
    moved: frozenset[Partition] = frozenset()
    """Partitions whose log was found changed since the last poll: the records do not follow those before."""


class Source(Protocol):
    """All partitions of the configured topics, read from given positions."""

    @property
    def up(self) -> bool:
        """Tell whether the other side answers."""
        ...

    @property
    def assigned(self) -> bool:
        """Tell whether every partition of the configured topics has a position."""
        ...

    @property
    def losses(self) -> Mapping[str, int]:
        """Times the log was found changed under the reader, by cause, as of the last poll."""
        ...

    @property
    def records_lost(self) -> Mapping[str, int]:
        """Records known to be lost thereby, by cause, as of the last poll."""
        ...

    @property
    def position_unverified(self) -> int:
        """Times the log could not be recognised, as of the last poll."""
        ...

    async def start(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint]
    ) -> None:
        """Verify topics, assign every partition and seek (positions of a store win over `start_from`).

        Fingerprints tell whether the logs are still those that the positions are of.
        """
        ...

    async def rewind(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint]
    ) -> None:
        """Go back to where state is durable."""
        ...

    def fingerprints(self) -> Mapping[Partition, Fingerprint]:
        """Fingerprints of the logs by what was evaluated of them."""
        ...

    def evaluated(self, newest: Mapping[Partition, Record]) -> None:
        """Recognise the logs by these records from now on, the last that were evaluated of each."""
        ...

    def count_from(
        self, losses: Mapping[str, int], records_lost: Mapping[str, int], unverified_positions: int
    ) -> None:
        """Go on counting from what is durable: what was found since will be found again."""
        ...

    def durable(self, positions: Mapping[Partition, int]) -> None:
        """Note that what was read up to here is durable: lag tools may know."""
        ...

    def tell(self) -> None:
        """Let what the last poll found of the logs be committed: what came before it is evaluated."""
        ...

    async def poll(self) -> Poll:
        """Deliver the next records, waiting a bounded time for them; reconnects without losing its place."""
        ...

    def pause(self, partitions: frozenset[Partition]) -> None:
        """Hold exactly these partitions back; resume all others."""
        ...

    async def stop(self) -> None:
        """Leave within a bounded time, whatever state the broker is in."""
        ...


class Store(Protocol):
    """Store of state between batches: `fetch` → core → `apply`, in turn; now and then `commit`. One task.

    What was kept since the last commit is in memory only. `commit` writes it with everything else in one
    atomic step; `flush`, which may run in a thread meanwhile, makes what was committed before it began
    survive a power cut. After an error of either nothing is known of what was written: close, and open anew.
    """

    @property
    def durable(self) -> bool:
        """Tell whether anything survives the process."""
        ...

    @property
    def identity(self) -> str:
        """Names this state apart from all others, since it began."""
        ...

    def load(self) -> RecoveredState:
        """Contents of the last commit beside the join entries."""
        ...

    def fetch(self, read_set: ReadSet) -> WorkingSet:
        """Lend the chains of the ids in `read_set`, and what is due."""
        ...

    def apply(self, result: BatchResult) -> None:
        """Take in what a batch changed."""
        ...

    def commit(self, changes: CommitBatch) -> None:
        """Write what was kept since the last commit together with `changes`, or neither."""
        ...

    def flush(self) -> None:
        """Make every commit made before this call survive a power cut."""
        ...

    def records(self) -> Mapping[str, JoinEntry]:
        """First entry of each id's chain (for inspection and tests)."""
        ...

    def families(self) -> Sequence[Family]:
        """Size and cost of the store, as metrics."""
        ...

    def close(self) -> None:
        """Leave; what was not committed is forgotten."""
        ...


class DeadLetters(Protocol):
    """Place for invalid records as they were."""

    @property
    def is_full(self) -> bool:
        """Tell whether so much waits that it has to be flushed before more is put."""
        ...

    def put(self, record: Record, reason: str) -> None:
        """Have a record written by the next `flush`."""
        ...

    async def flush(self) -> None:
        """Write what waits, or count it as dropped; in bounded time."""
        ...

    async def stop(self) -> None:
        """Leave within a bounded time; what waits was not committed."""
        ...

    def families(self) -> Sequence[Family]:
        """Letters written and dropped, as metrics."""
        ...


class Sink(Protocol):
    """Something that shows a report."""

    def publish(self, report: Report) -> None:
        """Show `report` instead of the one before."""
        ...
