"""Evaluation of polled records: decoded, merged, joined and estimated, in short turns of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from streamwatch.core.buckets.results import DataLoss
from streamwatch.core.join.caveats import (
    alarms_without_verdicts,
    details_with,
    details_with_caveats,
    families_without_verdicts,
)
from streamwatch.core.join.cold.merging import Merge
from streamwatch.core.join.cold.overflow import Work
from streamwatch.core.join.cold.store import RunStore
from streamwatch.core.merge import MergeProgress, MergeSpec, Released
from streamwatch.core.merge.merge import progress_families
from streamwatch.core.metrics.series import Family, Report
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.pipeline import PartialResult, Pipeline
from streamwatch.core.pipeline.sections import details_with_beginnings
from streamwatch.core.ports import Poll, Record, Store
from streamwatch.core.predictions.registers import details_with_predictions
from streamwatch.core.publishing.publication_log import PublicationLog
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import VERDICT, Alarm, Invalid, Partition, fold_of, model_of
from streamwatch.daemon.merged_records import MergedRecords, MismatchReporter, RejectedRecords, Topic
from streamwatch.daemon.status import Clocks
from streamwatch.daemon.turns import TurnLength, rows_up_to_objects, scores_in_columns, scores_of
from streamwatch.edge.stores.kind import damage_named
from streamwatch.telemetry import RecordRejected, Telemetry


class StoreMaintenance:
    """Merges runs of the join's entries on disk in a thread, one merge at a time, and frees merged runs.

    Parameters
    ----------
    pipeline
        Pipeline whose join has the entries.
    runs
        Store of the runs, which are sorted entries outside the join's table.
    directory
        Directory of the state, for messages of errors.
    """

    def __init__(self, pipeline: Pipeline, runs: RunStore, directory: Path) -> None:
        self._pipeline = pipeline
        self._runs = runs
        self._directory = directory
        self._thread = ThreadPoolExecutor(1, "maintenance")
        self._merge: Merge | None = None
        self._running: Future[None] | None = None

    def schedule_next(self) -> None:
        """Apply the result of a finished merge, and start the next one that is due, else free merged runs.

        To be called between two batches.

        Raises
        ------
        StateDamaged
            If a run differs from what was written.
        StateFailed
            If the disk failed.
        """
        running = self._running
        if running is not None:
            if not running.done():
                return
            merge, self._merge, self._running = self._merge, None, None
            with damage_named(self._directory):
                running.result()
            if merge is not None:
                self._pipeline.join.finish_merge(merge)
        self._merge = merge = self._pipeline.join.plan_merge()
        if merge is not None:
            self._running = self._thread.submit(merge.run)
        elif ranges := self._runs.reclaimable(self._pipeline.join.entries_outside):
            self._running = self._thread.submit(self._runs.reclaim, ranges)

    async def run_in_thread(self, work: Work) -> None:
        """Run work in a thread and wait for its end, even if cancelled.

        Raises
        ------
        StateDamaged
            If the work read something else than was written.
        StateFailed
            If the disk failed.
        """
        doing = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            with damage_named(self._directory):
                await asyncio.shield(doing)
        except asyncio.CancelledError:
            await asyncio.wait({doing})
            raise

    async def stop(self, seconds: float | None) -> bool:
        """Cancel a running merge and wait at most `seconds` (None: no limit); return whether it ended."""
        if self._merge is not None:
            self._merge.cancelled = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._running is None or self._running.done():
            return True
        waiting = asyncio.wrap_future(self._running)
        done, _ = await asyncio.wait({waiting}, timeout=seconds)
        if done and not waiting.cancelled():
            waiting.exception()  # retrieved and dropped: the state is closed anyway
        return bool(done)


class BatchProcessor:
    """Merges polled records into one sequence, and evaluates it: join, estimators, alarms.

    Parameters
    ----------
    checkpoint
        Join and estimators, and their changes since the last commit.
    store
        Store of the state, which is durable or in memory.
    topics
        Side and decoder of each topic by name, in the order of the settings.
    telemetry
        Receives internal events: rejected records, partitions that are not waited for.
    clocks
        The host's clocks.
    merge
        Limits of how long records wait for other partitions.
    progress
        Position in the merged sequence, from a restored state; None: a new sequence.
    rejected
        Receives every invalid record.
    maintenance
        Merges of entries outside the join's table; None if all entries are in the table.
    publications
        Collects outcomes for their topic; None without one.
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
        publications: PublicationLog | None = None,
    ) -> None:
        self.pipeline = checkpoint.pipeline
        self.progress = progress or MergeProgress()
        self._monitors = checkpoint.monitors
        self._beginnings = checkpoint.beginnings
        self._checkpoint = checkpoint if store.durable else None
        self._publications = publications
        self._telemetry = telemetry
        self._clocks = clocks
        self.rejected = rejected or RejectedRecords()
        self._merged = MergedRecords(
            topics, telemetry, clocks, merge or MergeSpec(), self.progress, self.rejected
        )
        self.maintenance = maintenance
        self._work: Work | None = None
        self._is_whole = True
        self._taken = 0
        """Number of the ready records that are evaluated."""
        self._stretch: RecordBatch | None = None
        """Records that the pipeline is evaluating in steps; None before the first."""
        self._left = 0
        """Number of records of the stretch that are not evaluated yet."""
        self._steps: Iterator[PartialResult] = iter(())
        self._length = TurnLength()
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
        """Number of records that wait until their order is certain."""
        return self._merged.merge.held_records

    @property
    def positions(self) -> Mapping[Partition, int]:
        """Position after the last evaluated record, by partition."""
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
        """Return whether released records wait to be evaluated."""
        return self._merged.ready is not None

    @property
    def may_commit(self) -> bool:
        """Return whether a commit may be made now; if not, `evaluate` has to be called until it may.

        It may when the state is that after whole records, and no work is left to do.
        """
        return self._is_whole and self._work is None

    @property
    def has_report(self) -> bool:
        """Return whether there is a report: always."""
        return True

    @property
    def is_empty(self) -> bool:
        """Return whether a report would be empty: never, as it has the totals of the join."""
        return False

    @property
    def data_loss(self) -> DataLoss:
        """Data loss that the source does not count: none."""
        return DataLoss()

    def settle(self) -> tuple[Sequence[Alarm], Sequence[str]]:
        """Return the alarms and the names of retired models since the last call, for a commit."""
        self._uncommitted = self._uncommitted_scores = 0
        alarms, self._alarms = self._alarms, []
        retired, self._retired = self._retired, []
        return alarms, retired

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Return whether a record read at or before this monotonic time is not evaluated yet."""
        return self._merged.holds_from_before(arrived_ms)

    def crowded(self) -> frozenset[Partition]:
        """Return the partitions that should not be fetched now, as they are far ahead of others."""
        return self._merged.merge.crowded()

    def flush(self, moved: frozenset[Partition]) -> None:
        """Release the held records of partitions whose logs are gone; call only if not `has_ready`."""
        self._merged.flush(moved)

    def forget_records(self, partitions: frozenset[Partition]) -> None:
        """Forget the records that identify the logs of these partitions, as the logs were replaced."""
        self._merged.forget_records(partitions)

    def take_newest(self) -> Mapping[Partition, Record]:
        """Return the last record evaluated since the last call by partition; it identifies the log."""
        return self._merged.take_newest()

    async def receive(self, poll: Poll, *, connected: bool = True) -> None:
        """Decode a poll's records and release those whose order is certain; call only if not `has_ready`.

        Parameters
        ----------
        poll
            Records by partition, and the state of every partition.
        connected
            Whether the brokers answer.
        """
        await self._merged.receive(poll, connected=connected)

    async def make_room(self) -> None:
        """Enlarge the join's table in a thread if it is nearly full."""
        join = self.pipeline.join
        while join.is_nearly_full:
            join.use(await asyncio.to_thread(join.with_more_room))

    def evaluate(self) -> int:
        """Evaluate the next released records, as many as fit a turn; return the number of alarms raised.

        Blocking work of the previous call is done first if `take_work` has not taken it.
        """
        if (work := self.take_work()) is not None:
            work()
        ready = self._merged.ready
        if ready is None:
            return 0
        self._length.begin()
        some, step = self._step(ready)
        events = some.objects_at(some.object_rows())
        if self._checkpoint is not None:
            self._checkpoint.take(step)
            self._uncommitted_scores += scores_of(events, step.outcomes) + scores_in_columns(some)
        if self._publications is not None and self._stretch is not None:
            self._publications.take(step.outcomes, self._stretch)
        self._length.end(len(some))
        self.progress.note(ready.part(self._taken, self._taken + len(some)))
        self._taken += len(some)
        self._uncommitted += len(some)
        for event in events:
            if type(event) is Invalid:
                self._reject(event)
        self._work = step.work
        self._is_whole = step.is_whole and (
            not self._left or not self._taken or ready.end_of_record(self._taken) == self._taken
        )
        alarms = step.alarms
        if any(alarm.detector == VERDICT for alarm in alarms):
            alarms = alarms_without_verdicts(
                alarms, self.pipeline.mismatches(), self.pipeline.predictions.unrepresentative()
            )
        self._alarms += alarms
        self._note_retired([name for _, name in step.retired])
        if self._taken == len(ready):
            self._taken = 0
            self._merged.next_turn()
        return len(alarms)

    def _step(self, ready: Released) -> tuple[RecordBatch, PartialResult]:
        """Evaluate the next records, as many as fit a turn, up to the end of one; return them and the result.

        No records are evaluated if expiring entries took the whole turn.
        """
        if not self._left:
            rest = ready.records.part(self._taken, len(ready))
            most = rows_up_to_objects(rest, self._length.rows)
            self._left = ready.end_of_record(self._taken + most) - self._taken
            self._stretch = rest.part(0, self._left)
            self._steps = self.pipeline.steps(self._stretch)
        assert self._stretch is not None  # noqa: S101 - some records of it are left
        step = next(self._steps)
        before = len(self._stretch) - self._left
        self._left = len(self._stretch) - step.taken
        return self._stretch.part(before, step.taken), step

    def _reject(self, event: Invalid) -> None:
        self._telemetry.emit(
            RecordRejected(event.topic, event.partition, event.offset, event.reason, event.detail or None)
        )
        self.rejected.release(event)

    def take_work(self) -> Work | None:
        """Return blocking work, to be run in a thread before the next `evaluate` or commit; None without."""
        work, self._work = self._work, None
        return work

    def report_in_slices(self) -> Generator[None, None, Report]:
        """Build the report as a generator, which yields between slices of models and returns the report."""
        families = self.pipeline.join_families() + progress_families(self.progress)
        yield
        estimated = yield from self._monitors.families_in_slices()
        found = self.pipeline.mismatches()
        unrepresentative = self.pipeline.predictions.unrepresentative()
        families += families_without_verdicts(estimated, found, unrepresentative)
        self._mismatches.report(found)
        estimated_details = yield from self._monitors.details_in_slices()
        details = details_with(estimated_details, found, unrepresentative)
        yield
        details = details_with_caveats(details, self.pipeline.caveats(), families)
        yield
        details = details_with_predictions(details, self.pipeline.predictions.details())
        details = details_with_beginnings(details, self._beginnings)
        return Report(
            families,
            self._clocks.host_ms(),
            details,
            tuple(self._monitors.recent_alarms),
            self._monitors.pasts(),
            self._monitors.history_days,
        )

    def families(self) -> Sequence[Family]:
        """Records held by the merge, the partitions that it waits for, and dead letters."""
        return [*self._merged.families(), *self.rejected.families()]

    def _note_retired(self, names: Sequence[str]) -> None:
        """Remember retired models; a model that predicts in folds is retired once all of its folds are."""
        alive = {model_of(name) for name in self._monitors.models()} if names else set[str]()
        for name in names:
            model = model_of(name)
            if fold_of(name) is None or model not in alive:
                self._retired.append(model)
