"""Requests and answers of Kafka's protocol that the client library lacks, and faster reading of answers."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import aiokafka.errors as kafka_errors
import numpy as np
from aiokafka.conn import CloseReason
from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.errors import KafkaError, LeaderNotAvailableError, OffsetOutOfRangeError
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.fetch import FetchRequest
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

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.batches.opened import CodecMissing, Scanner
from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan, padded_copy

# Answers are read to one reused buffer instead of the client's stream.
#
# The stream copies an answer four times, each time to new memory. The client still handles everything else:
# requests, answers other than those of fetches, and the end of a connection.


LENGTH_BYTES: Final = 4
FIRST_BYTES: Final = 1 << 16
KEPT_BYTES: Final = 1 << 24
"""Size from which a buffer is freed as soon as it is empty."""
OWN_BYTES: Final = 1 << 12
"""Bytes of one read from which it is taken for records, and copied to memory of its own (`padded_copy`)."""


class Frame:
    """File-like view of one answer for the client's types, which get records without copies.

    Parameters
    ----------
    content
        Bytes of the answer, valid only until the buffer is reused.
    """

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._at = 0

    def read(self, size: int) -> bytes | memoryview:
        """Return the next `size` bytes, fewer at the end."""
        found = self._content[self._at : self._at + size]
        self._at += len(found)
        if len(found) < OWN_BYTES:
            return bytes(found)
        return padded_copy(found)


class Receiving(asyncio.BufferedProtocol):
    """Protocol that reads a connection of the client to its own buffer.

    Parameters
    ----------
    connection
        The client's connection.
    before
        Its earlier protocol, which still handles everything but data.
    """

    def __init__(self, connection: Any, before: asyncio.Protocol) -> None:
        self._connection = connection
        self._before = before
        self._buffer = np.empty(FIRST_BYTES, np.uint8)
        self._filled = 0
        self.connection_lost = before.connection_lost
        self.eof_received = before.eof_received
        self.pause_writing = before.pause_writing
        self.resume_writing = before.resume_writing

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the free part of the buffer."""
        del sizehint
        return self._buffer.data[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Handle the complete answers in the buffer, and make room for the incomplete one."""
        self._filled += nbytes
        start, needed = 0, LENGTH_BYTES
        view = self._buffer.data
        while self._filled - start >= LENGTH_BYTES:
            size = int.from_bytes(view[start : start + LENGTH_BYTES], "big", signed=True)
            needed = LENGTH_BYTES + size
            if size < 0:
                self._close(CloseReason.OUT_OF_SYNC, ValueError(f"an answer of {size} bytes"))
                return
            if self._filled - start < needed:
                break
            if not self._take(view[start + LENGTH_BYTES : start + needed]):
                return
            start += needed
            needed = LENGTH_BYTES
        self._move(start, needed)

    def _move(self, start: int, needed: int) -> None:
        """Move the incomplete answer from `start` to the buffer's beginning, with room for `needed` bytes.

        Room is not written to before its bytes arrive: a proxy's `HTTP` reads as a length of 1.2 GB.
        """
        left = self._filled - start
        if needed > len(self._buffer) or (not left and len(self._buffer) > KEPT_BYTES):
            larger = np.empty(max(needed, FIRST_BYTES), np.uint8)
            larger[:left] = self._buffer[start : self._filled]
            self._buffer = larger
        elif start:
            self._buffer[:left] = self._buffer[start : self._filled]
        self._filled = left

    def _take(self, frame: memoryview) -> bool:
        """Pass one answer to its request's future; tell whether the connection is still open."""
        connection = self._connection
        try:
            if _answers_a_fetch(connection, frame):
                _, request, future = connection._requests[0]  # noqa: SLF001
                if not future.done():
                    future.set_result(_read(request, frame))
                connection._last_action = time.monotonic()  # noqa: SLF001
                connection._requests.popleft()  # noqa: SLF001
            else:
                connection._handle_frame(bytes(frame))  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - types raise all sorts of errors for an invalid answer
            self._close(CloseReason.CONNECTION_BROKEN, error)
        return connection.connected()

    def _close(self, reason: CloseReason, error: Exception) -> None:
        self._connection.close(reason=reason, exc=error)


def _answers_a_fetch(connection: Any, frame: memoryview) -> bool:
    """Tell whether the oldest pending request is a fetch, and this is its answer."""
    correlation_id, request, _ = connection._requests[0]  # noqa: SLF001
    return (
        request is not None
        and request.API_KEY == FetchRequest.API_KEY
        and not request.FLEXIBLE_VERSION
        and int.from_bytes(frame[:4], "big", signed=True) == correlation_id
    )


def _read(request: Any, frame: memoryview) -> Response:
    answer = cast("BytesIO", Frame(frame))
    request.parse_response_header(answer)
    return request.RESPONSE_TYPE.decode(answer)


def receive_directly(connection: Any) -> None:
    """Switch a connection of the client to `Receiving`, unless a request or unread bytes are pending."""
    writer, reader = connection._writer, connection._reader  # noqa: SLF001
    if writer is None or connection._requests or reader._buffer:  # noqa: SLF001
        return
    before = writer.transport.get_protocol()
    if not isinstance(before, Receiving):
        writer.transport.set_protocol(Receiving(connection, before))


# Fetch requests, and their answers for each partition, in all versions of the protocol.


CONNECTION_ERRORS = (KafkaError, OSError, TimeoutError, AssertionError)
"""Errors of the client after which a connection is replaced; it asserts that brokers follow the protocol."""


MOST_BYTES: Final = 52_428_800
"""Bytes of one answer at most, over all partitions."""


class Answer(NamedTuple):
    """Answer of a broker for one partition."""

    partition: Partition
    error: int
    """Error code of the protocol; 0 for none."""
    high_watermark: int
    stable: int
    """Last stable offset; -1 where the protocol's version has none."""
    aborted: Sequence[tuple[int, int]]
    """(producer id, first offset) of aborted transactions."""
    data: bytes | memoryview
    """Bytes of batches; large ones are from `padded_copy`."""

    @property
    def readable(self) -> int:
        """Offset before which records may be read; an open transaction holds back those from it on."""
        return self.high_watermark if self.stable < 0 else min(self.stable, self.high_watermark)


async def ask(
    client: Any,
    node: int,
    offsets: Iterable[tuple[Partition, int]],
    partition_bytes: int,
    *,
    wait_ms: int = 0,
) -> list[Answer]:
    """Fetch from one node; brokers answer with at least one whole batch, even above the limits.

    Limits are `partition_bytes` for each partition, and `MOST_BYTES`. If there are no records, the broker
    waits `wait_ms` for some.

    Raises
    ------
    KafkaError
        The node cannot be reached, or does not answer in time.
    AssertionError
        The client finds that the node does not follow the protocol.
    """
    topics: dict[str, list[tuple[int, int, int]]] = {}
    for (topic, partition), offset in offsets:
        topics.setdefault(topic, []).append((partition, offset, partition_bytes))
    request = FetchRequest(wait_ms, 1, MOST_BYTES, READ_COMMITTED, list(topics.items()))
    if (connection := await client._get_conn(node)) is not None:  # noqa: SLF001
        receive_directly(connection)
    answer: Any = await client.send(node, request)
    return [
        _answer(Partition(topic, number), error, high, rest, answer.API_VERSION)
        for topic, partitions in answer.topics
        for number, error, high, *rest in partitions
    ]


def _answer(partition: Partition, error: int, high: int, rest: Sequence[Any], version: int) -> Answer:
    """Parse by version: v4 added the stable offset and aborted transactions, v11 a preferred replica."""
    stable, aborted = -1, None
    if version >= 4:
        stable, aborted = rest[0], rest[2 if version >= 11 else -2]
    return Answer(partition, error, high, -1 if stable is None else stable, aborted or (), rest[-1] or b"")


def worded(error: BaseException) -> str:
    """Describe an error in one line, by its name where it has no text."""
    name, text = type(error).__name__, str(error)
    return text if text.startswith(name) else f"{name}: {text}" if text else name


# Two requests that the client library lacks: topics with their ids, and the one record at an offset.
#
# Topic ids came with Kafka 2.8 (KIP-516, Metadata v10), for which aiokafka has no classes; they are defined
# here. Brokers without this version are asked by an older one, without ids.


@dataclass(frozen=True, slots=True)
class Listed:
    """Metadata of one topic."""

    leaders: Mapping[int, int] = field(default_factory=dict[int, int])
    """Partition → node that leads it, -1 for none; in order of partitions."""
    topic_id: str | None = None
    """Id of the topic; None where brokers do not report it."""

    @property
    def partitions(self) -> tuple[int, ...]:
        """Numbers of the partitions, ascending."""
        return tuple(self.leaders)


Listing: TypeAlias = Mapping[str, Listed]
"""Every topic that this user may see, by name."""

Missing: TypeAlias = Literal["absent", "beyond", "hidden"]
"""Reason for no record at an offset: none (any more); the log ends before it or begins after it; or it cannot
be read (yet)."""


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
    """List every topic without an error, from any broker; asking for one by name might create it.

    Raises
    ------
    KafkaError
        No broker answers.
    AssertionError
        As from `ask`.
    """
    connected = {node for (node, _), conn in client._conns.items() if conn.connected()}  # noqa: SLF001
    nodes: list[int] = [broker.nodeId for broker in client.cluster.brokers()]
    random.shuffle(nodes)
    for node in sorted(nodes, key=lambda node: node not in connected):  # others may not answer
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
                n: cluster.leader_for_partition(TopicPartition(name, n))
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
    """Fetch the record at exactly this offset, in an answer of one batch; or return why there is none.

    Raises
    ------
    KafkaError
        The partition has no leader (as LeaderNotAvailableError), or that does not answer in time or refuses.
    AssertionError
        As from `ask`.
    """
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
    except CodecMissing:  # reading will report it
        return "hidden"
    if found and found[0].offset == offset:
        return found.record(0)
    return "absent" if answer.readable > offset else "hidden"
