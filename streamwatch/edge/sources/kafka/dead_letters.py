"""Writes invalid records unchanged to a dead letter topic, so that people can mend and resend them."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiokafka.errors as kafka_errors
from aiokafka.client import AIOKafkaClient
from aiokafka.partitioner import DefaultPartitioner
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import Record
from streamwatch.edge.sources.kafka.client import Client, connection_options
from streamwatch.edge.sources.kafka.connection import Connection, require_topics
from streamwatch.edge.sources.kafka.refusals import WriteDenied, error_name
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import CONNECTION_ERRORS, list_topics, worded
from streamwatch.telemetry import DeadLettersDelayed, DeadLettersDropped, InternalEvent

# Produce requests: one batch for one partition, answered by an error code.
#
# aiokafka's producer retries a batch until a time-out, chooses the records of a batch itself and reports one
# error for all of them: it does not show which record a broker refuses.


Content = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]
"""(key, value, headers) of a record."""
_ALL_REPLICAS: Final = -1
_NO_LIMIT: Final = 1 << 30
"""Size limit that is larger than any broker's, so that the broker decides."""
_NO_PRODUCER: Final = -1
_MAGIC: Final = 2


class KafkaProducer:
    """One connection for writing batches, over aiokafka's client; it is opened once and closed once.

    Parameters
    ----------
    spec
        Addresses of the brokers, and credentials.
    """

    def __init__(self, spec: KafkaSpec) -> None:
        self._spec = spec
        self._open = False
        self._client: Any = AIOKafkaClient(**connection_options(spec))
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
        listed = (await list_topics(self._client)).get(topic)  # asking for it by name might create it
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
    """Send one batch, which may be empty, through aiokafka's client; return the error code of the answer."""
    request = ProduceRequest(None, _ALL_REPLICAS, timeout_ms, [(topic, [(partition, batch)])])
    answer: Any = await client.send(leader, request)
    [(_, [(_, code, *_)])] = answer.topics
    return code


def batch_of(contents: Sequence[Content]) -> bytes:
    """Encode records as one batch of format v2, with the current time.

    Key and value of a record may be None.
    """
    builder = DefaultRecordBatchBuilder(_MAGIC, 0, 0, _NO_PRODUCER, _NO_PRODUCER, _NO_PRODUCER, _NO_LIMIT)
    for number, (key, value, headers) in enumerate(contents):
        builder.append(number, None, key, value, list(headers))
    return bytes(builder.build())


GIVE_UP_SECONDS: Final = 30.0
"""Time for which a `flush` tries to write dead letters, before it drops them."""
FAILING_SECONDS: Final = 1.0
"""Time for the single attempt of a `flush` after dead letters were dropped, until brokers accept one."""
MOST_BYTES: Final = 8_388_608
"""Bytes of waiting dead letters from which they are written before the next commit."""
_BATCH_BYTES: Final = 524_288
_BATCH_RECORDS: Final = 500
_RETRY_SECONDS: Final = 0.5
_BREAKS: Final = 2
"""Failed sends of a dead letter that are repeated; after one more, a large one is sent without content."""
_LARGE_BYTES: Final = 1_048_576
"""Least size of a dead letter for which a closed connection may mean that brokers refuse its size."""
_PROBE_MS: Final = 1_000

_DENIED: Final = frozenset({29, 31})
_NO_TOPIC: Final = 3
_TOO_LARGE: Final = frozenset({10, 18})
_TOO_FEW_REPLICAS: Final = frozenset({19, 20})
_LATER: Final = _TOO_FEW_REPLICAS | {5, 6, 7, 8, 9, 13, 14, 15, 16, 56, 74, 75, 76, 78, 89, 100}
"""Error codes that do not concern the records: the partition cannot be written for now."""


class _TopicRefused(Exception):  # noqa: N818 - it names what is the case
    """No record can be written to the topic."""

    def __init__(self, reason: str, text: str) -> None:
        self.reason = reason
        super().__init__(text)


@dataclass(slots=True, eq=False)
class _DeadLetter:
    """One invalid record that waits to be written."""

    record: Record
    reason: str
    stub: str | None = None
    """Cause for which it is written without its content; None: it is written unchanged."""
    breaks: int = 0
    """Number of connections that ended while it was sent."""
    waits_for: tuple[str, str] = ("unreachable", "no answer")
    """(reason, error) of the last failure."""
    done: bool = False

    @property
    def size_bytes(self) -> int:
        headers = sum(len(name) + len(value or b"") for name, value in self.record.headers)
        return len(self.record.key or b"") + len(self.record.value or b"") + headers

    @property
    def content(self) -> Content:
        record = self.record
        position = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        added = {**position, "reason": self.reason, **({} if self.stub is None else {"stub": self.stub})}
        headers = [(f"streamwatch.{name}", str(value).encode()) for name, value in added.items()]
        if self.stub is not None:
            return None, b"", headers
        return record.key, record.value, [*record.headers, *headers]


