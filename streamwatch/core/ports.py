"""The protocols the edge implements. The core is handed these shapes; it never imports an implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streamwatch.core.events import Event, Partition
from streamwatch.core.join import Known
from streamwatch.core.pipeline import Found, Needs, Step
from streamwatch.core.series import Report


class Record(Protocol):
    """A record as the Kafka client delivers it (structural: aiokafka's ConsumerRecord fits)."""

    @property
    def topic(self) -> str:
        """Where it was read."""
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
        """Record time as the broker or the producer set it, in ms; not clamped."""
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
    def headers(self) -> Sequence[tuple[str, bytes]]:
        """Headers in order; a name may repeat."""
        ...


class Decoder(Protocol):
    """Turns the records of one topic into events; never raises on bad input."""

    def decode_all(self, records: Sequence[Record], stamps: Sequence[int]) -> Sequence[Event]:
        """For each record, with its clamped time: `Prediction`, `Label`, `NullRecord`, or `Invalid`."""
        ...


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What one poll learned of one partition."""

    position: int
    """Offset of the next record to be delivered (after control records)."""
    high_watermark: int
    """As of the last fetch; -1 before the first."""
    caught_up: bool


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll delivered: records by partition in offset order, and the state of every partition."""

    records: Mapping[Partition, Sequence[Record]] = field(default_factory=dict)
    partitions: Mapping[Partition, PartitionState] = field(default_factory=dict)


class Source(Protocol):
    """All partitions of the configured topics, read from given positions."""

    async def start(self, positions: Mapping[Partition, int]) -> None:
        """Verify topics, assign every partition and seek (positions of a store win over `start_from`)."""
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
    """Where state lives between batches. `fetch` → core → `commit`, in turn, from one task."""

    def fetch(self, needs: Needs) -> Found:
        """What is known of the ids in `needs`, and which ids are due."""
        ...

    def commit(self, step: Step, positions: Mapping[Partition, int]) -> None:
        """Keep what the step changed together with the positions it was read up to, or neither."""
        ...

    def records(self) -> Mapping[str, Known]:
        """Everything known by id (for inspection and tests)."""
        ...


class Sink(Protocol):
    """Something that shows a report."""

    def publish(self, report: Report) -> None:
        """Show `report` instead of the one before."""
        ...
