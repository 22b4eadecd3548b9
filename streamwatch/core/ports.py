"""The protocols the edge implements. The core is handed these shapes; it never imports an implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streamwatch.core.events import Event, Fingerprint, Partition
from streamwatch.core.join import Known
from streamwatch.core.pipeline import Found, Needs, Step
from streamwatch.core.saving import Changes, Saved
from streamwatch.core.series import Family, Report


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
        """How the logs are recognised at the positions of the last poll."""
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
    """Where state lives between batches: `fetch` → core → `keep`, in turn; now and then `commit`. One task.

    What was kept since the last commit is in memory only. `commit` writes it with everything else in one
    atomic step; `flush`, which may run in a thread meanwhile, makes what was committed before it began
    survive a power cut. After an error of either nothing is known of what was written: close, and open anew.
    """

    @property
    def durable(self) -> bool:
        """Whether anything survives the process."""
        ...

    @property
    def identity(self) -> str:
        """Names this state apart from all others, since it began."""
        ...

    def load(self) -> Saved:
        """What the last commit left, beside the records of ids."""
        ...

    def fetch(self, needs: Needs) -> Found:
        """What is known of the ids in `needs`, and which ids are due."""
        ...

    def keep(self, step: Step) -> None:
        """Take in what a batch changed."""
        ...

    def commit(self, changes: Changes) -> None:
        """Write what was kept since the last commit together with `changes`, or neither."""
        ...

    def flush(self) -> None:
        """Make every commit made before this call survive a power cut."""
        ...

    def records(self) -> Mapping[str, Known]:
        """Everything known by id (for inspection and tests)."""
        ...

    def families(self) -> Sequence[Family]:
        """How large it is and what it costs, as series."""
        ...

    def close(self) -> None:
        """Leave; what was not committed is forgotten."""
        ...


class Sink(Protocol):
    """Something that shows a report."""

    def publish(self, report: Report) -> None:
        """Show `report` instead of the one before."""
        ...
