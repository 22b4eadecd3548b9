"""Fetch requests, and what brokers answer for each partition, whatever version of the protocol they speak."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.errors import KafkaError
from aiokafka.protocol.fetch import FetchRequest

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.fetch.receiving import receive_directly

CONNECTION_ERRORS = (KafkaError, OSError, TimeoutError, AssertionError)
"""What the client raises when a connection has to be replaced (it asserts what brokers should not do)."""


class Answer(NamedTuple):
    """Answer of a broker for one partition."""

    partition: Partition
    error: int
    """Code of the protocol; 0 for none."""
    high_watermark: int
    stable: int
    """Last stable offset; -1 where the protocol has none."""
    aborted: Sequence[tuple[int, int]]
    """(producer id, first offset) of aborted transactions."""
    data: bytes | memoryview
    """Batches; as of `padded_copy` where there is much."""

    @property
    def readable(self) -> int:
        """Records before this offset may be read; an open transaction holds those after it back."""
        return self.high_watermark if self.stable < 0 else min(self.stable, self.high_watermark)


async def ask(
    client: Any,
    node: int,
    offsets: Iterable[tuple[Partition, int]],
    partition_bytes: int,
    *,
    wait_ms: int = 0,
    most_bytes: int = 52_428_800,
) -> list[Answer]:
    """Fetch from one node; brokers answer with one whole batch at least, however small the limit.

    Raises
    ------
    KafkaError
        The node cannot be reached, or does not answer in time.
    """
    topics: dict[str, list[tuple[int, int, int]]] = {}
    for (topic, partition), offset in offsets:
        topics.setdefault(topic, []).append((partition, offset, partition_bytes))
    request = FetchRequest(wait_ms, 1, most_bytes, READ_COMMITTED, list(topics.items()))
    if (connection := await client._get_conn(node)) is not None:  # noqa: SLF001
        receive_directly(connection)
    answer: Any = await client.send(node, request)
    return [
        _answer(Partition(topic, number), error, high, rest, answer.API_VERSION)
        for topic, partitions in answer.topics
        for number, error, high, *rest in partitions
    ]


def _answer(partition: Partition, error: int, high: int, rest: Sequence[Any], version: int) -> Answer:
    """Its layout differs: v4 brought the stable offset and aborted transactions, v11 a preferred replica."""
    stable, aborted = -1, None
    if version >= 4:
        stable, aborted = rest[0], rest[2 if version >= 11 else -2]
    return Answer(partition, error, high, -1 if stable is None else stable, aborted or (), rest[-1] or b"")


def worded(error: BaseException) -> str:
    """An error in one line; some have no text of their own, the client's begin with their name."""
    name, text = type(error).__name__, str(error)
    return text if text.startswith(name) else f"{name}: {text}" if text else name
