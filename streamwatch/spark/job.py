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
        # Only changes of the state are written, not all of it; and map states of several MB are possible.
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.python.worker.reuse": "true",
        "spark.sql.session.timeZone": "UTC",
        # Adaptive execution would merge shuffle partitions, which stages with state do not allow.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        # If set, Spark would put this into the environment of workers of stages only; sources, having another
        # environment, would get workers of their own.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    }
)
"""Configuration of Spark that the job relies on."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Specification of one job."""

    source: SourceSpec
    ids: StageSpec
    models: StageSpec
    sink: SinkSpec
    checkpoint: str
    """Path at which Spark keeps offsets and state; driver and executors must be able to access it."""
    partitions: int
    """Number of shuffle partitions of both stages."""
    interval_seconds: float = 10.0
    """Least seconds from the beginning of a batch to that of the next."""
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
    # Spark sets this for functions and not for sources, which would then have another parent of workers.
    found.sparkContext.environment.pop("PYTHONHASHSEED", None)
    return found


def start(
    spec: JobSpec,
    spark: SparkSession,
    trigger: Trigger = "continuously",
    emit: Callable[[InternalEvent], None] = lambda _: None,
) -> StreamingQuery:
    """Create the results topic if it is missing, and start the query; `emit` gets an event for each batch.

    Raises
    ------
    ResultsTopicError
        If the results topic cannot be used.
    KafkaUnreachable
        If no broker answered, or none accepted the client.
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
