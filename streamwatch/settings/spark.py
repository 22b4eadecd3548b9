"""`spark`: the same rules on Spark, for more events than one process takes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamwatch.settings.durations import Duration, Lasting
from streamwatch.settings.sections import Bounded, Count, Section


class SparkSection(Section):
    """`streamwatch spark`: the same rules on Spark Structured Streaming."""

    checkpoint: str | None = None
    """Where Spark keeps offsets and state: a path or URL that driver and executors reach; needed."""
    results_topic: str = "streamwatch-results"
    """Compacted topic with one partition for what the job finds; made if absent."""
    id_buckets: Annotated[int, Bounded(least=1, most=10_000)] = 4
    """Parts into which ids are divided: tasks that join side by side. Fixed at the first start."""
    model_buckets: Annotated[int, Bounded(least=1, most=10_000)] = 3
    """Parts into which models are divided: tasks that evaluate side by side. Fixed at the first start."""
    interval: Annotated[Duration, Lasting("100ms", "1h")] = 10_000
    """From the beginning of a batch to that of the next, if it takes less."""
    batch_records: Count = 500_000
    """Records in a batch, unless more of them have the same time."""
    configuration: dict[str, str] = Field(default_factory=dict)
    """Further configuration of Spark, such as {spark.executor.memory: 4g}."""
