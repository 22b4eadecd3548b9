"""Two requests the client library does not offer: topics with their ids, and the one record at an offset.

Topic ids came with Kafka 2.8 (KIP-516, Metadata v10), which aiokafka's classes do not reach; they are
described here in its own terms. A broker that does not speak this version is asked the old way, without ids.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Literal, TypeAlias

import aiokafka.errors as kafka_errors
from aiokafka.errors import KafkaError, LeaderNotAvailableError, OffsetOutOfRangeError
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)
from aiokafka.structs import TopicPartition

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.batches.codecs import CodecMissing
from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from streamwatch.edge.sources.kafka.batches.scanner import Scanner
from streamwatch.edge.sources.kafka.fetch.answer import ask


@dataclass(frozen=True, slots=True)
class Listed:
    """One topic as a broker lists it."""

    leaders: Mapping[int, int] = field(default_factory=dict[int, int])
    """Node that leads each partition, in order of partitions; -1 for none."""
    topic_id: str | None = None
    """None where brokers do not give it."""

    @property
    def partitions(self) -> tuple[int, ...]:
        """Partition numbers, ascending."""
        return tuple(self.leaders)


Listing: TypeAlias = Mapping[str, Listed]
"""Every topic the user may see."""

Missing: TypeAlias = Literal["absent", "beyond", "hidden"]
"""Why no record was given: none at this offset (any more), offsets do not reach it, or not readable yet."""


class _TopicId(AbstractType[str | None]):
    @classmethod
    def encode(cls, value: str | None) -> bytes:
        return uuid.UUID(value or "0" * 32).bytes

    @classmethod
    def decode(cls, data: BytesIO) -> str | None:
        found = uuid.UUID(bytes=data.read(16))
        return str(found) if found.int else None


_NODES = CompactArray(Int32)


class _MetadataResponse(Response):
    API_KEY = 3  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride] - as the library's own
    API_VERSION = 10  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString()),
                ("port", Int32),
                ("rack", CompactString()),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString()),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", CompactString()),
                ("topic_id", _TopicId),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", _NODES),
                        ("isr", _NODES),
                        ("offline_replicas", _NODES),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class _MetadataRequest(RequestStruct):
    API_KEY = 3
    API_VERSION = 10
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _MetadataResponse
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _TopicId), ("name", CompactString()), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _AllTopics(Request[_MetadataRequest]):
    API_KEY = 3

    def build(self, request_struct_class: type[_MetadataRequest]) -> _MetadataRequest:
        return request_struct_class(None, False, False, False, {})


async def list_topics(client: Any) -> Listing:
    """Every topic, asked of any broker; none is asked for by name, which would create it."""
    connected = {node for (node, _), conn in client._conns.items() if conn.connected()}  # noqa: SLF001
    nodes: list[int] = [broker.nodeId for broker in client.cluster.brokers()]
    random.shuffle(nodes)
    for node in sorted(nodes, key=lambda node: node not in connected):  # one may be a black hole
        try:
            answer: Any = await client.send(node, _AllTopics())
        except NotImplementedError:  # an old broker
            break
        except KafkaError:
            continue
        return {
            name: Listed({n: leader for _, n, leader, *_ in sorted(partitions, key=_number)}, topic_id)
            for error, name, topic_id, _, partitions, *_ in answer.topics
            if not error
        }
    cluster: Any = await client.fetch_all_metadata()
    return {
        name: Listed(
            {
                n: cluster.leader_for_partition(TopicPartition(name, n)) or 0
                for n in sorted(cluster.partitions_for_topic(name) or ())
            }
        )
        for name in cluster.topics()
    }


def _number(partition: tuple[int, ...]) -> int:
    return partition[1]


async def record_at(
    client: Any, leader: int, partition: Partition, offset: int, max_batch_bytes: int
) -> KafkaRecord | Missing:
    """The readable record at exactly this offset; one batch is fetched for it."""
    if leader < 0:
        raise LeaderNotAvailableError(partition)
    answers = await ask(client, leader, [(partition, offset)], 1)
    if not answers:
        raise LeaderNotAvailableError(partition)
    answer = answers[0]
    if (error_type := kafka_errors.for_code(answer.error)) is OffsetOutOfRangeError:
        return "beyond"
    if answer.error:
        raise error_type(partition)
    scanner = Scanner(compiled_scan(), 64)
    reader = PartitionReader(
        partition, answer.data, offset, answer.high_watermark, answer.aborted, scanner, max_batch_bytes
    )
    try:
        while not (found := reader.take(1)) and reader.heavy:
            await asyncio.to_thread(reader.unpack)
    except CodecMissing:  # reading will come to it
        return "hidden"
    if found and found[0].offset == offset:
        return found.record(0)
    return "absent" if answer.readable > offset else "hidden"
