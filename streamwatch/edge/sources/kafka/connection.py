"""One disposable connection to Kafka: an aiokafka consumer, and our own fetching over its connections.

After any error a connection is replaced; positions in the log are kept elsewhere.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from aiokafka import AIOKafkaConsumer
from aiokafka.conn import CloseReason
from aiokafka.errors import (
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import TopicPartition

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.batches.opened import Scanner, compiled_plain_batches
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from streamwatch.edge.sources.kafka.client import Client, ClientLogCapture, attempted, security_options
from streamwatch.edge.sources.kafka.data_loss import ReadingEnded
from streamwatch.edge.sources.kafka.fetching import Backoff, Fetching, TurnRecords
from streamwatch.edge.sources.kafka.refusals import TokenSourceMissing, explanation, not_let_in, of_token
from streamwatch.edge.sources.kafka.spec import Ago, At, KafkaSpec, Start
from streamwatch.edge.sources.kafka.wire import (
    CONNECTION_ERRORS,
    Listing,
    Missing,
    list_topics,
    record_at,
    worded,
)
from streamwatch.telemetry import InternalEvent, KafkaLost, KafkaRecovered

# Signals that a log may have been replaced, noticed before more of it is fetched.


_BROKEN = (CloseReason.CONNECTION_BROKEN, CloseReason.CONNECTION_TIMEOUT)
_REFUSED = (UnknownTopicOrPartitionError.errno, NotLeaderForPartitionError.errno)


class TopicChangeSignals:
    """Watches a client for refused fetches and broken connections, both of which it hides.

    They are the only sign that a topic was deleted and created again, once the new log is longer than the
    position: fetches in flight are refused when the topic is deleted. A paused partition has none in flight.

    Parameters
    ----------
    client
        aiokafka's client; two of its methods are replaced.
    """

    def __init__(self, client: Any) -> None:
        self.latest = 0
        """Number of the last change signal."""
        self._of_all = 0
        self._of_topic: dict[str, int] = {}
        send, closed = client.send, client._on_connection_closed  # noqa: SLF001 - there is no other hook

        async def watched(node: int, request: Any, **options: Any) -> Any:
            answer = await send(node, request, **options)
            if answer.API_KEY == FetchRequest.API_KEY:
                for topic, partitions in answer.topics:
                    if any(error in _REFUSED for _, error, *_ in partitions):
                        self.latest += 1
                        self._of_topic[topic] = self.latest
            return answer

        def parted(connection: Any, reason: CloseReason) -> None:
            if reason in _BROKEN:
                self.latest += 1
                self._of_all = self.latest
            closed(connection, reason)

        client.send, client._on_connection_closed = watched, parted  # noqa: SLF001

    def about(self, topic: str, settled: int) -> bool:
        """Tell whether there was a signal about a topic, or about all, after signal number `settled`."""
        return max(self._of_all, self._of_topic.get(topic, 0)) > settled


SCAN_ROWS = 8_192
"""Records scanned at a time, at most."""


class Connection:
    """Connection to the brokers; it is opened once and closed once.

    Parameters
    ----------
    spec
        Addresses of the brokers, credentials and limits.
    """

    def __init__(self, spec: KafkaSpec) -> None:
        self._spec = spec
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=spec.bootstrap_servers,
            client_id=spec.client_id,
            group_id=spec.group_id,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            request_timeout_ms=spec.request_timeout_ms,
            **security_options(spec),
        )
        self._client: Any = self._consumer._client  # noqa: SLF001 - the consumer exposes little of it  # pyright: ignore[reportPrivateUsage]
        self._usage = Client(self._client)
        self.change_signals = TopicChangeSignals(self._client)
        self._fetching: Fetching | None = None

    async def open(self) -> None:
        """Connect to a broker and authenticate."""
        async with asyncio.timeout(self._spec.request_timeout_ms / 1_000):
            await self._usage.start(self._consumer.start())

    async def listing(self) -> Listing:
        """List every topic that this user may see. None is asked for by name, which might create it."""
        return await self._bounded(list_topics(self._client))

    async def record_at(self, leader: int, partition: Partition, offset: int) -> KafkaRecord | Missing:
        """Fetch the record at exactly this offset, apart from reading; or return why there is none."""
        return await self._bounded(
            record_at(self._client, leader, partition, offset, self._spec.max_batch_bytes)
        )

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Read these partitions from these offsets, and no others."""
        if self._spec.group_id is not None:  # the consumer commits only assigned partitions
            tps = [TopicPartition(*p) for p in positions]
            self._consumer.assign(tps)
            for tp in tps:
                self._consumer.seek(tp, 0)
            self._consumer.pause(*tps)
        # The client would refresh metadata of assigned topics by name, and so re-create a deleted topic.
        self._client.set_topics(())
        if self._fetching is None:
            scanner = Scanner(compiled_scan(), SCAN_ROWS, compiled_plain_batches())
            self._fetching = Fetching(self._client, self._spec, scanner)
        self._fetching.assign(positions)

    def seek(self, partition: Partition, position: int, asked: int = -1) -> None:
        """Continue from another offset; `asked` is a later one by which brokers find it, -1 for itself."""
        self._assigned.seek(partition, position, asked)

    async def take(self, partitions: Collection[Partition] | None, timeout_ms: int) -> TurnRecords:
        """Return the next records of these partitions, or of all (None); records fetched of others are kept.

        Raises
        ------
        CodecMissing
            Records are compressed with a codec whose package is not installed.
        """
        return await self._assigned.take(partitions, timeout_ms / 1_000)

    def position(self, partition: Partition) -> int:
        """Return the offset at which reading of a partition continues, after control records."""
        return self._assigned.slots[partition].position

    def last_fetch(self, partition: Partition) -> tuple[int, int]:
        """Return the high watermark, and the number of the latest answer; -1 and 0 before the first fetch."""
        slot = self._assigned.slots.get(partition)
        return (-1, 0) if slot is None else (slot.high_watermark, slot.answer)

    @property
    def fetched(self) -> bool:
        """Tell whether a broker has answered a fetch without an error."""
        return self._fetching is not None and self._fetching.answers > 0

    @property
    def _assigned(self) -> Fetching:
        if self._fetching is None:
            raise RuntimeError("assign() comes first")
        return self._fetching

    def at_end_ms(self, partition: Partition, position: int) -> int | None:
        """Return when the latest fetch was sent (monotonic ms), if its answer ends at `position`; else None.

        Answers with an error do not count, as they have no high watermark. Records appended before a fetch
        was sent are below the high watermark of its answer. So at that position, no record is unread that
        existed when the fetch was sent. The last stable offset would not show this: records of an open
        transaction are beyond it.
        """
        slot = self._assigned.slots.get(partition)
        if slot is None or slot.high_watermark != position or slot.position != position:
            return None
        return int(slot.sent_at * 1_000)

    async def ends(self, partition: Partition) -> tuple[int, int]:
        """Return the first offset of the log, and the offset after its last stable record."""
        tp = TopicPartition(*partition)
        first = await self._bounded(self._consumer.beginning_offsets([tp]))
        last = await self._bounded(self._consumer.end_offsets([tp]))
        return first[tp], last[tp]

    async def resolve(
        self, partitions: Sequence[Partition], start: Start, now_ms: int
    ) -> dict[Partition, int]:
        """Return the offsets at which to begin; for a time after the last record, the end of the log."""
        tps = [TopicPartition(*p) for p in partitions]
        if not tps:
            return {}
        if start == "earliest":
            found = await self._bounded(self._consumer.beginning_offsets(tps))
            return {Partition(*tp): offset for tp, offset in found.items()}
        ends = await self._bounded(self._consumer.end_offsets(tps))
        offsets = {Partition(*tp): offset for tp, offset in ends.items()}
        if isinstance(start, At | Ago):
            moment = start.timestamp_ms if isinstance(start, At) else now_ms - start.duration_ms
            found = await self._bounded(self._consumer.offsets_for_times(dict.fromkeys(tps, max(moment, 0))))
            offsets |= {Partition(*tp): hit.offset for tp, hit in found.items() if hit is not None}
        return offsets

    async def commit(self, positions: Mapping[Partition, int], text: str) -> None:
        """Commit positions to the group, for lag tools, with a text as metadata."""
        offsets = {TopicPartition(*p): (position, text) for p, position in positions.items()}
        assigned = self._consumer.assignment()
        if offsets := {tp: committed for tp, committed in offsets.items() if tp in assigned}:
            await self._bounded(self._consumer.commit(offsets))

    async def texts(self, partitions: Iterable[Partition]) -> list[str]:
        """Return the metadata texts of the offsets that the group has committed last."""
        coordinator: Any = self._consumer._coordinator  # noqa: SLF001 - the public call drops the text  # pyright: ignore[reportPrivateUsage]
        found = await self._bounded(
            coordinator.fetch_committed_offsets([TopicPartition(*p) for p in partitions])
        )
        return [committed.metadata for committed in found.values()]

    async def close(self, timeout_seconds: float) -> None:
        """Close in bounded time, also if brokers do not answer."""
        consumer: Any = self._consumer
        await self._usage.end_start(timeout_seconds / 3)  # it starts tasks that an earlier stop would miss
        if self._fetching is not None:
            await attempted(self._fetching.close(), timeout_seconds / 3)
        await attempted(consumer.stop(), timeout_seconds)
        if consumer._fetcher is not None:  # noqa: SLF001 - a stop that timed out leaves it open
            await attempted(consumer._fetcher.close(), timeout_seconds / 3)  # noqa: SLF001
        await self._usage.close(timeout_seconds)

    async def _bounded(self, awaitable: Awaitable[Any]) -> Any:
        return await self._usage.ask(awaitable, self._spec.request_timeout_ms / 1_000)


