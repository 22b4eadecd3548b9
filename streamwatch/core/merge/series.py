"""Metrics of the merge: the clock, record times, corrected timestamps, held records."""

from __future__ import annotations

from streamwatch.core.merge.merge import Merge
from streamwatch.core.merge.progress import MergeProgress
from streamwatch.core.metrics import family, single
from streamwatch.core.series import Family


def progress_families(progress: MergeProgress) -> list[Family]:
    """Series of the evaluated part of the sequence, and of records out of order or corrected."""
    seconds = {topic: late_ms / 1_000 for topic, late_ms in progress.lateness_ms.items()}
    watermarks = [
        ((str(partition.partition), partition.topic), ms / 1_000)
        for partition, ms in sorted(progress.running_ms.items())
        if ms >= 0
    ]
    late = [((topic,), float(count)) for topic, count in sorted(progress.out_of_order.items())]
    corrected = [((reason,), float(count)) for reason, count in sorted(progress.corrected.items())]
    return [
        single("clock_timestamp_seconds", progress.clock_ms / 1_000 if progress.clock_ms >= 0 else None),
        family("watermark_timestamp_seconds", watermarks),
        *(
            family(name, [((topic,), float(count)) for topic, count in sorted(counts.items())])
            for name, counts in (
                ("records_evaluated_total", progress.evaluated),
                ("events_evaluated_total", progress.events),
                ("records_skipped_total", progress.skipped),
                ("predictions_tied_total", progress.tied),
            )
        ),
        family("records_out_of_order_total", late),
        family(
            "records_lateness_seconds_total", [((topic,), sum_) for topic, sum_ in sorted(seconds.items())]
        ),
        family("timestamps_corrected_total", corrected),
        single("partitions_left_behind_total", float(progress.left_behind)),
    ]


def held_families(merge: Merge, now_ms: int) -> list[Family]:
    """Series of records read and not released yet, as of now instead of the last commit."""
    holds = [
        ((str(partition.partition), partition.topic), seconds)
        for partition, seconds in sorted(merge.holds(now_ms).items())
    ]
    return [
        single("merge_held_records", float(merge.held_records)),
        family("merge_hold_seconds", holds),
        single("host_clock_behind", float(merge.host_is_behind)),
    ]
