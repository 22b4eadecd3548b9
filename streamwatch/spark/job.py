"""The streaming query: topics, buckets of ids, buckets of models, results topic."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamwatch.spark.processors import RESULT_SCHEMA, SCHEMA, Stage, StageSpec
from streamwatch.spark.sink import ResultsSink, SinkSpec
from streamwatch.spark.source import NAME, SourceSpec, source_class
from streamwatch.telemetry import InternalEvent

REQUIRED: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Deltas are written as changes, not as files of the whole state; and map states of several MB fit.
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.python.worker.reuse": "true",
        "spark.sql.session.timeZone": "UTC",
        # Adaptive execution would merge shuffle partitions, which stages with state do not allow.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        # Spark passes this in the environment to workers of stages only: if it were set, sources would have
        # another environment, and so workers of their own.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    }
)
"""Configuration of Spark that the job relies on."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One job."""

    source: SourceSpec
    ids: StageSpec
    models: StageSpec
    sink: SinkSpec
    checkpoint: str
    """Where Spark keeps offsets and state: a path that driver and executors reach."""
    partitions: int
    """Shuffle partitions of both stages."""
    interval_seconds: float = 10.0
    """Seconds from the beginning of a batch to that of the next, if it takes less."""
    configuration: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further configuration of Spark."""
    workers: str = "pyspark.daemon"
    """Module that Spark starts on every executor, and that forks Python workers."""


Trigger = Literal["continuously", "available now"]


def session(spec: JobSpec, master: str | None) -> SparkSession:
    """Create the Spark session; with `master` None, `spark-submit` chooses the master."""
    builder = SparkSession.builder.appName("streamwatch")
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):  # tasks run on this machine, with what is installed here
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        **spec.configuration,
        **REQUIRED,
        "spark.sql.shuffle.partitions": str(spec.partitions),
        "spark.python.daemon.module": spec.workers,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    # Spark sets it for functions and not for sources, which would then get a parent of workers of their own.
    found.sparkContext.environment.pop("PYTHONHASHSEED", None)
    return found


def start(
    spec: JobSpec,
    spark: SparkSession,
    trigger: Trigger = "continuously",
    emit: Callable[[InternalEvent], None] = lambda _: None,
) -> StreamingQuery:
    """Make the results topic if there is none, and start the query; `emit` receives an event for each batch.

    Raises
    ------
    ResultsTopicError
        The results topic cannot be used.
    KafkaUnreachable
        No broker answered, or none let the client in.
    """
    sink = ResultsSink(spec.sink, emit)
    sink.prepare()
    spark.dataSource.register(source_class(spec.source))
    pieces = spark.readStream.format(NAME).load()
    joined = pieces.groupBy("bucket").transformWithState(Stage(spec.ids), SCHEMA, "Append", "None")
    evaluated = joined.groupBy("bucket").transformWithState(
        Stage(spec.models), RESULT_SCHEMA, "Append", "None"
    )
    writer = (
        evaluated.writeStream.foreachBatch(sink)
        .outputMode("append")
        .option("checkpointLocation", spec.checkpoint)
        .queryName("streamwatch")
    )
    if trigger == "available now":
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{spec.interval_seconds} seconds").start()
