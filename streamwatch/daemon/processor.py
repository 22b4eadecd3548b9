"""Protocols `Processor` and `Checkpointing`: evaluation of polled records, as the consume loop calls it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Protocol

from streamwatch.core.buckets.results import DataLoss
from streamwatch.core.join.cold.guests import Work
from streamwatch.core.merge import MergeProgress
from streamwatch.core.metrics.series import Family, Report
from streamwatch.core.ports import CommitBatch, Poll, Record
from streamwatch.core.records.events import Alarm, Partition
from streamwatch.daemon.batch_processor import StoreMaintenance
from streamwatch.daemon.merged_records import RejectedRecords


class Checkpointing(Protocol):
    """Builds the content of commits beside positions and alarms."""

    @property
    def commits(self) -> int:
        """Number of the last commit."""
        ...

    def changes(
        self, sections: Mapping[str, bytes], outbox: Mapping[str, bytes | None] | None = None
    ) -> CommitBatch:
        """Build the next commit.

        Parameters
        ----------
        sections
            Further sections of it, by name.
        outbox
            Changed entries of the outbox by id; None removes one.
        """
        ...


class Processor(Protocol):
    """Evaluates the records of polls (`BatchProcessor`, `ResultsProcessor`)."""

    @property
    def records(self) -> int:
        """Records read since the start."""
        ...

    @property
    def positions(self) -> Mapping[Partition, int]:
        """Position after the last evaluated record, by partition."""
        ...

    @property
    def progress(self) -> MergeProgress:
        """Progress of the evaluation in the merged sequence of records."""
        ...

    @property
    def uncommitted(self) -> int:
        """Events evaluated since `settle`."""
        ...

    @property
    def uncommitted_scores(self) -> int:
        """Scores of those events and of their outcomes."""
        ...

    @property
    def has_ready(self) -> bool:
        """Return whether records are ready for `evaluate`."""
        ...

    @property
    def may_commit(self) -> bool:
        """Return whether a commit may be made now; if not, `evaluate` has to be called until it may."""
        ...

    @property
    def has_report(self) -> bool:
        """Return whether there is a report; false while results are read incompletely."""
        ...

    @property
    def is_empty(self) -> bool:
        """Return whether everything was read and a report would be empty."""
        ...

    @property
    def data_loss(self) -> DataLoss:
        """Data loss since the beginning of the state that is not counted by the source."""
        ...

    @property
    def rejected(self) -> RejectedRecords:
        """Invalid records to be written to the dead-letter topic."""
        ...

    @property
    def maintenance(self) -> StoreMaintenance | None:
        """Merges of entries outside the join's table; None if all entries are in the table."""
        ...

    def settle(self) -> tuple[Sequence[Alarm], Sequence[str]]:
        """Return the alarms and the names of retired models since the last call, for a commit."""
        ...

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Return whether a record read at or before this monotonic time is not evaluated yet."""
        ...

    def crowded(self) -> frozenset[Partition]:
        """Return the partitions that should not be fetched now, as they are far ahead of others."""
        ...

    def flush(self, moved: frozenset[Partition]) -> None:
        """Release the held records of partitions whose logs are gone; call only if not `has_ready`."""
        ...

    def forget_records(self, partitions: frozenset[Partition]) -> None:
        """Forget the records that identify the logs of these partitions, as the logs were replaced."""
        ...

    def take_newest(self) -> Mapping[Partition, Record]:
        """Return the last record evaluated since the last call by partition; it identifies the log."""
        ...

    async def receive(self, poll: Poll, *, connected: bool = True) -> None:
        """Decode a poll's records and release those whose order is certain; call only if not `has_ready`.

        Parameters
        ----------
        poll
            Records by partition, and the state of every partition.
        connected
            Whether the brokers answer.
        """
        ...

    async def make_room(self) -> None:
        """Enlarge tables that `evaluate` might fill, in a thread."""
        ...

    def evaluate(self) -> int:
        """Evaluate the records of one turn of the event loop; return the number of alarms raised."""
        ...

    def take_work(self) -> Work | None:
        """Return blocking work, to be run in a thread before the next `evaluate` or commit; None without."""
        ...

    def report_in_slices(self) -> Generator[None, None, Report]:
        """Build the report as a generator, which yields between slices of models and returns the report."""
        ...

    def families(self) -> Sequence[Family]:
        """Metrics of the current state, not of the last commit."""
        ...