# Brokers count as alive by their answers, not by the absence of errors.


PULSES: Final = 8
"""Turns of the event loop without an answer, at least, before brokers count as silent."""
MOST_PULSE_SECONDS: Final = 0.25


class BrokerHealth:
    """Measures for how long brokers have been silent, and reports when they are lost and when they are back.

    Silence is time in which the event loop turned without an answer. While the loop is busy, or the process
    stopped, answers may be waiting: so a turn counts as two pulses at most.

    Parameters
    ----------
    alive_ms
        Time for which one answer counts as a sign of life.
    emit
        Receives internal events.
    monotonic
        Monotonic clock in seconds.
    """

    def __init__(
        self, alive_ms: float, emit: Callable[[InternalEvent], None], monotonic: Callable[[], float]
    ) -> None:
        self._alive_ms = alive_ms
        self._emit = emit
        self._monotonic = monotonic
        self.pulse_seconds = min(alive_ms / 1_000 / PULSES, MOST_PULSE_SECONDS)
        """Interval at which `turned` must be called."""
        self._silent_seconds = math.inf
        self._turned_at = monotonic()
        self._lost_at: float | None = None
        self._fetches: dict[Partition, tuple[int, float]] = {}

    @property
    def silent_ms(self) -> float:
        """Silence since the last answer of any broker, in ms."""
        return self._silent_seconds * 1_000

    @property
    def alive(self) -> bool:
        """Tell whether the silence is at most `alive_ms`."""
        return self.silent_ms <= self._alive_ms

    @property
    def lost(self) -> bool:
        """Tell whether brokers were reported lost and have not answered since."""
        return self._lost_at is not None

    def begin(self) -> None:
        """Reset for a new connection, so that fetches of the previous one do not count."""
        self._fetches.clear()
        self.answered()

    def answered(self) -> None:
        """Note that a broker answered something."""
        self._silent_seconds = 0.0
        if self._lost_at is not None:
            self._emit(KafkaRecovered(round(self._monotonic() - self._lost_at, 3)))
            self._lost_at = None

    def turned(self) -> None:
        """Add the time since the last turn to the silence; call it after noting answers."""
        now = self._monotonic()
        self._silent_seconds += min(now - self._turned_at, 2 * self.pulse_seconds)
        self._turned_at = now

    def failed(self, reason: str, retry_in_seconds: float = 0.0) -> None:
        """Report brokers as lost, for the reason given."""
        if self._lost_at is None:
            self._lost_at = self._monotonic()
        self._emit(KafkaLost(reason, round(retry_in_seconds, 3)))

    def look(self, connection: Connection, partitions: Iterable[Partition]) -> None:
        """Note fetches of these partitions that were answered since the last call, also empty ones."""
        now = self._monotonic()
        news = False
        for partition in partitions:
            _, stamp = connection.last_fetch(partition)
            if stamp and stamp != self._fetches.get(partition, (0, 0.0))[0]:
                self._fetches[partition] = (stamp, now)
                news = True
        if news:
            self.answered()

    def fetched_within(self, partition: Partition, milliseconds: float) -> bool:
        """Tell whether a fetch of a partition was answered within the last `milliseconds`."""
        _, seen_at = self._fetches.get(partition, (0, -math.inf))
        return (self._monotonic() - seen_at) * 1_000 <= milliseconds


