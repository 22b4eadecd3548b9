"""Records in, state out: decode, merge, fetch, advance, keep, in turns that let health checks answer."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from streamwatch.core.commit.checkpoint import Checkpoint
from streamwatch.core.events import Alarm, Partition
from streamwatch.core.fold_names import fold_of, model_of
from streamwatch.core.join.caveats import details_with_caveats
from streamwatch.core.join.compiled.outside.work import Work
from streamwatch.core.join.mismatch import details_with
from streamwatch.core.merge import MergeProgress, MergeSpec
from streamwatch.core.merge.series import progress_families
from streamwatch.core.pipelines.column_pipeline import ColumnPipeline
from streamwatch.core.ports import Poll, Record, Store
from streamwatch.core.predictions.registers import details_with_predictions
from streamwatch.core.results import DataLoss
from streamwatch.core.series import Family, Report
from streamwatch.daemon.clock import Clocks
from streamwatch.daemon.processing.evaluating import Evaluating, InColumns, RowByRow
from streamwatch.daemon.processing.merged_records import MergedRecords
from streamwatch.daemon.processing.mismatch import MismatchReporter
from streamwatch.daemon.processing.rejected_records import RejectedRecords
from streamwatch.daemon.processing.store_maintenance import StoreMaintenance
from streamwatch.daemon.processing.topic import Topic
from streamwatch.telemetry import RecordRejected, Telemetry


class BatchProcessor:
    """Brings what polls deliver into one sequence, and the sequence through the core into the store.

    Parameters
    ----------
    checkpoint
        The core and its estimators, and what remembers what commits need.
    store
        Where state lives.
    topics
        What each topic carries, and how to decode it; in the order of the settings.
    telemetry
        Told of rejected records and of partitions that are not waited for.
    clocks
        The host's clocks.
    merge
        How long records wait for others.
    progress
        Where the sequence goes on, of a state that was restored.
    rejected
        Given every invalid record.
    maintenance
        Merges of entries outside the join's table; None where there are none.
    """

    def __init__(  # noqa: PLR0913  # one for each thing it works with
        self,
        checkpoint: Checkpoint,
        store: Store,
        topics: Mapping[str, Topic],
        telemetry: Telemetry,
        clocks: Clocks,
        merge: MergeSpec | None = None,
        progress: MergeProgress | None = None,
        *,
        rejected: RejectedRecords | None = None,
        maintenance: StoreMaintenance | None = None,
    ) -> None:
        self.pipeline = pipeline = checkpoint.pipeline
        self.progress = progress or MergeProgress()
        self._monitors = checkpoint.monitors
        self._evaluating: Evaluating = RowByRow(checkpoint, store)
        if isinstance(pipeline, ColumnPipeline):
            self._evaluating = InColumns(pipeline, checkpoint if store.durable else None)
        self._telemetry = telemetry
        self._clocks = clocks
        self.rejected = rejected or RejectedRecords()
        self._merged = MergedRecords(
            topics, telemetry, clocks, merge or MergeSpec(), self.progress, self.rejected
        )
        self.maintenance = maintenance
        self._work: Work | None = None
        self._taken = 0
        """Of the records that are ready."""
        self._mismatches = MismatchReporter(telemetry)
        self._uncommitted = self._uncommitted_scores = 0
        self._alarms: list[Alarm] = []
        self._retired: list[str] = []

    @property
    def records(self) -> int:
        """Records read since the start."""
        return self._merged.records

    @property
    def held_records(self) -> int:
        """Records that wait for their place in the sequence."""
        return self._merged.held_records

    @property
    def positions(self) -> Mapping[Partition, int]:
        """Positions after what was evaluated."""
        return self.progress.positions

    @property
    def uncommitted(self) -> int:
        """Events evaluated since `settle`."""
        return self._uncommitted

    @property
    def uncommitted_scores(self) -> int:
        """Scores of predictions and outcomes evaluated since `settle`; 0 where nothing is durable."""
        return self._uncommitted_scores

    @property
    def has_ready(self) -> bool:
        """Tell whether released records wait to be evaluated."""
        return self._merged.ready is not None

    @property
    def has_report(self) -> bool:
        """Tell whether there is something to be shown: always."""
        return True

    @property
    def is_empty(self) -> bool:
        """Never: models or none, the totals of the join are shown."""
        return False

    @property
    def data_loss(self) -> DataLoss:
        """Nothing but what the source finds."""
        return DataLoss()

    def settle(self) -> tuple[Sequence[Alarm], Sequence[str]]:
        """Hand over alarms and retired models since the last commit, which are being committed."""
        self._uncommitted = self._uncommitted_scores = 0
        alarms, self._alarms = self._alarms, []
        retired, self._retired = self._retired, []
        return alarms, retired

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Tell whether something is yet to be evaluated that was read by then."""
        return self._merged.holds_from_before(arrived_ms)

    def crowded(self) -> frozenset[Partition]:
        """Name the partitions that are so far ahead of others that no more should be asked of them."""
        return self._merged.crowded()

    def flush(self, moved: frozenset[Partition]) -> None:
        """Release what is held of these partitions, whose logs are no longer there; nothing may be ready."""
        self._merged.flush(moved)

    def forget_records(self, partitions: frozenset[Partition]) -> None:
        """Recognise these logs no longer by what was read of them: they are others now."""
        self._merged.forget_records(partitions)

    def take_newest(self) -> Mapping[Partition, Record]:
        """Hand over the last records evaluated since the last call, by which the logs are recognised."""
        return self._merged.take_newest()

    async def receive(self, poll: Poll, *, connected: bool = True) -> None:
        """Decode what a poll delivered and release what may go; nothing may be ready.

        Parameters
        ----------
        poll
            Records by partition, and the state of every partition.
        connected
            Whether brokers answer.
        """
        await self._merged.receive(poll, connected=connected)

    async def make_room(self) -> None:
        """Make the room that the next of the released records need, if that takes long."""
        await self._evaluating.make_room()

    def evaluate(self) -> int:
        """Evaluate the next of the released records, so many as fit a turn; the number of alarms raised.

        Work that was not taken since the last call is done first.
        """
        if (work := self.take_work()) is not None:
            work()
        ready = self._merged.ready
        if ready is None:
            return 0
        done = self._evaluating.take(ready.records, self._taken, ready.end_of_record)
        self.progress.note(ready.part(self._taken, self._taken + done.taken))
        for event in done.invalid:
            self._telemetry.emit(RecordRejected(event.topic, event.partition, event.offset, event.reason))
            self.rejected.release(event)
        self._taken += done.taken
        self._uncommitted += done.taken + done.changed
        self._uncommitted_scores += done.scores
        self._work = done.work
        self._alarms += done.alarms
        self._note_retired(done.retired)
        if self._taken == len(ready):
            self._taken = 0
            self._merged.next_turn()
        return len(done.alarms)

    def take_work(self) -> Work | None:
        """Hand over what has to be done before `evaluate` goes on, or anything is committed; for a thread."""
        work, self._work = self._work, None
        return work

    def report_in_slices(self) -> Generator[None, None, Report]:
        """Build the report, giving way between slices of models."""
        families = self.pipeline.join_families() + progress_families(self.progress)
        families += yield from self._monitors.families_in_slices()
        found = self.pipeline.mismatches()
        self._mismatches.tell(found)
        details = details_with((yield from self._monitors.details_in_slices()), found)
        details = details_with_caveats(details, self.pipeline.caveats())
        details = details_with_predictions(details, self.pipeline.prediction_details())
        return Report(
            families,
            self._clocks.host_ms(),
            details,
            tuple(self._monitors.recent_alarms),
            self._monitors.pasts(),
            self._monitors.history_days,
        )

    def families(self) -> Sequence[Family]:
        """Records held by the merge, the partitions waited for, and dead letters."""
        return [*self._merged.families(), *self.rejected.families()]

    def _note_retired(self, names: Sequence[str]) -> None:
        """Remember models that retired; one that predicts in folds has when its last fold has."""
        alive = {model_of(name) for name in self._monitors.models()} if names else set[str]()
        for name in names:
            model = model_of(name)
            if fold_of(name) is None or model not in alive:
                self._retired.append(model)
