"""Sources of records, and what a poll of one delivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streamwatch.core.events import Fingerprint, Partition
from streamwatch.core.ports.records import Record
from streamwatch.core.series import Family


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
    """Partitions not to be waited for although they have records, until they deliver again."""


class DataLossCounters(Protocol):
    """Counters of data loss in the logs of a source, by cause."""

    @property
    def losses(self) -> Mapping[str, int]:
        """Number of times a log was found replaced or cut, by cause."""
        ...

    @property
    def records_lost(self) -> Mapping[str, int]:
        """Number of records known to be lost in those cases, by cause."""
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
        """Tell whether the brokers answer."""
        ...

    @property
    def assigned(self) -> bool:
        """Tell whether every partition of the configured topics has a position."""
        ...

    async def start(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint]
    ) -> None:
        """Verify the topics, assign every partition and seek to `positions`, else as `start_from` says.

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
        """Take the last record evaluated of each partition into its fingerprint."""
        ...

    def count_from(
        self, losses: Mapping[str, int], records_lost: Mapping[str, int], unverified_positions: int
    ) -> None:
        """Set the counters to their values in the last durable commit; later findings will be found again."""
        ...

    def durable(self, positions: Mapping[Partition, int]) -> None:
        """Note that state up to these positions is durable; they may be committed to Kafka for lag tools."""
        ...

    def tell(self) -> None:
        """Release the findings of the last poll about the logs to the counters.

        To be called once every record delivered before them is evaluated.
        """
        ...

    async def poll(self) -> Poll:
        """Wait a bounded time for the next records; reconnects, if need be, at the same positions."""
        ...

    def pause(self, partitions: frozenset[Partition]) -> None:
        """Pause exactly these partitions, and resume all others."""
        ...

    def families(self, counts: DataLossCounters | None) -> Sequence[Family]:
        """Series of whether the brokers answer, and of these counts; None before any are known."""
        ...

    async def stop(self) -> None:
        """Close connections within a bounded time, whether or not brokers answer."""
        ...
