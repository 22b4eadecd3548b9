"""Invalid records, as they were, in a topic of their own, for whoever mends and sends them again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import aiokafka.errors as kafka_errors
from aiokafka import AIOKafkaProducer
from aiokafka.protocol.produce import ProduceRequest

from streamwatch.core.metrics import family, single
from streamwatch.core.ports import Record
from streamwatch.core.series import Family
from streamwatch.edge.sources.kafka.connection.connection import Connection
from streamwatch.edge.sources.kafka.connection.tls import ssl_context
from streamwatch.edge.sources.kafka.connection.topics import require_topics
from streamwatch.edge.sources.kafka.fetch.answer import CONNECTION_ERRORS, worded
from streamwatch.edge.sources.kafka.fetch.wire import list_topics
from streamwatch.edge.sources.kafka.grants import WriteDenied
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.telemetry import DeadLettersDropped, InternalEvent

GIVE_UP_SECONDS: Final = 30.0
"""Seconds for which brokers are asked to take what waits, before it is given up."""
MOST_BYTES: Final = 8_388_608
"""Bytes that wait before they have to be written, whether or not a commit is due."""
_RETRY_SECONDS: Final = 0.5
_REQUEST_BYTES: Final = 1_073_741_824
"""Larger than anything a broker takes: it is the broker that refuses."""
_PROBE_MS: Final = 1_000
_REASONS: Final[Sequence[tuple[type[Exception], str]]] = (
    (kafka_errors.TopicAuthorizationFailedError, "denied"),
    (kafka_errors.ClusterAuthorizationFailedError, "denied"),
    (kafka_errors.MessageSizeTooLargeError, "too_large"),
    (kafka_errors.RecordListTooLargeError, "too_large"),
    (kafka_errors.UnknownTopicOrPartitionError, "no_topic"),
)
Letter = tuple[Record, str]


class DeadLetterTopic:
    """Writes invalid records to a topic, at least once.

    Keys, values and headers stay as they are; headers `streamwatch.topic`, `streamwatch.partition`,
    `streamwatch.offset` and `streamwatch.reason` are added. What brokers refuse, or do not take within
    `give_up_seconds`, is counted and said, and reading goes on.

    Parameters
    ----------
    spec
        Where the brokers are and how to be let in.
    topic
        Name of the topic, which has to exist.
    emit
        Told of what was dropped.
    give_up_seconds
        Time a `flush` takes at most.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        topic: str,
        emit: Callable[[InternalEvent], None],
        give_up_seconds: float = GIVE_UP_SECONDS,
    ) -> None:
        self._spec = spec
        self._topic = topic
        self._emit = emit
        self._give_up_seconds = give_up_seconds
        self._waiting: list[Letter] = []
        self._bytes = 0
        self._producer: AIOKafkaProducer | None = None
        self._written = 0
        self._dropped: Counter[str] = Counter()

    @property
    def is_full(self) -> bool:
        """Tell whether so much waits that it has to be written first."""
        return self._bytes >= MOST_BYTES

    def put(self, record: Record, reason: str) -> None:
        """Have a record written by the next `flush`."""
        self._waiting.append((record, reason))
        self._bytes += len(record.key or b"") + len(record.value or b"")

    async def flush(self) -> None:
        """Write what waits; returns once brokers have all of it, or it was dropped."""
        deadline = asyncio.get_running_loop().time() + self._give_up_seconds
        while self._waiting:
            left = deadline - asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(max(0.0, left)):
                    await self._write(await self._opened())
            except CONNECTION_ERRORS as error:
                await self._close()
                reason = _reason_of(error)
                if reason != "unreachable" or left <= _RETRY_SECONDS:
                    self._drop(self._waiting, reason, error)
                    self._waiting = []
                else:
                    await asyncio.sleep(_RETRY_SECONDS)
        self._bytes = 0

    async def stop(self) -> None:
        """Leave in bounded time; what waits was not committed, and is read again."""
        self._waiting.clear()
        await self._close()

    def families(self) -> Sequence[Family]:
        """Letters written and dropped since the start."""
        return [
            single("dead_letters_written_total", float(self._written)),
            family(
                "dead_letters_dropped_total",
                [((reason,), float(count)) for reason, count in sorted(self._dropped.items())],
            ),
        ]

    async def _opened(self) -> AIOKafkaProducer:
        if self._producer is None:
            spec = self._spec
            self._producer = producer = AIOKafkaProducer(
                bootstrap_servers=spec.bootstrap_servers,
                client_id=spec.client_id,
                acks="all",
                max_request_size=_REQUEST_BYTES,
                request_timeout_ms=spec.request_timeout_ms,
                security_protocol=spec.security_protocol,
                ssl_context=ssl_context(spec),
                sasl_mechanism=spec.sasl_mechanism,
                sasl_plain_username=spec.username,
                sasl_plain_password=spec.password,
            )
            await producer.start()
            if self._topic not in await list_topics(producer.client):  # asking by name would create it
                raise kafka_errors.UnknownTopicOrPartitionError(self._topic)
        return self._producer

    async def _write(self, producer: AIOKafkaProducer) -> None:
        """Send everything that waits; what failed for a while waits on, what was refused is dropped."""
        letters = self._waiting
        sent: list[Any] = [await self._send(producer, *letter) for letter in letters]
        results = await asyncio.gather(*sent, return_exceptions=True)
        self._waiting = []
        for letter, result in zip(letters, results, strict=True):
            if not isinstance(result, BaseException):
                self._written += 1
            elif not isinstance(result, CONNECTION_ERRORS):
                raise result
            elif (reason := _reason_of(result)) == "unreachable":
                self._waiting.append(letter)
            else:
                self._drop([letter], reason, result)
        if self._waiting:
            raise ConnectionError("brokers did not take all of it")

    async def _send(self, producer: AIOKafkaProducer, record: Record, reason: str) -> Any:
        place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        added = [(f"streamwatch.{name}", str(value)) for name, value in (*place.items(), ("reason", reason))]
        headers: Any = [*record.headers, *((name, value.encode()) for name, value in added)]
        try:
            return await producer.send(self._topic, record.value, record.key, headers=headers)
        except kafka_errors.KafkaError as error:
            refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            refused.set_exception(error)
            return refused

    def _drop(self, letters: Sequence[Letter], reason: str, error: BaseException) -> None:
        self._dropped[reason] += len(letters)
        self._emit(DeadLettersDropped(self._topic, len(letters), reason, worded(error)))

    async def _close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            stopping = asyncio.ensure_future(producer.stop())
            await asyncio.wait({stopping}, timeout=self._spec.stop_timeout_ms / 1_000)
            stopping.cancel()
            await asyncio.gather(stopping, return_exceptions=True)


def _reason_of(error: BaseException) -> str:
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    if isinstance(error, kafka_errors.KafkaError) and not isinstance(error, kafka_errors.KafkaTimeoutError):
        return "unreachable" if error.retriable else "refused"
    return "unreachable"


async def require_writable(connection: Connection, topic: str, spec: KafkaSpec) -> None:
    """Ask a broker whether this user may write to a topic, by a request without a record: nothing is written.

    Raises
    ------
    TopicsMissing
        It does not exist.
    WriteDenied
        It may not be written.
    """
    listing = await connection.listing()
    require_topics([topic], listing, spec.bootstrap_servers)
    for number, leader in listing[topic].leaders.items():
        if leader >= 0:
            client: Any = connection._client  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            request = ProduceRequest(None, -1, _PROBE_MS, [(topic, [(number, b"")])])
            answer: Any = await client.send(leader, request)
            [(_, [(_, code, *_)])] = answer.topics
            if kafka_errors.for_code(code) is kafka_errors.TopicAuthorizationFailedError:
                raise WriteDenied(topic, spec)
            return