# Topics that must exist.


class TopicsMissing(Exception):  # noqa: N818 - it names what is the case
    """Configured topics that the cluster does not have; asking has not created them.

    Attributes
    ----------
    nearest
        Missing topic → the most similar names of existing topics.
    """

    def __init__(
        self, nearest: Mapping[str, Sequence[str]], servers: str, keys: Mapping[str, str] | None = None
    ) -> None:
        self.nearest = dict(nearest)
        named = {name: f" ({key})" for name, key in (keys or {}).items()}
        parts = [
            f"topic {name!r}{named.get(name, '')} does not exist"
            + (f" (did you mean {' or '.join(near)}?)" if near else "")
            for name, near in nearest.items()
        ]
        super().__init__(
            f"{'; '.join(parts)} on {servers}, or this user may not see it; nothing was created by asking"
        )


def require_topics(
    topics: Sequence[str], listing: Listing, servers: str, keys: Mapping[str, str] | None = None
) -> None:
    """Raise `TopicsMissing` unless the cluster has every topic; `keys` is topic → key of its setting."""
    there = [name for name, listed in listing.items() if listed.partitions]
    missing = {t: get_close_matches(t, there, n=3, cutoff=0.6) for t in topics if t not in there}
    if missing:
        raise TopicsMissing(missing, servers, keys)


