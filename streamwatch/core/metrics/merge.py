"""Series of the one order and its clock."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

MERGE: Final = (
    gauge("clock_timestamp_seconds", "Time of the record evaluated last; it never goes back."),
    gauge(
        "watermark_timestamp_seconds",
        "Newest record time of a partition among what was evaluated.",
        "partition",
        "topic",
    ),
    counter("records_evaluated_total", "Records evaluated, by topic, whatever became of them.", "topic"),
    counter(
        "events_evaluated_total",
        "Events that these records hold: as many, or more where a record holds several; valid or not.",
        "topic",
    ),
    counter(
        "records_skipped_total",
        "Records among them of which no mapping of the topic makes an event (`when`, or an envelope).",
        "topic",
    ),
    counter(
        "predictions_tied_total",
        "Predictions whose class was one of several with the largest score: the first of these was taken.",
        "topic",
    ),
    counter(
        "records_out_of_order_total",
        "Records that came after a later one; evaluated at the clock's time.",
        "topic",
    ),
    counter(
        "records_lateness_seconds_total", "Sum of the times by which records out of order came late.", "topic"
    ),
    counter(
        "timestamps_corrected_total",
        "Record timestamps not believed and replaced by the newest time of their partition.",
        "reason",
    ),
    counter(
        "partitions_left_behind_total",
        "Times a partition was no longer waited for, after time.max_hold_back.",
    ),
    gauge("merge_held_records", "Records read that wait until no earlier record can come."),
    gauge(
        "merge_hold_seconds",
        "Time the next record has waited for a partition to be read or found at its end.",
        "partition",
        "topic",
    ),
    gauge(
        "host_clock_behind",
        "1 while most records carry times beyond the host's clock, which is not asked then; of a job: "
        "beyond its driver's.",
    ),
)
