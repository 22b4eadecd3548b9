"""Requests and answers of Kafka's protocol that the client library does not offer."""

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

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.batches.opened import CodecMissing
from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan, padded_copy
from streamwatch.edge.sources.kafka.batches.scanner import Scanner

# What a broker sends, read into one buffer that is used again, instead of into the client's stream.
#
# The stream copies an answer four times, into memory that is new each time. All else remains the client's:
# requests, the answers to all but fetches, and what happens when a connection ends.


LENGTH_BYTES: Final = 4
FIRST_BYTES: Final = 1 << 16
KEPT_BYTES: Final = 1 << 24
"""A buffer larger than this is given back as soon as nothing is in it."""
OWN_BYTES: Final = 1 << 12
"""What is read at once and has so many bytes is records: it gets memory of its own, as of `padded_copy`."""


class Frame:
    """One answer, as the client's types read it; they get the records of a partition as a view.

    Parameters
    ----------
    content
        Valid during the call that it was made in.
    """

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._at = 0

    def read(self, size: int) -> bytes | memoryview:
        """The next bytes, fewer at the end."""
        found = self._content[self._at : self._at + size]
        self._at += len(found)
        if len(found) < OWN_BYTES:
            return bytes(found)
        return padded_copy(found)


class Receiving(asyncio.BufferedProtocol):
    """Protocol of a connection of the client's, from when it is read directly.

    Parameters
    ----------
    connection
        The client's.
    before
        Its protocol until now: it is called for everything but data.
    """

    def __init__(self, connection: Any, before: asyncio.Protocol) -> None:
        self._connection = connection
        self._before = before
        self._buffer = bytearray(FIRST_BYTES)
        self._filled = 0
        self.connection_lost = before.connection_lost
        self.eof_received = before.eof_received
        self.pause_writing = before.pause_writing
        self.resume_writing = before.resume_writing

    def get_buffer(self, sizehint: int) -> memoryview:
        """The free part of the buffer."""
        del sizehint
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take the whole answers out of the buffer, and make room for the one that is not whole."""
        self._filled += nbytes
        start, needed = 0, LENGTH_BYTES
        view = memoryview(self._buffer)
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
        """Begin with what is left of the next answer, which needs so much room."""
        left = self._filled - start
        if needed > len(self._buffer) or (not left and len(self._buffer) > KEPT_BYTES):
            larger = bytearray(max(needed, FIRST_BYTES))
            larger[:left] = memoryview(self._buffer)[start : self._filled]
            self._buffer = larger
        elif start:
            self._buffer[:left] = self._buffer[start : self._filled]
        self._filled = left

    def _take(self, frame: memoryview) -> bool:
        """Hand one answer to whoever asked; whether the connection goes on."""
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
        except Exception as error:  # noqa: BLE001 - whatever an answer that is not sound makes its types raise
            self._close(CloseReason.CONNECTION_BROKEN, error)
        return connection.connected()

    def _close(self, reason: CloseReason, error: Exception) -> None:
        self._connection.close(reason=reason, exc=error)


def _answers_a_fetch(connection: Any, frame: memoryview) -> bool:
    """Return whether the request that is answered next is a fetch, and this is its answer."""
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
    """Read a connection of the client's directly from now on, if nothing is on its way to it."""
    writer, reader = connection._writer, connection._reader  # noqa: SLF001
    if writer is None or connection._requests or reader._buffer:  # noqa: SLF001
        return
    before = writer.transport.get_protocol()
    if not isinstance(before, Receiving):
        writer.transport.set_protocol(Receiving(connection, before))


# Fetch requests, and what brokers answer for each partition, whatever version of the protocol they speak.


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


# Two requests the client library does not offer: topics with their ids, and the one record at an offset.
#
# Topic ids came with Kafka 2.8 (KIP-516, Metadata v10), which aiokafka's classes do not reach; they are
# described here in its own terms. A broker that does not speak this version is asked the old way, without
# ids.


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
