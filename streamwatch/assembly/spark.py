"""From settings to the Spark job: specifications, and what tasks make of them in their own processes."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from threading import Event
from typing import Final, Protocol

from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.assembly.job_settings import checkpoint_of
from streamwatch.assembly.results import buckets_spec
from streamwatch.assembly.topics import build_topics
from streamwatch.core.buckets.contract import Bucket, BucketsSpec, Reader
from streamwatch.core.buckets.id_bucket import ColumnIdBucket
from streamwatch.core.buckets.model_bucket import ColumnModelBucket
from streamwatch.core.buckets.reader import ColumnReader
from streamwatch.core.events import Partition
from streamwatch.core.merge import arrivals_of
from streamwatch.core.ports import Record
from streamwatch.daemon import Topic
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.sources.kafka import TopicsMissing
from streamwatch.edge.sources.kafka.checking import KafkaUnreachable
from streamwatch.settings import Settings, SettingsError
from streamwatch.spark import job
from streamwatch.spark.job import JobSpec
from streamwatch.spark.placement import dealt_keys
from streamwatch.spark.processors import StageSpec
from streamwatch.spark.reading import CutSpec
from streamwatch.spark.sink import ResultsTopicError, SinkSpec
from streamwatch.spark.source import SourceSpec, Split

REFUSED = (SettingsError, TopicsMissing, KafkaUnreachable, ResultsTopicError)
"""What a start may end with that no second attempt will cure; each says what to change."""
_LOOK_SECONDS: Final = 0.5
"""Between looks whether a signal came."""


class Buckets(Protocol):
    """Maker of buckets and of what feeds them, sent to the tasks."""

    def split(self) -> Split:
        """Make what divides records among the buckets of ids."""
        ...

    def ids(self, number: int) -> Bucket:
        """Make a bucket of ids without state."""
        ...

    def models(self, number: int) -> Bucket:
        """Make a bucket of models without state."""
        ...


@dataclass(frozen=True, slots=True)
class SettingsBuckets:
    """Buckets as the settings ask for them."""

    settings: Settings
    spec: BucketsSpec

    def split(self) -> Split:
        """See `Buckets`: decoders, which learn the shape of records, are kept in the worker process."""
        key = pickle.dumps(self)
        if key not in _SPLITS:
            on_disk = self.settings.state.model_copy(update={"kind": "rocksdb"})  # ids are known by digests
            topics = build_topics(self.settings.model_copy(update={"state": on_disk}))
            _SPLITS[key] = RecordSplit(topics, ColumnReader(self.spec, bytes_of_keys))
        return _SPLITS[key]

    def ids(self, number: int) -> Bucket:
        """See `Buckets`."""
        return ColumnIdBucket(number, self.spec)

    def models(self, number: int) -> Bucket:
        """See `Buckets`."""
        return ColumnModelBucket(number, self.spec)


@dataclass(frozen=True, slots=True)
class RecordSplit:
    """Decodes records of a partition and divides them: a `Split`."""

    topics: Mapping[str, Topic]
    reader: Reader

    def __call__(
        self, partition: Partition, records: Sequence[Record], host_ms: int
    ) -> Sequence[tuple[int, bytes]]:
        """See `Split`."""
        batch = self.topics[partition.topic].decoder.decode_batch(records)
        pieces = self.reader.split(partition, arrivals_of(records, batch), host_ms)
        if batch.vocabulary.full():  # the pieces name names by themselves
            batch.vocabulary.release_all_but(batch.rows[:0])
        return pieces


_SPLITS: dict[bytes, RecordSplit] = {}
"""By settings, in a worker process."""


def rules_hash(settings: Settings) -> str:
    """Hash of everything in the settings that changes what a record does to a state."""
    rules = (specs.join_spec(settings), specs.monitors_spec(settings), specs.folds_scheme(settings))
    return sha256(repr(rules).encode()).hexdigest()[:16]


def job_spec(settings: Settings, buckets: Buckets) -> JobSpec:
    """The job that the settings ask for.

    Raises
    ------
    SettingsError
        See `checkpoint_of`.
    """
    section = settings.spark
    checkpoint = checkpoint_of(settings)
    kafka = specs.kafka_spec(settings.kafka)
    id_keys = dealt_keys(section.id_buckets, section.id_buckets)
    model_keys = dealt_keys(section.model_buckets, section.id_buckets)
    return JobSpec(
        source=SourceSpec(
            kafka=kafka,
            topics=list(topic_properties.sides(settings.topics)),
            split=buckets.split,
            keys=id_keys,
            model_buckets=section.model_buckets,
            rules=rules_hash(settings),
            most_records=section.batch_records,
            cuts=CutSpec(settings.time.settle, settings.time.max_future),
        ),
        ids=StageSpec("ids", id_keys, buckets.ids, model_keys),
        models=StageSpec("models", model_keys, buckets.models),
        sink=SinkSpec(kafka, section.results_topic),
        checkpoint=checkpoint,
        partitions=section.id_buckets,
        interval_seconds=section.interval / 1_000,
        configuration=section.configuration,
        workers="streamwatch.assembly.spark_workers",
    )


def run_job(settings: Settings, master: str | None, *, available_now: bool) -> None:
    """Run the job until SIGTERM or SIGINT, or until it has read what there is; raises `REFUSED`.

    An error in a batch ends it, after as many attempts as Spark makes; the next start goes on.
    """
    spec = job_spec(settings, SettingsBuckets(settings, buckets_spec(settings)))
    spark = job.session(spec, master)
    try:
        query = job.start(spec, spark, "available now" if available_now else "continuously")
        run_until_asked(query)
    finally:
        spark.stop()


class Query(Protocol):
    """Streaming query of Spark, as far as it is waited for and stopped."""

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 - Spark's name
        """Tell whether it ended within so many seconds; raises the error that it ended with."""
        ...

    def stop(self) -> None:
        """End it."""
        ...


def run_until_asked(query: Query) -> None:
    """Wait until a query ends, or SIGTERM or SIGINT asks for it; raises the error that it ended with.

    The batch at hand is then taken again at the next start. A handler of signals only notes that it was
    called: it runs amid a call to Java, whose connection takes no second one before the first is answered.
    """
    with _asked() as asked:
        while not query.awaitTermination(_LOOK_SECONDS):
            if asked.is_set():
                query.stop()
                return


@contextmanager
def _asked() -> Generator[Event]:
    """Set when SIGTERM or SIGINT came; afterwards handlers are as they were."""
    asked = Event()

    def note(_number: int, _frame: object) -> None:
        asked.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
