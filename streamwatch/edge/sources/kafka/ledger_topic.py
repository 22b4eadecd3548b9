"""Reader of the ledger topic: the latest committed record of a deployment, and its decisions.

A reader of committed records stops before the oldest open transaction, also of another deployment. The end of
the topic is therefore read by a second client, with uncommitted reads, and the first one reads up to it:
otherwise it would miss records that this deployment committed after the beginning of an open transaction.
"""

from __future__ import annotations

from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition

from streamwatch.core.publishing.decisions import Decisions, DecisionsError, from_parts, parts_digest
from streamwatch.core.publishing.publications import Ledger, PublicationError
from streamwatch.edge.sources.kafka.client import attempted, connection_options
from streamwatch.edge.sources.kafka.spec import KafkaSpec

_POLL_MS: Final = 50


def part_key(name: str, number: int) -> bytes:
    """Return the key of the record with one part of a deployment's decisions."""
    return f"{name}/decisions/{number}".encode()


class LedgerTail:
    """Follower of one deployment's records; begins at the topic's beginning, also after `close`.

    Parameters
    ----------
    kafka
        Addresses of the brokers, and credentials.
    topic
        Name of the ledger topic.
    name
        Deployment whose records are read.
    """

    def __init__(self, kafka: KafkaSpec, topic: str, name: str) -> None:
        self._kafka = kafka
        self._partition = TopicPartition(topic, 0)
        self._name = name
        self._key = name.encode()
        self._consumer: Any = None
        self._ends: Any = None
        self._forget()

    def _forget(self) -> None:
        self._ledger: Ledger | None = None
        self._parts: dict[bytes, bytes] = {}
        self._coming: dict[bytes, bytes] = {}
        """Parts read of a transaction whose ledger record, its last, is not yet read."""

    async def client(self) -> Any:
        """Start the consumers if need be, and return the client, which has the cluster's metadata."""
        if self._consumer is None:
            self._forget()
            self._consumer = self._made("read_committed")
            self._ends = self._made("read_uncommitted")
            await self._consumer.start()
            await self._ends.start()
        return self._consumer._client  # noqa: SLF001 - consumers do not expose it, as producers do

    async def read(self) -> Ledger | None:
        """Read to the present end of the topic; return the latest record, or None without one.

        Raises
        ------
        PublicationError
            If a record is not of this version.
        KafkaError
            If brokers cannot be reached, or refuse.
        """
        await self._at_work()
        end = (await self._ends.end_offsets([self._partition]))[self._partition]
        while await self._consumer.position(self._partition) < end:
            await self._take(_POLL_MS)
        return self._ledger

    async def follow(self, seconds: float) -> Ledger | None:
        """Wait up to `seconds` for new records; return the latest record, or None without one.

        Raises
        ------
        PublicationError, KafkaError
            As from `read`.
        """
        await self._at_work()
        await self._take(int(1_000 * seconds))
        return self._ledger

    def decisions(self) -> Decisions | None:
        """Return the decisions written with the latest record; None without any.

        Raises
        ------
        PublicationError
            If they are incomplete, or not of this version.
        """
        if self._ledger is None or not self._ledger.decisions:
            return None
        keys = [part_key(self._name, number) for number in range(self._ledger.decisions)]
        parts = [self._parts.get(key, b"") for key in keys]
        if parts_digest(parts) != self._ledger.decisions_digest:
            raise PublicationError("decisions beside the latest record are not those it was written with")
        try:
            return from_parts(parts)
        except DecisionsError as error:
            raise PublicationError(str(error)) from error

    async def close(self) -> None:
        """Close in bounded time; the next read begins at the beginning."""
        consumers = (self._consumer, self._ends)
        self._consumer = self._ends = None
        for consumer in consumers:
            if consumer is not None:
                await attempted(consumer.stop(), self._kafka.stop_timeout_ms / 1_000)

    def _made(self, isolation: str) -> Any:
        return AIOKafkaConsumer(
            **connection_options(self._kafka),
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )

    async def _at_work(self) -> None:
        await self.client()
        if not self._consumer.assignment():
            self._consumer.assign([self._partition])
            await self._consumer.seek_to_beginning(self._partition)

    async def _take(self, milliseconds: int) -> None:
        for records in (await self._consumer.getmany(self._partition, timeout_ms=milliseconds)).values():
            for record in records:
                if record.value is None:
                    continue
                if record.key == self._key:
                    self._ledger = Ledger.decode(record.value)
                    self._parts |= self._coming
                    self._coming = {}
                elif record.key is not None and record.key.startswith(self._key + b"/decisions/"):
                    self._coming[record.key] = record.value
