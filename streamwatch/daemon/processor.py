"""Protocol of a processor: what the consume loop and commits need of whatever takes in polled records."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Protocol

from streamwatch.core.buckets.results import DataLoss
from streamwatch.core.events import Alarm, Partition
from streamwatch.core.join.cold.guests import Work
from streamwatch.core.merge import MergeProgress
from streamwatch.core.metrics.series import Family, Report
from streamwatch.core.ports import CommitBatch, Poll, Record
from streamwatch.daemon.batch_processor import StoreMaintenance
from streamwatch.daemon.merged_records import RejectedRecords


class Checkpointing(Protocol):
    """Content of a commit beside positions and alarms."""

    @property
    def commits(self) -> int:
        """Number of the last commit."""
        ...

    def changes(
        self, sections: Mapping[str, bytes], outbox: Mapping[str, bytes | None] | None = None
    ) -> CommitBatch:
        """Build the next commit; `sections` and `outbox` are what others add to it."""
        ...


class Processor(Protocol):
    """Takes in what polls deliver (`BatchProcessor`, `ResultsProcessor`)."""

    @property
    def records(self) -> int:
        """Records read since the start."""
        ...

    @property
    def positions(self) -> Mapping[Partition, int]:
        """Positions after what was evaluated."""
        ...

    @property
    def progress(self) -> MergeProgress:
        """Progress of the evaluation along the sequence of records."""
        ...

    @property
    def uncommitted(self) -> int:
        """Events evaluated since `settle`."""
        ...

    @property
    def uncommitted_scores(self) -> int:
        """Scores among them."""
        ...

    @property
    def has_ready(self) -> bool:
        """Return whether records are ready for `evaluate`."""
        ...

    @property
    def has_report(self) -> bool:
        """Return whether there is a report: there is none of what is half read."""
        ...

    @property
    def is_empty(self) -> bool:
        """Return whether everything was read and a report would be empty."""
        ...

    @property
    def data_loss(self) -> DataLoss:
        """Records that others than the source found missing of their logs since the beginning."""
        ...

    @property
    def rejected(self) -> RejectedRecords:
        """Invalid records on their way to another topic."""
        ...

    @property
    def maintenance(self) -> StoreMaintenance | None:
        """Merges of entries outside the join's table; None where there are none."""
        ...

    def settle(self) -> tuple[Sequence[Alarm], Sequence[str]]:
        """Hand over alarms and retired models since the last commit, which are being committed."""
        ...

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Return whether something is yet to be evaluated that was read by then."""
        ...

    def crowded(self) -> frozenset[Partition]:
        """Name the partitions of which no more should be asked for now."""
        ...

    def flush(self, moved: frozenset[Partition]) -> None:
        """Note that the logs of these partitions are no longer there; nothing may be ready."""
        ...

    def forget_records(self, partitions: frozenset[Partition]) -> None:
        """Forget the records by which these logs were recognised, as the logs were replaced."""
        ...

    def take_newest(self) -> Mapping[Partition, Record]:
        """Hand over the last records evaluated since the last call, by which the logs are recognised."""
        ...

    async def receive(self, poll: Poll, *, connected: bool = True) -> None:
        """Take in what a poll delivered; nothing may be ready."""
        ...

    async def make_room(self) -> None:
        """Make the room that `evaluate` needs, if that takes long."""
        ...

    def evaluate(self) -> int:
        """Evaluate as much as fits a turn; return the number of alarms raised."""
        ...

    def take_work(self) -> Work | None:
        """Hand over what has to be done before `evaluate` goes on, or anything is committed; for a thread."""
        ...

    def report_in_slices(self) -> Generator[None, None, Report]:
        """Build the report, giving way between slices of models."""
        ...

    def families(self) -> Sequence[Family]:
        """Metrics as of now, not of a commit."""
        ...
