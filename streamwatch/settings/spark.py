"""`spark`: the same rules on Spark, for more events than one process takes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamwatch.settings.durations import Duration, Lasting
from streamwatch.settings.sections import Bounded, Count, Section


class SparkSection(Section):
    """The job of `streamwatch spark`: the same rules on Spark Structured Streaming."""

    checkpoint: str | None = None
    """Required for Spark: where it keeps offsets and state, as a path or URL that the driver and the
    executors can reach."""
    results_topic: str = "streamwatch-results"
    """Compacted topic with one partition for the results of the job. It is created if it does not exist."""
    id_buckets: Annotated[int, Bounded(least=1, most=10_000)] = 4
    """Number of parts into which ids are divided, each joined by a task of its own. Fixed at the first
    start."""
    model_buckets: Annotated[int, Bounded(least=1, most=10_000)] = 3
    """Number of parts into which models are divided, each evaluated by a task of its own. Fixed at the first
    start."""
    interval: Annotated[Duration, Lasting("100ms", "1h")] = 10_000
    """Time from the start of one batch to the start of the next, unless a batch takes longer."""
    batch_records: Count = 500_000
    """Number of records in a batch. It is exceeded only by records that have the same time."""
    configuration: dict[str, str] = Field(default_factory=dict)
    """Further configuration of Spark, such as {spark.executor.memory: 4g}."""
