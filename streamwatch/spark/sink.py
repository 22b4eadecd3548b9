"""Sink of the job: writes the results of a batch to the results topic in one transaction."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import aiokafka.errors as kafka_errors
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streamwatch.core.buckets.results import MARK, MOST_BYTES, BatchMark, ResultRecord, mark_of
from streamwatch.edge.sources.kafka.checking import list_topics
from streamwatch.edge.sources.kafka.client import connection_options
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.spark.processors import PackedResults, ResultRow
from streamwatch.telemetry import BatchWritten, InternalEvent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_COPIES: Final = 3
_TRANSACTION_MS: Final = 60_000


class ResultsTopicError(Exception):
    """Results topic that cannot be created or used."""


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """Brokers and topic to write results to."""

    kafka: KafkaSpec
    topic: str


class ResultsSink:
    """Called by Spark with the rows of each batch (`foreachBatch`), in the driver.

    Parameters
    ----------
    spec
        Brokers and topic to write results to.
    emit
        Function that is called with an event for each batch written.
    """

    def __init__(self, spec: SinkSpec, emit: Callable[[InternalEvent], None] = lambda _: None) -> None:
        self._spec = spec
        self._emit = emit

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write the results of a batch; Spark counts it as done once this returns."""
        del batch_id  # rows have the batch's number; Spark's restarts with a new checkpoint
        table: Any = frame.toArrow()
        columns: list[list[Any]] = [table.column(name).to_pylist() for name in PackedResults._fields]
        packed = [PackedResults(*row) for row in zip(*columns, strict=True)]
        self.write([result for row in packed for result in row.unpacked()])

    def write(self, rows: Sequence[ResultRow]) -> None:
        """Write results in one transaction, the mark last; does nothing without results."""
        if not rows:
            return
        began, records = time.monotonic(), records_of(rows)
        asyncio.run(self._write(records))
        mark = mark_of(records[-1].body)
        self._emit(
            BatchWritten(
                records[-1].batch,
                mark.end_ms,
                len(records),
                sum(len(record.body) for record in records),
                sum(mark.waiting.values()),
                round(time.monotonic() - began, 3),
            )
        )

    def prepare(self) -> None:
        """Create the topic if it is missing.

        Raises
        ------
        ResultsTopicError
            If it has several partitions, or cannot be created.
        """
        asyncio.run(self._prepare())

    async def _prepare(self) -> None:
        spec = self._spec
        partitions = (await list_topics(spec.kafka)).get(spec.topic)
        if partitions is None:
            admin = AIOKafkaAdminClient(**connection_options(spec.kafka))
            await admin.start()
            try:
                configs = {"cleanup.policy": "compact", "max.message.bytes": str(MOST_BYTES)}
                cluster: Any = await admin.describe_cluster()
                copies = min(_MOST_COPIES, len(cluster["brokers"]))
                topic = NewTopic(spec.topic, 1, copies, topic_configs=configs)
                answer: Any = await admin.create_topics([topic])
            finally:
                await admin.close()
            for _, code, *rest in answer.topic_errors:
                error = kafka_errors.for_code(code)
                if code and error is not kafka_errors.TopicAlreadyExistsError:
                    raise ResultsTopicError(
                        f"spark.results_topic: cannot make {spec.topic!r}: {error.__name__} {rest}"
                    )
        elif partitions != 1:
            raise ResultsTopicError(
                f"spark.results_topic: expected a topic with one partition, {spec.topic!r} has {partitions}: "
                "the results of a batch must stay in order"
            )

    async def _write(self, records: Iterable[ResultRecord]) -> None:
        producer = AIOKafkaProducer(
            **connection_options(self._spec.kafka),
            transactional_id=f"streamwatch-{self._spec.topic}",
            transaction_timeout_ms=_TRANSACTION_MS,
            max_request_size=MOST_BYTES,
            acks="all",
        )
        await producer.start()
        try:
            async with producer.transaction():
                sent = [
                    await producer.send(
                        self._spec.topic, record.value() if record.body else None, record.key, partition=0
                    )
                    for record in records
                ]
                await asyncio.gather(*sent)
        finally:
            await producer.stop()


def records_of(rows: Sequence[ResultRow]) -> list[ResultRecord]:
    """Convert the results of one batch to records in canonical order, its mark last.

    Raises
    ------
    ValueError
        If rows are of several batches, or do not have exactly one mark.
    """
    batches = {row.batch for row in rows}
    marks: list[BatchMark] = [mark_of(row.body) for row in rows if row.kind == MARK]
    if len(batches) != 1 or len(marks) != 1:
        raise ValueError(
            f"expected rows of one batch with one mark, got batches {batches}, {len(marks)} marks"
        )
    ordered = sorted(rows, key=lambda row: (row.kind == MARK, row.kind, row.name))
    return [ResultRecord(marks[0].life, row.batch, row.kind, row.name, row.body) for row in ordered]
