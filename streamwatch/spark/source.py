"""Source of the job: a Python data source that cuts topics into batches and divides them among buckets."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from streamwatch.core.buckets.results import (
    LOSS,
    MARK,
    WATERMARK,
    BatchMark,
    DataLoss,
    encode_data_loss,
    encode_mark,
    encode_watermark,
)
from streamwatch.core.ports import Record
from streamwatch.core.records.events import Partition
from streamwatch.core.records.fetched import TIMESTAMP
from streamwatch.edge.sources.kafka.checking import asked
from streamwatch.edge.sources.kafka.connection import Connection
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.spark.holders import freeze_once
from streamwatch.spark.processors import SCHEMA, Row
from streamwatch.spark.reading import (
    Cut,
    CutSpec,
    Range,
    TopicLog,
    cut_of,
    next_cut,
    ranges,
    read_range,
    require_no_loss,
    require_same_settings,
    with_listed,
)

NAME: Final = "streamwatch_topics"
_Answer = TypeVar("_Answer")

Split = Callable[[Partition, Sequence[Record], int], Sequence[tuple[int, bytes]]]
"""Function from a partition, its records in order and the host's clock to (number, piece) of id buckets."""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Cluster and topics to read, and how their records are divided among buckets."""

    kafka: KafkaSpec
    topics: Sequence[str]
    """Topics in the order of the settings."""
    split: Callable[[], Split]
    """Builds the function that divides records; called in each task."""
    keys: Sequence[int]
    """Key of each id bucket, by number."""
    model_buckets: int
    rules: str
    """Hash of the settings of join and estimators."""
    most_records: int
    """Most records of a batch."""
    cuts: CutSpec = field(default_factory=CutSpec)


class RangePartition(InputPartition):
    """Work of one task: to read the range `wanted`, or if it is None to write the mark of the batch."""

    def __init__(self, cut: Cut, origin: int, wanted: Range | None) -> None:
        super().__init__(origin)
        self.cut = cut
        self.origin = origin
        self.wanted = wanted


def source_class(spec: SourceSpec) -> type[DataSource]:
    """Build the data source class of one job, to register in Spark.

    Its specification is in the class, not in options of the source: Spark shows options, and credentials
    among them, on its pages.
    """

    class Topics(DataSource):
        """Data source of one job."""

        @classmethod
        def name(cls) -> str:
            """Name of the format under which the source is read."""
            return NAME

        def schema(self) -> str:
            """Schema of the rows."""
            return SCHEMA

        def streamReader(self, schema: object) -> TopicsReader:  # noqa: N802 - Spark's name
            """Build the reader."""
            del schema
            return TopicsReader(spec)

    return Topics


class TopicsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Cuts batches (in the driver) and reads ranges (in tasks)."""

    def __init__(self, spec: SourceSpec) -> None:
        self._spec = spec
        self._until_ms: int | None = None
        self._until: Mapping[Partition, int] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the cut before the first batch, which Spark stores; the first batch reads nothing."""
        return self._first(secrets.token_hex(8)).document()

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the cut at the end of the next batch."""
        spec, last = self._spec, cut_of(start)
        require_same_settings(last, self._first(last.life))
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        now_ms = time.time_ns() // 1_000_000 if self._until_ms is None else self._until_ms

        async def ask(connection: Connection) -> Cut:
            log = TopicLog(connection, spec.kafka, spec.topics, self._until)
            if last.batch == 0:
                begin = spec.kafka.start_from
                positions = await connection.resolve(await log.partitions(), begin, now_ms)
                topic_ids = with_listed({}, await log.topic_ids())
                return replace(last, batch=1, host_ms=now_ms, positions=positions, topic_ids=topic_ids)
            cut = await next_cut(log, last, most, now_ms, spec.cuts)
            require_no_loss(last, cut, spec.kafka.on_data_loss)
            return cut

        return self._asked(ask).document()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of records per batch."""
        return ReadMaxRows(self._spec.most_records)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Return None, as the lag is among the results."""
        return None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Limit reading to the records that exist now, including those younger than `settle_ms`."""
        now_ms = time.time_ns() // 1_000_000
        self._until_ms = now_ms + self._spec.cuts.settle_ms + 1
        spec = self._spec

        async def ask(connection: Connection) -> Mapping[Partition, int]:
            ends = await TopicLog(connection, spec.kafka, spec.topics).ends()
            return {partition: end for partition, (_, end) in ends.items()}

        self._until = self._asked(ask)

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        """Return the work of a batch's tasks: one writes the mark, each other one reads a range."""
        begin, cut = cut_of(start), cut_of(end)
        if begin.batch in {0, cut.batch}:
            return []
        found = [
            RangePartition(cut, origin, wanted)
            for origin, wanted in enumerate(ranges(begin, cut, self._spec.topics), 1)
        ]
        return [RangePartition(cut, 0, None), *found]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Do the work of one task, and yield its rows for the id buckets."""
        spec = self._spec
        assert isinstance(partition, RangePartition)  # noqa: S101 - from `partitions`
        cut, origin = partition.cut, partition.origin
        batch, end_ms = cut.batch, cut.end_ms
        if partition.wanted is None:
            mark = BatchMark(cut.life, end_ms, cut.document()["positions"], dict(cut.waiting))
            yield Row(spec.keys[0], batch, end_ms, origin, 0, MARK, "", encode_mark(mark))
            if cut.replaced:
                body = encode_data_loss(DataLoss(Counter(cut.replaced.values())))
                yield Row(spec.keys[0], batch, end_ms, origin, 1, LOSS, f"replaced/{batch}", body)
            return
        wanted = partition.wanted
        found = self._asked(lambda connection: read_range(connection, spec.kafka, wanted))
        pieces = spec.split()(wanted.partition, found.records, cut.host_ms)
        for part, (bucket, piece) in enumerate(pieces):
            yield Row(spec.keys[bucket], batch, end_ms, origin, part, None, None, piece)
        stamps = found.records.rows[:, TIMESTAMP]
        believed = stamps[(stamps >= 0) & (stamps <= end_ms)]  # a later one is held, or corrected
        if len(believed):
            name, body = encode_watermark(wanted.partition, int(believed.max()))
            yield Row(spec.keys[0], batch, end_ms, origin, 0, WATERMARK, name, body)
        if found.lost_times:
            name = f"{wanted.partition.topic}/{wanted.partition.partition}/{wanted.begin}"
            body = encode_data_loss(DataLoss(dict(found.lost_times), dict(found.lost_records)))
            yield Row(spec.keys[0], batch, end_ms, origin, 0, LOSS, name, body)
        freeze_once()

    def _first(self, life: str) -> Cut:
        spec = self._spec
        return Cut(life, len(spec.keys), spec.model_buckets, spec.rules)

    def _asked(self, ask: Callable[[Connection], Awaitable[_Answer]]) -> _Answer:
        return asyncio.run(asked(self._spec.kafka, ask))
