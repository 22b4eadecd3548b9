"""Produce requests: one batch for one partition, and the code by which its leader answers.

aiokafka's own producer sends on what it was given until a time-out, says one error for all records of a batch
that it has chosen, and asserts what users may write: it cannot tell which record a broker refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from streamwatch.edge.sources.kafka.connection.client import Client
from streamwatch.edge.sources.kafka.connection.tls import ssl_context
from streamwatch.edge.sources.kafka.fetch.wire import list_topics
from streamwatch.edge.sources.kafka.spec import KafkaSpec

Content = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]
"""Key, value and headers of a record."""
_ALL_REPLICAS: Final = -1
_NO_LIMIT: Final = 1 << 30
"""Larger than anything a broker takes: it is the broker that refuses."""
_NO_PRODUCER: Final = -1
_MAGIC: Final = 2


class Producer(Protocol):
    """One connection over which batches are written; opened once, closed once."""

    async def leaders(self, topic: str) -> Mapping[int, int]:
        """Node that leads each partition of a topic, -1 for none; empty where there is no such topic."""
        ...

    async def send(self, leader: int, topic: str, partition: int, batch: bytes) -> int:
        """Write a batch to all replicas; the code of the protocol that the leader answers, 0 for success."""
        ...

    async def close(self) -> None:
        """Leave in bounded time, whatever state the brokers are in."""
        ...


class KafkaProducer:
    """Implements `Producer` by aiokafka's client.

    Parameters
    ----------
    spec
        Where the brokers are and how to be let in.
    """

    def __init__(self, spec: KafkaSpec) -> None:
        self._spec = spec
        self._open = False
        self._client: Any = AIOKafkaClient(
            bootstrap_servers=spec.bootstrap_servers,
            client_id=spec.client_id,
            request_timeout_ms=spec.request_timeout_ms,
            security_protocol=spec.security_protocol,
            ssl_context=ssl_context(spec),
            sasl_mechanism=spec.sasl_mechanism,
            sasl_plain_username=spec.username,
            sasl_plain_password=spec.password,
        )
        self._usage = Client(self._client)

    async def leaders(self, topic: str) -> Mapping[int, int]:
        """Node that leads each partition of a topic, -1 for none; empty where there is no such topic.

        Raises
        ------
        KafkaError
            No broker answers.
        """
        if not self._open:
            await self._usage.start(self._client.bootstrap())
            self._open = True
        listed = (await list_topics(self._client)).get(topic)  # asking by name would create it
        return {} if listed is None else listed.leaders

    async def send(self, leader: int, topic: str, partition: int, batch: bytes) -> int:
        """Write a batch to all replicas; the code of the protocol that the leader answers, 0 for success.

        Raises
        ------
        KafkaError
            The leader cannot be reached, does not answer in time or closes the connection.
        """
        return await produce(self._client, leader, topic, partition, batch, self._spec.request_timeout_ms)

    async def close(self) -> None:
        """Leave in bounded time, whatever state the brokers are in."""
        await self._usage.close(self._spec.stop_timeout_ms / 1_000)


async def produce(client: Any, leader: int, topic: str, partition: int, batch: bytes, timeout_ms: int) -> int:
    """Send one batch, which may be empty, through a client of aiokafka; the code of the answer."""
    request = ProduceRequest(None, _ALL_REPLICAS, timeout_ms, [(topic, [(partition, batch)])])
    answer: Any = await client.send(leader, request)
    [(_, [(_, code, *_)])] = answer.topics
    return code


def batch_of(contents: Sequence[Content]) -> bytes:
    """Write records as one batch of format v2, with the time of now.

    A record may have neither key nor value.
    """
    builder = DefaultRecordBatchBuilder(_MAGIC, 0, 0, _NO_PRODUCER, _NO_PRODUCER, _NO_PRODUCER, _NO_LIMIT)
    for number, (key, value, headers) in enumerate(contents):
        builder.append(number, None, key, value, list(headers))
    return bytes(builder.build())