class DeadLetterTopic:
    """Writes invalid records to a topic, at least once.

    Keys, values and headers are kept; the headers `streamwatch.topic`, `streamwatch.partition`,
    `streamwatch.offset` and `streamwatch.reason` are added. A record that was read without key and value, or
    that brokers refuse, is replaced by a stub: these headers, `streamwatch.stub` with the cause, and an empty
    value. A stub that brokers refuse is dropped and counted. So are all waiting records at once if the topic
    does not exist or may not be written, and those that brokers do not accept within `give_up_seconds`.
    Reading continues; after `give_up_seconds` have passed in vain, each flush makes a single attempt until
    brokers accept a record again.

    Parameters
    ----------
    spec
        Addresses of the brokers, and credentials.
    topic
        Name of the topic, which must exist.
    emit
        Receives internal events about records that are delayed or dropped.
    give_up_seconds
        Limit on the time of a `flush`.
    connect
        Function that makes a connection.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        topic: str,
        emit: Callable[[InternalEvent], None],
        give_up_seconds: float = GIVE_UP_SECONDS,
        connect: Callable[[KafkaSpec], KafkaProducer] = KafkaProducer,
    ) -> None:
        self._spec = spec
        self._topic = topic
        self._emit = emit
        self._give_up_seconds = give_up_seconds
        self._connect = connect
        self._waiting: list[_DeadLetter] = []
        self._bytes = 0
        self._producer: KafkaProducer | None = None
        self._failing = False
        self._attempts = 0
        self._error: str | None = None
        self._written = 0
        self._stubs: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()

    @property
    def is_full(self) -> bool:
        """Tell whether `MOST_BYTES` are waiting, so that a `flush` is due before more records are read."""
        return self._bytes >= MOST_BYTES

    @property
    def problem(self) -> str | None:
        """Reason why dead letters wait, during a `flush` after a failed attempt; else None."""
        if self._error is None:
            return None
        return f"{len(self._waiting)} dead letters wait for topic {self._topic}: {self._error}"

    def put(self, record: Record, reason: str) -> None:
        """Add a record to those that the next `flush` writes."""
        empty = record.key is None and record.value is None
        self._waiting.append(dead_letter := _DeadLetter(record, reason, "no_content" if empty else None))
        self._bytes += dead_letter.size_bytes

    async def flush(self) -> None:
        """Write all waiting records; returns once brokers have accepted them, or they were dropped."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (FAILING_SECONDS if self._failing else self._give_up_seconds)
        try:
            while self._waiting:
                await self._attempt(max(0.0, deadline - loop.time()))
                if not self._waiting:
                    break
                left = deadline - loop.time()
                if self._failing or left <= _RETRY_SECONDS:
                    self._give_up()
                    break
                self._error = self._waiting[0].waits_for[1]
                self._emit(DeadLettersDelayed(self._topic, len(self._waiting), self._error, round(left, 3)))
                await asyncio.sleep(_RETRY_SECONDS)
        finally:
            self._error = None
        self._bytes = 0

    async def stop(self) -> None:
        """Close in bounded time; waiting records were not committed, and are read again after a restart."""
        self._waiting.clear()
        await self._close()

    def families(self) -> Sequence[Family]:
        """Return metrics: dead letters written and dropped since the start."""
        return [
            family("dead_letters_written_total", [((), float(self._written))]),
            family("dead_letter_stubs_total", _by_reason(self._stubs)),
            family("dead_letters_dropped_total", _by_reason(self._dropped)),
        ]

    async def _attempt(self, seconds: float) -> None:
        """Try once to write all waiting records; failed ones keep waiting, refused ones are dropped."""
        allowed = asyncio.timeout(seconds)
        try:
            async with allowed:
                await self._write()
        except CONNECTION_ERRORS as error:
            await self._close()
            if not allowed.expired():  # the broker's earlier answer explains more than a time-out
                for entry in self._waiting:
                    entry.waits_for = "unreachable", worded(error)
        except _TopicRefused as refused:
            await self._close()
            self._drop(self._waiting, refused.reason, str(refused))
        finally:
            self._waiting = [entry for entry in self._waiting if not entry.done]

    async def _write(self) -> None:
        if self._producer is None:
            self._producer = self._connect(self._spec)
        leaders = await self._producer.leaders(self._topic)
        if not leaders:
            raise _TopicRefused("no_topic", f"topic {self._topic} does not exist")
        self._attempts += 1
        batches = self._batches(sorted(leaders), [n for n, leader in leaders.items() if leader >= 0])
        while batches:
            partition, entries = batches.pop()
            code = await self._send(leaders[partition], partition, entries)
            if code == 0:
                self._note_written(entries)
            elif code in _DENIED or code == _NO_TOPIC:
                raise _TopicRefused(_reason_of(code), error_name(code))
            elif code in _LATER:
                for entry in entries:
                    entry.waits_for = _reason_of(code), error_name(code)
            elif len(entries) > 1:  # halves show which record is refused
                half = len(entries) // 2
                batches += [(partition, entries[half:]), (partition, entries[:half])]
            elif entries[0].stub is None:
                entries[0].stub = _reason_of(code)
                batches.append((partition, entries))
            else:
                self._drop(entries, _reason_of(code), error_name(code))

    def _batches(self, partitions: list[int], led: list[int]) -> list[tuple[int, list[_DeadLetter]]]:
        """Return batches in reverse order of sending; records that ended a connection go alone, last."""
        if not led:
            for entry in self._waiting:
                entry.waits_for = "unreachable", "no partition has a leader"
            return []
        of_partition: defaultdict[int, list[list[_DeadLetter]]] = defaultdict(list)
        sizes: Counter[int] = Counter()
        alone: list[tuple[int, list[_DeadLetter]]] = []
        keyless = led[self._attempts % len(led)]
        for entry in self._waiting:
            key = entry.content[0]
            partition = keyless if key is None else DefaultPartitioner()(key, partitions, led)
            partition = partition if partition in led else keyless
            if entry.breaks:
                alone.append((partition, [entry]))
                continue
            batches = of_partition[partition]
            sizes[partition] += entry.size_bytes
            if not batches or sizes[partition] > _BATCH_BYTES or len(batches[-1]) >= _BATCH_RECORDS:
                batches.append([])
                sizes[partition] = entry.size_bytes
            batches[-1].append(entry)
        alone.sort(key=lambda each: -each[1][0].breaks)
        together = [(number, batch) for number, several in of_partition.items() for batch in several[::-1]]
        return alone + together

    async def _send(self, leader: int, partition: int, entries: Sequence[_DeadLetter]) -> int:
        assert self._producer is not None  # noqa: S101 - opened by the caller
        batch = batch_of([entry.content for entry in entries])
        try:
            return await self._producer.send(leader, self._topic, partition, batch)
        except CONNECTION_ERRORS:
            for entry in entries:
                entry.breaks += 1
                if entry.breaks > _BREAKS and entry.stub is None and entry.size_bytes >= _LARGE_BYTES:
                    entry.stub = "connection_closed"
            raise

    def _note_written(self, entries: Sequence[_DeadLetter]) -> None:
        self._failing = False
        self._written += len(entries)
        for entry in entries:
            entry.done = True
            if entry.stub is not None:
                self._stubs[entry.stub] += 1

    def _give_up(self) -> None:
        """Drop all waiting records, each with the reason of its last failure."""
        self._failing = True
        by_cause: defaultdict[tuple[str, str], list[_DeadLetter]] = defaultdict(list)
        for entry in self._waiting:
            by_cause[entry.waits_for].append(entry)
        for cause, entries in by_cause.items():
            self._drop(entries, *cause)
        self._waiting = []

    def _drop(self, entries: Sequence[_DeadLetter], reason: str, error: str) -> None:
        waiting = [entry for entry in entries if not entry.done]
        for entry in waiting:
            entry.done = True
        self._dropped[reason] += len(waiting)
        self._emit(DeadLettersDropped(self._topic, len(waiting), reason, error))

    async def _close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.close()


def _by_reason(counts: Counter[str]) -> list[tuple[tuple[str], float]]:
    return [((reason,), float(count)) for reason, count in sorted(counts.items())]


def _reason_of(code: int) -> str:
    if code in _DENIED:
        return "denied"
    if code in _TOO_LARGE:
        return "too_large"
    if code in _TOO_FEW_REPLICAS:
        return "too_few_replicas"
    if code == _NO_TOPIC:
        return "no_topic"
    return "unreachable" if code in _LATER else "refused"


async def require_writable(connection: Connection, setting: str, topic: str, spec: KafkaSpec) -> None:
    """Check that this user may write a setting's topic, by a produce request without records.

    Raises
    ------
    TopicsMissing
        The topic does not exist.
    WriteDenied
        This user may not write it.
    """
    listing = await connection.listing()
    require_topics([topic], listing, spec.bootstrap_servers)
    client = connection._client  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for number, leader in listing[topic].leaders.items():
        if leader >= 0:
            code = await produce(client, leader, topic, number, b"", _PROBE_MS)
            if kafka_errors.for_code(code) is kafka_errors.TopicAuthorizationFailedError:
                raise WriteDenied(setting, topic, spec)
            return
