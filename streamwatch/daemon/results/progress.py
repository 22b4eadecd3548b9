"""How far a distributed run has come, as its results topic tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from streamwatch.core.buckets.totals import RecordCounts
from streamwatch.core.events import Partition
from streamwatch.core.merge import MergeProgress
from streamwatch.core.merge.timestamps import FUTURE, REASONS
from streamwatch.core.metrics import family, single
from streamwatch.core.results import BatchMark
from streamwatch.core.series import Family


@dataclass(slots=True)
class RunProgress:
    """The newest batch that was taken in, and the newest record times."""

    batch: int = 0
    """Number of the batch; 0 before the first."""
    written_ms: int = 0
    """Time of its mark in the topic."""
    mark: BatchMark = field(default_factory=lambda: BatchMark("", -1))
    running_ms: dict[Partition, int] = field(default_factory=dict[Partition, int])
    """Newest record time by partition of the job's topics."""
    host_is_behind: bool | None = None
    """Whether most records since the take before carried times from the future of the job's clock, and were
    corrected for it; None before there is one to compare with."""
    _counted: tuple[int, int] | None = None
    """Records evaluated up to the last take, and those of them from the future."""

    def note(self, records: RecordCounts) -> None:
        """Compare the counts of records, which are since the beginning, with those of the take before."""
        counted = sum(records.evaluated.values()), records.corrected.get(REASONS[FUTURE], 0)
        if self._counted is not None and counted[0] > self._counted[0]:
            evaluated, future = (now - before for now, before in zip(counted, self._counted, strict=True))
            self.host_is_behind = 2 * future > evaluated
        self._counted = counted

    def families(self) -> Sequence[Family]:
        """Series of the batch; without samples before the first."""
        mark, there = self.mark, self.batch > 0
        return [
            single("results_batch", float(self.batch) if there else None),
            single("results_batch_timestamp_seconds", self.written_ms / 1_000 if there else None),
            single("results_batch_end_timestamp_seconds", mark.end_ms / 1_000 if there else None),
            family(
                "results_waiting_records",
                [((topic,), float(records)) for topic, records in sorted(mark.waiting.items())],
            ),
        ]

    def of_records(self, records: RecordCounts, clock_ms: int) -> MergeProgress:
        """Counts of records as the series of a sequence show them."""
        counts = {each.name: getattr(records, each.name) for each in fields(RecordCounts)}
        return MergeProgress(clock_ms=clock_ms, running_ms=self.running_ms, **counts)
