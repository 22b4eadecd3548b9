"""Records, and what decodes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from streamwatch.core.events import Decoded, Partition
from streamwatch.core.records import RecordBatch
from streamwatch.core.series import Family


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
        """Raw key."""
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


NeededSchemas: TypeAlias = Mapping[Partition, Collection[Any]]
"""By partition, names of schemas that nobody but the decoders understands."""


class Schemas(Protocol):
    """Schemas by which records were written, loaded before the records are decoded."""

    @property
    def problem(self) -> str | None:
        """Reason why schemas cannot be had just now; None while they can."""
        ...

    @property
    def waiting(self) -> str | None:
        """Words for what records wait for; None while nothing does, or not for long."""
        ...

    async def needed(self, records: Mapping[Partition, Sequence[Record]]) -> NeededSchemas:
        """Name the schemas of these records, by partition; partitions that need none are left out."""
        ...

    async def missing(self, needed: NeededSchemas, *, wait: bool = True) -> Collection[Partition]:
        """Load schemas; name the partitions of which some are not there, after a short wait if any."""
        ...

    def families(self) -> Sequence[Family]:
        """Metrics of the schemas."""
        ...

    async def close(self) -> None:
        """Cancel what is being fetched, and close connections."""
        ...
