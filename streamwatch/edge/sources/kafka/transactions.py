"""Writes the topics of results in transactions with the ledger: each outcome and event once.

Properties of aiokafka's transactional producer that matter here:

- `start` requests the producer's id and epoch. The coordinator first ends a transaction that an older
  producer of the same `transactional.id` left open, and refuses that producer from then on (it is fenced).
- After a batch failed, `commit_transaction` would commit the others: so all batches are awaited before it.
- Batches are resent without end while brokers cannot be reached, and a commit whose answer is lost may have
  been made. So a transaction has a deadline here, after which the producer is closed. The next producer ends
  the transaction, and the ledger shows whether it was committed.
- If brokers refuse the producer while records are being sent, the client refuses the next ones with an error
  of its own (`IllegalOperation`). The batches that were handed over before have the brokers' reason.
- Records of a partition keep their order. Input offsets are not part of a transaction, as in KIP-447,
  because positions are in the state.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import aiokafka.errors as kafka_errors
import numpy as np
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.partitioner import DefaultPartitioner

from streamwatch.core.publishing.candidacy import Decisions, DecisionsError, from_parts, parts_digest
from streamwatch.core.publishing.publications import (
    Ledger,
    OutcomeLinesPart,
    Publication,
    PublicationError,
)
from streamwatch.edge.sources.kafka.client import Client, administration, attempted, connection_options
from streamwatch.edge.sources.kafka.record_batches import Texts, batches_of, joined, texts_of
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import CONNECTION_ERRORS, list_topics, worded

_BATCH_BYTES: Final = 524_288
"""Bytes of a batch at most, less than the default of a topic's `max.message.bytes` (1 MiB)."""
_OPEN_SECONDS: Final = 30.0
_MOST_COPIES: Final = 3
_LEDGER_CONFIGS: Final = {
    "cleanup.policy": "compact",
    # About a record a second is written, and only the latest counts: compaction shortens what a start reads.
    "segment.ms": "3600000",
    "segment.bytes": "16777216",
    "min.cleanable.dirty.ratio": "0.1",
}

_KEEPING: Final = ("cleanup.policy", "retention.ms", "retention.bytes")
"""Configuration of a topic that decides for how long its records are kept."""


class PublishingFailed(Exception):  # noqa: N818 - it names what is the case
    """Writing failed for now; the last transaction may have been committed or not."""


class ProducerWasFenced(PublishingFailed):
    """Brokers refuse the producer: a later one has its `transactional.id`, or a transaction took too long."""


class PublishingRefused(Exception):  # noqa: N818 - it names what is the case
    """The topics of results cannot be used as they are; a restart does not help."""


class PublishingFenced(PublishingRefused):
    """Another process writes with the same `transactional.id`."""


@dataclass(frozen=True, slots=True)
class TransactionsSpec:
    """Topics of results, and the `transactional.id` that writes them."""

    kafka: KafkaSpec
    outcomes_topic: str | None
    events_topic: str | None
    ledger_topic: str
    transactional_id: str
    transaction_seconds: float = 30.0
    """Deadline of one transaction; brokers abort it after twice that time."""

    @property
    def topics(self) -> Mapping[str, str]:
        """Setting → the topic that it names, of the topics that must exist."""
        named = {"outcomes.topic": self.outcomes_topic, "events.topic": self.events_topic}
        return {setting: topic for setting, topic in named.items() if topic is not None}


