"""Protocols between the core and the outside: records, decoders, schemas, sources, stores, sinks.

The core is handed objects of these shapes and never imports an implementation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from streamwatch.core.join.cold.store import ColdChanges, RunStore
from streamwatch.core.metrics.series import Family, Report
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import Decoded, Fingerprint, Partition

# Records, and their decoders.


class Record(Protocol):
    """Record as the Kafka client delivers it."""

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
        """Offset in the partition."""
        ...

    @property
    def timestamp(self) -> int:
        """Timestamp as the broker or the producer set it, in ms since the epoch.

        May be wrong (`merge.timestamps`).
        """
        ...

    @property
    def timestamp_type(self) -> int:
        """1 where the broker set the timestamp (LogAppendTime), else 0."""
        ...

    @property
    def key(self) -> bytes | None:
        """Raw key; None without one."""
        ...

    @property
    def value(self) -> bytes | None:
        """Raw value; None for a null record."""
        ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        """Headers in order; a name may repeat."""
        ...

    @property
    def fault(self) -> str | None:
        """Reason why the client could not read the content; None for an ordinary record.

        It is counted as the reason of an invalid record.
        """
        ...


class Decoder(Protocol):
    """Turns the records of one topic into events; never raises on bad input."""

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Decoded]:
        """Decode records, each with its timestamp in `stamps`, to an event or (several) an `EventGroup`."""
        ...

    def decode_batch(self, records: Sequence[Record]) -> RecordBatch:
        """Decode records into columns, each with the timestamp of its record."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A decoder that explains why a single record is invalid."""

    def explain(self, record: Record, reason: str) -> str:
        """Return the path that was read and the names of the fields found there; or an empty text."""
        ...


NeededSchemas: TypeAlias = Mapping[Partition, Collection[Any]]
"""Names of schemas by partition, in a form that only the decoders know."""


class Schemas(Protocol):
    """Schemas by which records were written, loaded before the records are decoded."""

    @property
    def problem(self) -> str | None:
        """Reason why schemas cannot be loaded at the moment; None while they can."""
        ...

    @property
    def waiting(self) -> str | None:
        """Description of the schemas that records wait for; None while none waits, or not for long."""
        ...

    async def needed(self, records: Mapping[Partition, Sequence[Record]]) -> NeededSchemas:
        """Name the schemas of these records, by partition; partitions that need none are left out."""
        ...

    async def missing(self, needed: NeededSchemas, *, wait: bool = True) -> Collection[Partition]:
        """Load schemas; name the partitions of which some are missing, after a short wait if `wait`."""
        ...

    def families(self) -> Sequence[Family]:
        """Metrics of the schemas."""
        ...

    async def close(self) -> None:
        """Cancel fetches, and close connections."""
        ...


# Destinations of invalid records and of reports.


class DeadLetters(Protocol):
    """Destination of invalid records, which are written as they were read."""

    @property
    def is_full(self) -> bool:
        """Return whether `flush` has to be called before the next `put`."""
        ...

    @property
    def problem(self) -> str | None:
        """Reason, in words, why queued records cannot be written at the moment; None while they can."""
        ...

    def put(self, record: Record, reason: str) -> None:
        """Queue a record, with the reason why it is invalid, for the next `flush`."""
        ...

    async def flush(self) -> None:
        """Write the queued records within a bounded time; count as dropped those that cannot be written."""
        ...

    async def stop(self) -> None:
        """Close within a bounded time; records still queued are discarded, as no commit has passed them."""
        ...

    def families(self) -> Sequence[Family]:
        """Metrics of records written and dropped."""
        ...


class Sink(Protocol):
    """Display of reports."""

    def publish(self, report: Report) -> None:
        """Show `report` instead of the one before."""
        ...


# Sources of records, and their polls.


@dataclass(frozen=True, slots=True)
class PartitionState:
    """State of one partition as of a poll."""

    position: int
    """Offset of the next record to be delivered (after control records)."""
    high_watermark: int
    """End of the log as of the last fetch; -1 before the first."""
    caught_up: bool
    """Whether the partition had been read to that end."""
    at_end_ms: int | None = None
    """Time at which the latest fetch that found no record from `position` on was sent, in milliseconds of a
    monotonic clock; None if the partition is not known to be at its end."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Records of one poll by partition in offset order, and the state of every partition."""

    records: Mapping[Partition, Sequence[Record]] = field(default_factory=dict)
    partitions: Mapping[Partition, PartitionState] = field(default_factory=dict)
    moved: frozenset[Partition] = frozenset()
    """Partitions whose log was found replaced or cut since the last poll.

    Their records do not follow those delivered before.
    """
    left_behind: frozenset[Partition] = frozenset()
    """Partitions that are not to be waited for until they deliver again, although they have records."""


class DataLossCounters(Protocol):
    """Counters of data loss in the logs of a source, by cause."""

    @property
    def losses(self) -> Mapping[str, int]:
        """Number of findings by cause: logs replaced or cut, unreadable batches, states exchanged."""
        ...

    @property
    def records_lost(self) -> Mapping[str, int]:
        """Number of offsets that were skipped, by cause, where it is known."""
        ...

    @property
    def position_unverified(self) -> int:
        """Number of times a fingerprint could not be compared with the log."""
        ...


