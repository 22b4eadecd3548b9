"""The Spark job, built from the settings: its spec, and the buckets that its tasks build."""

from __future__ import annotations

import pickle
import re
import signal
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from threading import Event
from typing import Final, Protocol, TypeVar

from pyspark.errors import StreamingQueryException

from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.assembly.job_settings import buckets_spec, checkpoint_of
from streamwatch.assembly.topics import build_topics
from streamwatch.core.buckets.contract import Bucket, BucketsSpec, Reader
from streamwatch.core.buckets.id_bucket import ColumnIdBucket
from streamwatch.core.buckets.model_bucket import ColumnModelBucket
from streamwatch.core.buckets.reader import ColumnReader
from streamwatch.core.merge import arrivals_of
from streamwatch.core.ports import Record
from streamwatch.core.records.events import Partition
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
from streamwatch.telemetry import Telemetry


class JobRefused(Exception):  # noqa: N818 - the name says what happened
    """The job ended for a reason that a restart cannot solve; the text says what to change."""


class JobFailed(Exception):  # noqa: N818 - the name says what happened
    """The job ended or could not begin; a restart continues it."""


REFUSED = (SettingsError, TopicsMissing, ResultsTopicError, JobRefused)
"""Errors of a job that a restart cannot solve; each text says what to change."""
RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 20.0)
"""Delays between attempts to reach a broker at the start of a job."""
_REFUSALS: Final = re.compile(
    r"\b(?:SettingsChangedError|SettingsError|TopicsMissing|ResultsTopicError|ReadDenied): (?P<why>[^\n]+)"
)
"""Errors of sources and sinks that a restart cannot solve, in Spark's report."""
_ERROR: Final = re.compile(
    r"^(?:[\w.]*\.)?(?P<name>[A-Z]\w*(?:Error|Exception|Unreachable|Lost)): (?P<why>[^\n]+)", re.MULTILINE
)
"""Last line of a Python traceback."""
_Made = TypeVar("_Made")
_LOOK_SECONDS: Final = 0.5
"""Interval at which it is checked whether a signal was received."""


class Buckets(Protocol):
    """Factory of buckets and of their input, pickled and sent to the tasks."""

    def split(self) -> Split:
        """Make the function that divides records among the buckets of ids."""
        ...

    def ids(self, number: int) -> Bucket:
        """Make a bucket of ids without state."""
        ...

    def models(self, number: int) -> Bucket:
        """Make a bucket of models without state."""
        ...


@dataclass(frozen=True, slots=True)
class SettingsBuckets:
    """Factory of the buckets that the settings describe."""

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
        if batch.vocabulary.full():  # the pieces contain names, not numbers of the vocabulary
            batch.vocabulary.release_all_but(batch.rows[:0])
        return pieces


_SPLITS: dict[bytes, RecordSplit] = {}
"""Splits of this worker process by pickled factory."""


def rules_hash(settings: Settings) -> str:
    """Hash the specs that decide how a record changes a state, as 16 hexadecimal digits."""
    rules = (specs.join_spec(settings), specs.monitors_spec(settings), specs.folds_scheme(settings))
    return sha256(repr(rules).encode()).hexdigest()[:16]


def job_spec(settings: Settings, buckets: Buckets) -> JobSpec:
    """Build the spec of the job.

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
    """Run the job until SIGTERM or SIGINT; with `available_now`, until the topics are read to their ends.

    A batch that fails in all of Spark's attempts ends the job; the next start continues it.

    Raises
    ------
    SettingsError, TopicsMissing, ResultsTopicError, JobRefused
        If something must be changed before a restart.
    JobFailed
        If no broker could be reached, or a batch failed.
    """
    spec = job_spec(settings, SettingsBuckets(settings, buckets_spec(settings)))
    spark = job.session(spec, master)
    try:
        telemetry = Telemetry(settings.log.level, settings.log.format)
        trigger = "available now" if available_now else "continuously"
        query = reached(lambda: job.start(spec, spark, trigger, telemetry.emit), time.sleep)
        run_until_asked(query)
    except StreamingQueryException as error:
        raise explained(str(error)) from error
    finally:
        spark.stop()


def reached(begin: Callable[[], _Made], sleep: Callable[[float], None]) -> _Made:
    """Return `begin()`, retried while no broker can be reached; raises `JobFailed` after the last attempt."""
    for delay in RETRY_SECONDS:
        try:
            return begin()
        except KafkaUnreachable:
            sleep(delay)
    try:
        return begin()
    except KafkaUnreachable as error:
        raise JobFailed(f"{error} (tried {len(RETRY_SECONDS) + 1} times)") from error


def explained(report: str) -> JobRefused | JobFailed:
    """Summarize in one line why a query ended, from the pages of text that Spark reports."""
    if (refusal := _REFUSALS.search(report)) is not None:
        return JobRefused(refusal["why"].strip())
    errors = [f"{found['name']}: {found['why'].strip()}" for found in _ERROR.finditer(report)]
    first = next((line.strip() for line in report.splitlines() if line.strip()), "no reason was given")
    return JobFailed(f"a batch failed: {errors[-1] if errors else first}; Spark's log has the rest")


class Query(Protocol):
    """The used part of Spark's `StreamingQuery`."""

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 - Spark's name
        """Return whether the query ended within `timeout` seconds; raises the error that ended it.

        Without a time limit it returns None once the query has ended.
        """
        ...

    def stop(self) -> None:
        """End the query."""
        ...


def run_until_asked(query: Query) -> None:
    """Wait until a query ends, or stop it at SIGTERM or SIGINT; raises the error that ended it.

    After a stop the next start evaluates the current batch again. The signal handler only sets a flag: it
    runs during a call to Java, whose connection accepts no second call before the first has returned.
    """
    with _asked() as asked:
        while not query.awaitTermination(_LOOK_SECONDS):
            if asked.is_set():
                query.stop()
                return


@contextmanager
def _asked() -> Generator[Event]:
    """Yield an event that SIGTERM and SIGINT set; restores the previous handlers afterwards."""
    asked = Event()

    def note(_number: int, _frame: object) -> None:
        asked.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
