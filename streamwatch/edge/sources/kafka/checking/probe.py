"""Can Kafka be reached with these settings, are the topics there, may they be read? `check` asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import aiokafka.errors as kafka_errors
from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.errors import (
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)
from aiokafka.protocol.fetch import FetchRequest

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.connection.client_log import ClientLogCapture
from streamwatch.edge.sources.kafka.connection.connection import Connection
from streamwatch.edge.sources.kafka.connection.topics import require_topics
from streamwatch.edge.sources.kafka.dead_letters import require_writable
from streamwatch.edge.sources.kafka.fetch.answer import CONNECTION_ERRORS
from streamwatch.edge.sources.kafka.fetch.wire import Listed, Listing
from streamwatch.edge.sources.kafka.grants import ReadDenied
from streamwatch.edge.sources.kafka.spec import KafkaSpec

_FETCH_BYTES = 1
"""A broker answers with one whole batch, however small the limit."""
_WAIT_MS = 500
_Answer = TypeVar("_Answer")


class KafkaUnreachable(Exception):  # noqa: N818 - it names what is the case
    """No broker answered, or none let the client in."""


@dataclass(frozen=True, slots=True)
class Probed:
    """Topic that may be read."""

    partitions: int
    has_records: bool
    """Whether one of its partitions gave a record; an empty topic may be read, too."""


async def list_topics(spec: KafkaSpec) -> Mapping[str, int]:
    """Every topic this user may see, with its number of partitions.

    Raises
    ------
    KafkaUnreachable
        With what the client complained of.
    """
    listing = await asked(spec, _listing)
    return {name: len(listed.partitions) for name, listed in sorted(listing.items())}


async def probe(spec: KafkaSpec, topics: Sequence[str]) -> Mapping[str, Probed]:
    """Read from each of these topics: one batch, whose content is not looked at.

    Raises
    ------
    KafkaUnreachable
        No broker answered, or none let the client in.
    TopicsMissing
        Some do not exist; the nearest existing names are told.
    ReadDenied
        Some may be seen and not read.
    """

    async def read(connection: Connection) -> Mapping[str, Probed]:
        listing = await connection.listing()
        require_topics(topics, listing, spec.bootstrap_servers)
        found: dict[str, Probed] = {}
        denied: list[str] = []
        for topic in topics:
            try:
                has_records = await _has_records(connection, topic, listing[topic])
            except TopicAuthorizationFailedError:
                denied.append(topic)
            else:
                found[topic] = Probed(len(listing[topic].partitions), has_records)
        if denied:
            raise ReadDenied(denied, spec)
        return found

    return await asked(spec, read)


async def probe_writing(spec: KafkaSpec, topic: str) -> None:
    """Ask whether a topic may be written, without writing to it.

    Raises
    ------
    KafkaUnreachable
        No broker answered, or none let the client in.
    TopicsMissing
        It does not exist.
    WriteDenied
        It may not be written.
    """
    await asked(spec, lambda connection: require_writable(connection, topic, spec))


async def _listing(connection: Connection) -> Listing:
    return await connection.listing()


async def asked(spec: KafkaSpec, ask: Callable[[Connection], Awaitable[_Answer]]) -> _Answer:
    """Open a connection for one question, and close it.

    Raises
    ------
    KafkaUnreachable
        With what the client complained of.
    """
    client_log = ClientLogCapture()
    client_log.attach()
    connection = Connection(spec)
    try:
        await connection.open()
        return await ask(connection)
    except CONNECTION_ERRORS as error:
        reason = client_log.last or str(error) or type(error).__name__
        raise KafkaUnreachable(f"Kafka at {spec.bootstrap_servers}: {reason}") from error
    finally:
        await connection.close(spec.stop_timeout_ms / 1_000)
        client_log.detach()


async def _has_records(connection: Connection, topic: str, listed: Listed) -> bool:
    """Whether a partition that has a leader gives a record; the first that does ends the search."""
    for number, leader in listed.leaders.items():
        if leader < 0:
            continue
        partition = Partition(topic, number)
        first, end = await connection.ends(partition)
        if await _fetched(connection, leader, partition, first) and end > first:
            return True
    return False


async def _fetched(connection: Connection, leader: int, partition: Partition, offset: int) -> bool:
    asked = [(partition.topic, [(partition.partition, offset, _FETCH_BYTES)])]
    request = FetchRequest(_WAIT_MS, 0, _FETCH_BYTES, READ_COMMITTED, asked)
    client: Any = connection._client  # noqa: SLF001 - one request beside the consumer's  # pyright: ignore[reportPrivateUsage]
    answer: Any = await client.send(leader, request)
    [(_, [(_, code, *rest)])] = answer.topics
    error: type[KafkaError] = kafka_errors.for_code(code)
    if code and error is not OffsetOutOfRangeError:
        raise error(partition)
    return not code and bool(rest[-1])