class Source(DataLossCounters, Protocol):
    """Reader of all partitions of the configured topics, from given positions; counts as of the last poll."""

    @property
    def name(self) -> str:
        """Name of the system that is read, for messages."""
        ...

    @property
    def up(self) -> bool:
        """Return whether the brokers answer."""
        ...

    @property
    def assigned(self) -> bool:
        """Return whether every partition of the configured topics has a position."""
        ...

    async def start(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint]
    ) -> None:
        """Verify the topics, assign every partition and seek to `positions`, or else to `start_from`.

        `fingerprints` are compared with the logs, to find out whether they are still those that were read.
        """
        ...

    async def rewind(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint]
    ) -> None:
        """Seek back to the positions of the last durable commit; fingerprints as for `start`."""
        ...

    def fingerprints(self) -> Mapping[Partition, Fingerprint]:
        """Fingerprint of each partition's log, from the records evaluated so far."""
        ...

    def evaluated(self, newest: Mapping[Partition, Record]) -> None:
        """Add the last record evaluated of each partition to the partition's fingerprint."""
        ...

    def count_from(
        self, losses: Mapping[str, int], records_lost: Mapping[str, int], unverified_positions: int
    ) -> None:
        """Set the counters to their values in the last durable commit; later findings will be found again."""
        ...

    def durable(self, positions: Mapping[Partition, int]) -> None:
        """Note that state up to these positions is durable; they may be committed to Kafka for lag tools."""
        ...

    def release_findings(self) -> None:
        """Add the data loss found in the last poll to the counters.

        To be called once every record delivered before them is evaluated.
        """
        ...

    async def poll(self) -> Poll:
        """Wait a bounded time for the next records; reconnect at the same positions if necessary."""
        ...

    def pause(self, partitions: frozenset[Partition]) -> None:
        """Pause exactly these partitions, and resume all others."""
        ...

    def families(self, counts: DataLossCounters | None) -> Sequence[Family]:
        """Series of the connection to the brokers, and of the counts given; None before any are known."""
        ...

    async def stop(self) -> None:
        """Close connections within a bounded time, whether or not brokers answer."""
        ...


# Contents of a commit, and the state that a store loads at a start.


@dataclass(frozen=True, slots=True)
class CommitBatch:
    """Contents of one commit, written atomically."""

    sections: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """New sections by name; each replaces the one before."""
    models: Mapping[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    """New `ModelCheckpoint` by model, encoded; None removes it."""
    journal: bytes = b""
    """Outcomes since the last commit, encoded, to be stored under this commit's number; empty without any."""
    journal_floor: int = 0
    """Number below which entries of the journal are no longer needed."""
    outbox: Mapping[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    """Notifications to deliver, by id; None for one that was delivered or given up."""
    columns: Mapping[bytes, bytes | None] = field(default_factory=dict[bytes, "bytes | None"])
    """New values of the join by key; None removes one."""
    runs: ColdChanges | None = None
    """Changes of the join's entries outside the table; None for a join without an overflow."""
    publications: Mapping[int, bytes | None] = field(default_factory=dict[int, "bytes | None"])
    """Records to write to the outcomes and events topics, by commit number; None once they are written."""


@dataclass(frozen=True, slots=True)
class RecoveredState:
    """Contents of the last durable commit."""

    commits: int = 0
    """Number of the last commit, counted from 1 at the beginning of the state; 0 if there is no state yet."""
    sections: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    models: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    journal: Sequence[tuple[int, bytes]] = ()
    """Entries by commit number, ascending."""
    outbox: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    columns: Iterable[tuple[bytes, bytes]] = ()
    """Values of the join, in the order of keys; they are read while iterated, and only once."""
    runs: RunStore | None = None
    """Store of the join's entries outside the table; None for a join without an overflow."""
    publications: Mapping[int, bytes] = field(default_factory=dict[int, bytes])
    """Records that may not be written to the outcomes and events topics yet, by commit number, ascending."""


# Store of the state.


class Store(Protocol):
    """Store of the state, which changes by commits alone.

    `commit` writes a `CommitBatch` atomically. `flush`, which may run in a thread beside the task that
    commits, makes earlier commits survive a power cut. If either raises, it is unknown whether the commit was
    written: close the store and open it again.
    """

    @property
    def durable(self) -> bool:
        """Return whether commits survive the process."""
        ...

    @property
    def identity(self) -> str:
        """Unique name of this state, chosen when it began."""
        ...

    def load(self) -> RecoveredState:
        """Contents of the last commit."""
        ...

    def commit(self, changes: CommitBatch) -> None:
        """Write `changes` atomically."""
        ...

    def flush(self) -> None:
        """Make every commit made before this call survive a power cut."""
        ...

    def copy_to(self, directory: Path) -> None:
        """Copy the last commit to a directory that does not exist yet, from which a store can be opened.

        It may run in a thread beside the task that commits; `close` has to wait for it.
        """
        ...

    def families(self) -> Sequence[Family]:
        """Metrics of the store's size and cost."""
        ...

    def close(self) -> None:
        """Close the store; what was not committed is lost."""
        ...