# The current connection, and attempts to make the next one while there is none.


class Session:
    """A sequence of connections; each becomes current only after `settle` succeeds with it.

    Parameters
    ----------
    spec
        Addresses of the brokers, credentials and time limits.
    topics
        Topics that must exist.
    health
        Receives failures and new connections.
    settle
        Makes a new connection read from the present positions.
    jitter
        Function that returns random numbers in [0, 1).
    """

    def __init__(
        self,
        spec: KafkaSpec,
        topics: Sequence[str],
        health: BrokerHealth,
        settle: Callable[[Connection, Listing], Awaitable[None]],
        jitter: Callable[[], float],
    ) -> None:
        self._spec = spec
        self._topics = topics
        self._health = health
        self._settle = settle
        self._backoff = Backoff(spec.backoff_initial_ms / 1_000, spec.backoff_max_ms / 1_000, jitter)
        self._client_log = ClientLogCapture()
        self._connecting: asyncio.Task[None] | None = None
        self._parting: Connection | None = None
        self.connection: Connection | None = None
        """The current connection; None while brokers are unreachable or the last one was dropped."""

    async def begin(self) -> None:
        """Make the first connection, waiting for unreachable brokers without limit.

        Raises
        ------
        TopicsMissing
            A topic is missing, also after `topic_grace_ms`.
        ReadingEnded
            Brokers refused this client for `denied_ms`; the package that signs tokens is missing; or as from
            the function `settle`.
        """
        self._client_log.attach()
        missed = False
        refused_since: float | None = None
        while True:
            try:
                return await self._connect(dict(self._spec.required_topics))
            except TokenSourceMissing as error:
                raise ReadingEnded(str(error)) from None
            except CONNECTION_ERRORS as error:
                now = asyncio.get_running_loop().time()
                refusal = not_let_in(worded(error) + self._client_log.last, self._spec)
                refused_since = None if refusal is None else refused_since or now
                if refused_since is not None and now - refused_since >= self._spec.denied_ms / 1_000:
                    raise ReadingEnded(refusal) from error
                delay = self._failed(error)
            except TopicsMissing:
                if missed:
                    raise
                missed, delay = True, self._spec.topic_grace_ms / 1_000
            await asyncio.sleep(delay)

    def drop(self, connection: Connection, error: BaseException) -> None:
        """Drop the connection, report brokers as lost, and start making another one."""
        self.connection, self._parting = None, connection
        self._connecting = asyncio.create_task(self._replace(self._failed(error)))

    def proven(self) -> None:
        """Reset the back-off, as the connection works."""
        self._backoff.reset()

    async def halt(self) -> bool:
        """Cancel attempts to connect; tell whether any were under way, so that `resume` is needed."""
        if self._connecting is None or self._connecting.done():
            return False
        self._connecting.cancel()
        await asyncio.wait({self._connecting})
        return self.connection is None

    def resume(self) -> None:
        """Start connecting again, after `halt`."""
        self._connecting = asyncio.create_task(self._replace(0.0))

    async def wait_connected(self) -> None:
        """Wait up to `poll_timeout_ms` for a connection; attempts continue in the background."""
        if self._connecting is None:
            raise RuntimeError("poll() before start()")
        await asyncio.wait({self._connecting}, timeout=self._spec.poll_timeout_ms / 1_000)
        if self._connecting.done():
            self._connecting.result()

    def check_silence(self) -> None:
        """Report brokers that are silent for `alive_ms`; raises TimeoutError after `stall_ms`."""
        silent_seconds = self._health.silent_ms / 1_000
        if silent_seconds * 1_000 > self._spec.stall_ms:
            raise TimeoutError(f"no answer for {silent_seconds:.0f} s")
        if not self._health.alive and not self._health.lost:
            self._health.failed(f"no answer for {silent_seconds:.0f} s{self._client_error()}")

    async def end(self, timeout_seconds: float) -> None:
        """Cancel attempts to connect, in bounded time; the caller closes the current connection."""
        self.connection = None
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait({self._connecting}, timeout=timeout_seconds / 2)
        if self._parting is not None:
            await self._parting.close(timeout_seconds / 2)
        self._client_log.detach()

    async def _connect(self, required: Mapping[str, str] | None = None) -> None:
        """Make a connection and settle it; `required` is further topics that must exist → their settings."""
        connection = Connection(self._spec)
        try:
            await connection.open()
            listing = await connection.listing()
            topics = [*self._topics, *(required or {})]
            require_topics(topics, listing, self._spec.bootstrap_servers, required)
            await self._settle(connection, listing)
        except BaseException:
            await connection.close(self._spec.stop_timeout_ms / 4_000)
            raise
        self.connection = connection
        self._health.begin()

    async def _replace(self, delay_seconds: float) -> None:
        if self._parting is not None:
            await self._parting.close(self._spec.stop_timeout_ms / 2_000)
            self._parting = None
        while True:
            await asyncio.sleep(delay_seconds)
            try:
                return await self._connect()
            except (*CONNECTION_ERRORS, TopicsMissing) as error:
                delay_seconds = self._failed(error)

    def _failed(self, error: BaseException) -> float:
        """Report brokers as lost; return the seconds until the next attempt."""
        delay = self._backoff.next_seconds()
        self._health.failed(worded(error) + self._client_error(), delay)
        return delay

    def _client_error(self) -> str:
        client_error, self._client_log.last = self._client_log.last, ""
        words = explanation(client_error, self._spec)
        reason = client_error.rstrip(" :") if words is None else f"{client_error.rstrip(' :')}: {words}"
        reason = of_token(client_error) or reason
        return f" ({reason})" if reason else ""