class KafkaTransactions:
    """Writes publications by aiokafka's transactional producer; after a failure it is opened again.

    Parameters
    ----------
    spec
        Topics, and settings of the connection.
    follows
        Whether the ledger's reader stays open, as a replica that is not elected follows it.
    """

    def __init__(self, spec: TransactionsSpec, *, follows: bool = False) -> None:
        self._spec = spec
        self._follows = follows
        self._tail = LedgerTail(spec.kafka, spec.ledger_topic, spec.transactional_id)
        self._producer: Any = None
        self._partitions: dict[str, list[int]] = {}
        self._was_open = False

    async def open(self) -> Ledger | None:
        """Fence older producers, and read the ledger; None if it is empty.

        Raises
        ------
        PublishingFailed
            Brokers cannot be reached.
        PublishingRefused
            The ledger has a record of another version. Or a topic is missing, or the ledger's has several
            partitions or is not compacted: only until the first success, later PublishingFailed.
        """
        async with self._trying(self.leave):
            self._producer = AIOKafkaProducer(
                **connection_options(self._spec.kafka),
                transactional_id=self._spec.transactional_id,
                transaction_timeout_ms=int(2_000 * self._spec.transaction_seconds),
                max_batch_size=_BATCH_BYTES,
                max_request_size=16 * _BATCH_BYTES,
            )
            await self._producer.start()
            await self._look_at_topics(self._producer.client)
            ledger = await self._read()
        self._was_open = True
        return ledger

    async def prepare(self) -> None:
        """Check the topics, and create the ledger's, without fencing other producers.

        Raises as `open` does; once it was open, PublishingFailed instead of PublishingRefused.
        """
        async with self._trying(self._tail.close):
            await self._look_at_topics(await self._tail.client())

    async def write(
        self, publications: Sequence[Publication], ledger: Ledger, parts: Sequence[bytes] = ()
    ) -> None:
        """Write publications and the ledger in one transaction.

        Parameters
        ----------
        publications
            Publications in the order of commits.
        ledger
            The ledger after them.
        parts
            Decisions to write with the ledger (`candidacy.to_parts`); if empty, earlier ones stay.

        Raises
        ------
        PublishingFailed
            It is unknown whether the transaction was committed; `open` finds out.
        ProducerWasFenced
            A later producer has the same `transactional.id`, or brokers aborted the transaction because it
            took too long; the ledger shows which.
        """
        sent: list[asyncio.Future[Any]] = []
        try:
            async with asyncio.timeout(self._spec.transaction_seconds):
                await self._producer.begin_transaction()
                for topic, several in self._texts(publications, ledger, parts).items():
                    for texts in several:
                        await self._send(topic, texts, sent)
                await asyncio.wait(sent)  # all, as others may succeed after the first failure
                errors = _errors_of(sent)
                if not errors:
                    await self._producer.commit_transaction()
        except BaseException as error:
            refused = _errors_of(sent) if isinstance(error, kafka_errors.IllegalOperation) else []
            await self.close()
            if (failure := _failure_of(next(iter(refused), error))) is None:
                raise
            raise failure from error
        if errors:
            await self.close()
            raise _failure_of(errors[0]) or errors[0]

    async def read(self) -> Ledger | None:
        """Read the ledger, without fencing other producers; None if it is empty.

        Raises
        ------
        PublishingFailed
            Brokers cannot be reached.
        PublishingRefused
            The ledger has a record of another version.
        """
        async with self._trying(self._tail.close):
            return await self._read()

    async def follow(self, seconds: float) -> Ledger | None:
        """Wait up to `seconds` for additions to the ledger; return its latest record, None without one.

        Raises as `read`.
        """
        async with self._trying(self._tail.close):
            return await self._tail.follow(seconds)

    def decisions(self) -> Decisions | None:
        """Return the decisions written with the ledger that was read last; None without any.

        Raises
        ------
        PublishingRefused
            They are incomplete, or not of this version.
        """
        try:
            return self._tail.decisions()
        except PublicationError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: PublicationError) -> PublishingRefused:
        return PublishingRefused(f"ledger.topic {self._spec.ledger_topic!r}: {error}")

    @asynccontextmanager
    async def _trying(self, close: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
        """Limit the block to `_OPEN_SECONDS`; if it fails, call `close` and convert the error."""
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                yield
        except BaseException as error:
            await close()
            if isinstance(error, PublicationError):
                raise self._unreadable(error) from error
            if isinstance(error, PublishingRefused) and self._was_open:
                raise PublishingFailed(str(error)) from error
            if (failure := _failure_of(error)) is None:
                raise
            raise failure from error

    async def _read(self) -> Ledger | None:
        ledger = await self._tail.read()
        if not self._follows:
            await self._tail.close()
        return ledger

    async def leave(self) -> None:
        """Close the producer and the ledger's reader."""
        await self.close()
        await self._tail.close()

    async def close(self) -> None:
        """Close the producer in bounded time; the next `open` ends an open transaction."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        seconds = self._spec.kafka.stop_timeout_ms / 1_000
        producer._closed = True  # noqa: SLF001 - its `stop` waits until brokers accept the rest
        await attempted(producer._sender.close(), seconds / 3)  # noqa: SLF001
        await Client(producer.client).close(seconds)

    def _texts(
        self, publications: Sequence[Publication], ledger: Ledger, parts: Sequence[bytes]
    ) -> Mapping[str, Iterable[Texts]]:
        """Return the records to write by topic, in order."""
        spec = self._spec
        texts: dict[str, Iterable[Texts]] = {}
        if spec.outcomes_topic is not None:
            texts[spec.outcomes_topic] = joined(
                (outcome_texts(part) for each in publications for part in each.lines()), _BATCH_BYTES
            )
        if spec.events_topic is not None:
            events = [event for each in publications for event in each.events]
            texts[spec.events_topic] = [texts_of([(each.key.encode(), each.value) for each in events])]
        name = spec.transactional_id
        records = [(part_key(name, number), part) for number, part in enumerate(parts)]
        # The reader applies the parts when it reads the ledger's record, which is last.
        texts[spec.ledger_topic] = [texts_of([*records, (name.encode(), ledger.encode())])]
        return texts

    async def _send(self, topic: str, texts: Texts, sent: list[asyncio.Future[Any]]) -> None:
        """Send records in batches, in order within each partition; adds the batches' futures to `sent`."""
        partitions, partitioner = self._partitions[topic], DefaultPartitioner()
        keys = [texts.keys[i:j].tobytes() for i, j in pairwise(texts.key_ends.tolist())]
        of_keys = np.array([partitioner(key, partitions, partitions) for key in keys], np.int64)
        of_each = of_keys[texts.key_numbers]
        for partition in np.unique(of_each).tolist():
            for batch in batches_of(texts, np.flatnonzero(of_each == partition), _BATCH_BYTES):
                future = await self._producer.send_batch(batch, topic, partition=partition)
                future.add_done_callback(_note)  # once one failed, nobody awaits the others
                sent.append(future)
                await asyncio.sleep(0)

    async def _look_at_topics(self, client: Any) -> None:
        spec = self._spec
        listing = await list_topics(client)
        for setting, topic in spec.topics.items():
            if topic not in listing:
                raise PublishingRefused(
                    f"{setting}: expected a topic that exists, got {topic!r}: create it with the partitions"
                    " and the retention that you want"
                )
        if spec.ledger_topic not in listing:
            await _create_ledger(spec)
            listing = await list_topics(client)
        made = listing.get(spec.ledger_topic)
        await require_ledger(spec, 1 if made is None else len(made.leaders))
        self._partitions = {topic: sorted(listed.leaders) for topic, listed in listing.items()}
        self._partitions.setdefault(spec.ledger_topic, [0])


def outcome_texts(part: OutcomeLinesPart) -> Texts:
    """Make the texts of outcomes: each line, without its line feed, is a value."""
    ends = part.written.ends
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    keys = [key.encode() for key in part.keys]
    key_ends = np.zeros(len(keys) + 1, np.int64)
    np.cumsum([len(key) for key in keys], out=key_ends[1:])
    of_keys = np.frombuffer(b"".join(keys), np.uint8)
    return Texts(part.written.text, starts, ends - 1, of_keys, key_ends, part.key_numbers)


def _note(future: asyncio.Future[Any]) -> None:
    """Retrieve a future's exception, so that asyncio does not log it as never retrieved."""
    if not future.cancelled():
        future.exception()


def _errors_of(sent: Iterable[asyncio.Future[Any]]) -> list[BaseException]:
    """Return the errors of batches that were answered, those that tell of a later producer first."""
    done = [each for each in sent if each.done() and not each.cancelled()]
    found = [error for each in done if (error := each.exception()) is not None]
    return sorted(found, key=lambda error: not isinstance(error, kafka_errors.ProducerFenced))


def _failure_of(error: BaseException) -> PublishingFailed | None:
    """Convert an error of the client to PublishingFailed; None for any other error."""
    if isinstance(error, kafka_errors.ProducerFenced):
        return ProducerWasFenced("brokers refuse the producer: another one was opened, or it took too long")
    if isinstance(error, kafka_errors.IllegalOperation):
        return PublishingFailed("the transaction was ended by brokers while its records were being sent")
    return PublishingFailed(worded(error)) if isinstance(error, CONNECTION_ERRORS) else None


async def _create_ledger(spec: TransactionsSpec) -> None:
    async with administration(spec.kafka) as admin:
        cluster = await admin.describe_cluster()
        copies = min(_MOST_COPIES, len(cluster["brokers"]))
        topic = NewTopic(spec.ledger_topic, 1, copies, topic_configs=_LEDGER_CONFIGS)
        answer = await admin.create_topics([topic])
    for _, code, *rest in answer.topic_errors:
        error = kafka_errors.for_code(code)
        if code and error is not kafka_errors.TopicAlreadyExistsError:
            raise PublishingRefused(f"ledger.topic: cannot create {spec.ledger_topic!r}: {rest}")


async def require_ledger(spec: TransactionsSpec, partitions: int) -> None:
    """Check that the ledger's topic has one partition and keeps its newest record for ever.

    Raises
    ------
    PublishingRefused
        It has several partitions, is not compacted, or is compacted and loses old records besides.
    """
    if partitions != 1:
        raise PublishingRefused(
            f"ledger.topic: expected a topic with one partition, {spec.ledger_topic!r} has {partitions}"
        )
    async with administration(spec.kafka) as admin:
        asked = ConfigResource(ConfigResourceType.TOPIC, spec.ledger_topic, dict.fromkeys(_KEEPING))
        answers = await admin.describe_configs([asked])
    for answer in answers:
        for _, _, _, _, entries in answer.resources:
            found = {name: value for name, value, *_ in entries if value is not None}
            policy = found.get("cleanup.policy", "compact")
            loses = any(found.get(limit, "-1") != "-1" for limit in ("retention.ms", "retention.bytes"))
            if "compact" not in policy or ("delete" in policy and loses):
                raise PublishingRefused(
                    f"ledger.topic: expected cleanup.policy compact, {spec.ledger_topic!r} has {policy!r}:"
                    " its newest record must be kept longer than the retention time"
                )


# Reader of the ledger topic: the latest committed record of a deployment, and its decisions.
#
# A reader of committed records stops before the oldest open transaction, also of another deployment. The end
# of the topic is therefore read by a second client, with uncommitted reads, and the first one reads up to it:
# otherwise it would miss records that this deployment committed after the beginning of an open transaction.


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
