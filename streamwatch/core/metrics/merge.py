"""Series of the one order and its clock."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

MERGE: Final = (
    gauge("clock_timestamp_seconds", "Time of the latest evaluated record. It never goes back."),
    gauge(
        "watermark_timestamp_seconds",
        "Latest record time among the evaluated records of a partition.",
        "partition",
        "topic",
    ),
    counter("records_evaluated_total", "Evaluated records by topic, whatever their result.", "topic"),
    counter(
        "events_evaluated_total",
        "Events in the evaluated records, valid or not; more than records if a record holds several.",
        "topic",
    ),
    counter(
        "records_skipped_total",
        "Evaluated records from which no mapping of the topic makes an event (`when`, or an envelope).",
        "topic",
    ),
    counter(
        "predictions_tied_total",
        "Predictions for which several classes had the largest score; the first of them was taken.",
        "topic",
    ),
    counter(
        "records_out_of_order_total",
        "Records that arrived after a later one had been evaluated; evaluated at the time of the clock.",
        "topic",
    ),
    counter(
        "records_lateness_seconds_total", "Sum of the times by which out-of-order records were late.", "topic"
    ),
    counter(
        "timestamps_corrected_total",
        "Implausible record timestamps that were replaced by the latest time of their partition, by reason.",
        "reason",
    ),
    counter(
        "partitions_left_behind_total",
        "Times that a partition was no longer waited for, after time.max_hold_back.",
    ),
    gauge("merge_held_records", "Records that wait until no earlier record can arrive."),
    gauge(
        "merge_hold_seconds",
        "Time for which the next record has waited for a partition to be read or found at its end.",
        "partition",
        "topic",
    ),
    gauge(
        "host_clock_behind",
        "1 while most records have times beyond the host's clock, which is ignored meanwhile (for "
        "a Spark job, the driver's clock), else 0.",
    ),
)
