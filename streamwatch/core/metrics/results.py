"""Series of a distributed run, as the daemon that shows its results tells of it."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import gauge

RESULTS: Final = (
    gauge("results_batch", "Number of the latest batch of the Spark job that was read."),
    gauge("results_batch_timestamp_seconds", "Time at which the job wrote that batch."),
    gauge("results_batch_end_timestamp_seconds", "Record time up to which that batch extends."),
    gauge(
        "results_waiting_records",
        "Records of the job's topics beyond that batch when its end was chosen, including records "
        "younger than time.settle.",
        "topic",
    ),
)
