"""Commits: make the state durable when due, and show reports and alarms after that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from streamwatch.core.alerting.book import details_with_incidents
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.metric import Durations
from streamwatch.core.metrics.series import Family, Report
from streamwatch.core.pipeline.checkpoint import Checkpoint, RestoreReport
from streamwatch.core.ports import Store
from streamwatch.core.records.events import Alarm, Partition
from streamwatch.daemon.alerting import NOTHING, AlertDecisions, Alerting
from streamwatch.daemon.batch_processor import BatchProcessor
from streamwatch.daemon.merged_records import yield_to_loop
from streamwatch.daemon.publisher import ClosedPublication, Publishing
from streamwatch.daemon.results import ResultsCheckpoint, ResultsProcessor
from streamwatch.daemon.source_positions import (
    MERGE,
    POSITIONS,
    DataLossTotals,
    SourcePositions,
    encoded_progress,
)
from streamwatch.daemon.standby import SharedPublishing
from streamwatch.daemon.turns import SCORES_PER_COMMIT
from streamwatch.edge.stores.kind import StateFailed
from streamwatch.telemetry import InternalEvent

Processor: TypeAlias = BatchProcessor | ResultsProcessor
"""Evaluates the records of polls: those of topics, or the results of a distributed job."""


@dataclass(frozen=True, slots=True)
class State:
    """An open store and the objects restored from it, from its opening to a failure or the end."""

    store: Store
    checkpoint: Checkpoint | ResultsCheckpoint
    """Builds what a commit has beside positions and alarms."""
    processor: Processor
    source_positions: SourcePositions
    """Positions at which reading goes on."""
    resumed: RestoreReport
    """Models and estimators found at the opening."""
    alerting: Alerting
    """Decides on notifications."""
    events: Sequence[InternalEvent] = ()
    """Further internal events of the opening: settings that have changed."""
    topics_since_ms: Mapping[str, int] = field(default_factory=dict[str, int])
    """For topics that were added to the state, the record time from which each is read."""
    publishing: Publishing | SharedPublishing | None = None
    """Makes publications of outcomes and events; None without topics for them."""


RELAX = 10.0
"""Commits take at most about 1 / this of the time.

Only the time in which they block the event loop counts, not that of waiting for a disk or for dead letters.
"""
REPORT_RELAX = 30.0
"""Reports take at most about 1 / this of the time: with 500 models, 3 % of a core.

An idle daemon makes the next report as soon as that allows, others at most once in an interval of commits.
The report at the end of a backlog waits only as long as `RELAX` asks, at most once in `LONGEST_REPORT_WAIT`:
what a backlog has changed is then shown before the next labels come.
"""
LONGEST_REPORT_WAIT = 60.0
"""Seconds after which a report comes all the same: on a busy machine, one of 10,000 models takes some."""
RELAXED_INTERVALS = 2
"""Most intervals by which `RELAX` delays the next commit."""
LAST_REPORT_SECONDS = 1.0
"""Duration of the previous report up to which a stop makes a last one.

A report on 10,000 models would take the time in which the last commit has to reach the disk.
"""
OVERDUE_INTERVALS = 3
"""Intervals, of at least a second, after which evaluated records that are not committed are overdue."""


@dataclass(frozen=True, slots=True)
class CommitSpec:
    """Limits of what is not committed yet; a commit is due when one of them is reached."""

    interval_seconds: float = 1.0
    events: int = 5_000
    scores: int = SCORES_PER_COMMIT
    """Scores; a commit is written in one turn of the event loop."""


@dataclass(frozen=True, slots=True)
class Durable:
    """Contents of a durable commit that may now be shown."""

    report: Report | None
    """None if none was due."""
    alarms: Sequence[Alarm]
    positions: Mapping[Partition, int]
    outgoing: AlertDecisions = NOTHING
    """Decisions on notifications."""
    commit: int = 0
    """Number of the commit, counted from the beginning of the state."""
    counts: DataLossTotals = field(default_factory=DataLossTotals)
    """Data loss found in the logs."""


class Commits:
    """Commits the open state; while at most one commit is flushed in a thread, evaluation goes on.

    Parameters
    ----------
    state
        State to be committed.
    source_positions
        Returns the positions with fingerprints of their logs; called at each commit.
    spec
        Limits of what is not committed yet.
    shown
        Called with each durable commit, in the event loop and in their order.
    monotonic
        Monotonic clock in seconds.
    behind
        Returns whether a backlog is being read.
    counts
        Returns the data loss; a change of it makes a commit due.
    """

    def __init__(
        self,
        state: State,
        source_positions: Callable[[Mapping[Partition, int]], SourcePositions],
        spec: CommitSpec,
        shown: Callable[[Durable], object],
        monotonic: Callable[[], float] = time.monotonic,
        behind: Callable[[], bool] = lambda: False,
        counts: Callable[[], DataLossTotals] = DataLossTotals,
    ) -> None:
        self._state = state
        self._source_positions = source_positions
        self._spec = spec
        self._shown = shown
        self._clock = monotonic
        self._behind = behind
        self._counts = counts
        self._flushing: asyncio.Task[None] | None = None
        self._committed: Mapping[Partition, int] = dict(state.source_positions.positions)
        self._counted = state.source_positions.counts
        self._due = self._soon = self._report_soon = self._report_due = 0.0
        self._report_seconds = 0.0
        self._reported_at = self._hasten_from = 0.0
        self._unreported = True
        self._was_behind = self._in_backlog = True
        self._seconds: float | None = None
        self._durations = Durations()
        self._evaluated_at: float | None = None
        """Time at which the oldest uncommitted record was evaluated; None without one."""
        self._committing: float | None = None
        """The same of the commit that is being flushed."""
        self._total = state.checkpoint.commits

    @property
    def _changed(self) -> bool:
        processor = self._state.processor
        return (
            processor.uncommitted > 0
            or processor.positions != self._committed
            or self._counts() != self._counted
            or (self._state.publishing is not None and self._state.publishing.due)
            or self._state.alerting.due(behind=self._behind())
        )

    @property
    def _filled(self) -> float:
        """Uncommitted events, scores or invalid records as a share of their limit; the largest of these."""
        processor, spec = self._state.processor, self._spec
        return max(
            processor.uncommitted / spec.events,
            processor.uncommitted_scores / spec.scores,
            processor.rejected.filled,
        )

    def evaluated(self) -> None:
        """Note the time at which uncommitted records were evaluated; call after each evaluation."""
        if self._evaluated_at is None and self._state.processor.uncommitted > 0:
            self._evaluated_at = self._clock()

    @property
    def overdue(self) -> str | None:
        """Reason for which evaluated records are not durable after three intervals; None if none are late."""
        since = self._evaluated_at if self._committing is None else self._committing
        if since is None:
            return None
        waited = self._clock() - since
        if waited <= OVERDUE_INTERVALS * max(self._spec.interval_seconds, 1.0):
            return None
        problem = self._state.processor.rejected.problem
        if problem is None and self._state.publishing is not None:
            problem = self._state.publishing.publisher.problem
        if problem is None and self._flushing is not None:
            problem = "the disk of the state has not taken them"
        why = "" if problem is None else f": {problem}"
        return f"evaluated records have not been committed for {waited:.0f} s{why}"

    @property
    def waits_for_disk(self) -> bool:
        """Return whether records have been overdue because the disk has not taken a commit."""
        return self._flushing is not None and not self._flushing.done() and self.overdue is not None

    async def settle(self, *, soon: bool) -> None:
        """Commit if it is due, and if the processor is at a point at which a commit may be made.

        Parameters
        ----------
        soon
            Whether to commit before the interval is over, because nothing was read or an alarm was raised.

        Raises
        ------
        StateFailed
            If this commit or the flush of the previous one has failed.
        """
        self.evaluated()
        # The last poll of a backlog is part of it, though reading is no longer behind after it.
        behind = self._behind()
        self._in_backlog = self._in_backlog or self._was_behind or behind
        if self._was_behind and not behind:
            self._hasten_report()
        self._was_behind = behind
        if self._flushing is not None and self._flushing.done():
            await self._flushed()
        if not self._state.processor.may_commit:
            return
        filled = self._filled
        now = self._clock()
        time_is_up = now >= (self._soon if soon else self._due)
        report = now >= (self._report_soon if soon else self._report_due)
        if filled < 1 and not (time_is_up and (self._changed or (self._unreported and report))):
            return
        if self._flushing is not None:
            if filled < 2:
                return
            await self._flushed()
        await self._commit(report=report)

    def _hasten_report(self) -> None:
        """Make a report that is not due yet due sooner, as a backlog is over; at most once a minute."""
        now = self._clock()
        if now >= self._report_due or now < self._hasten_from:
            return
        self._hasten_from = now + LONGEST_REPORT_WAIT
        soon = self._reported_at + RELAX * self._report_seconds
        self._report_soon = min(self._report_soon, soon)
        self._report_due = min(self._report_due, max(soon, self._reported_at + self._spec.interval_seconds))

    async def finish(self) -> None:
        """Commit everything that was evaluated and wait until it is durable; only while `may_commit`."""
        if self._flushing is not None:
            await self._flushed()
        await self._commit(report=self._report_seconds <= LAST_REPORT_SECONDS, patient=False)
        await self._flushed()

    async def abandon(self, seconds: float | None = None) -> bool:
        """Wait for the running flush at most `seconds` (None: without limit); return whether none runs.

        If the flush succeeds, its commit is shown; if it fails, the error is dropped.
        """
        if self._flushing is None:
            return True
        await asyncio.wait({self._flushing}, timeout=seconds)
        if not self._flushing.done():
            return False
        flushing, self._flushing = self._flushing, None
        if not flushing.cancelled():
            flushing.exception()  # retrieved and dropped: the caller closes the state after another error
        return True

    async def _flushed(self) -> None:
        if self._flushing is not None:
            await asyncio.wait({self._flushing})  # a cancelled caller must not cancel the flush
            flushing, self._flushing = self._flushing, None
            flushing.result()

    async def _commit(self, *, report: bool, patient: bool = True) -> None:
        state, publishing = self._state, self._state.publishing
        await state.processor.rejected.deliver()
        if publishing is not None and patient:
            await publishing.publisher.room()
        began = self._clock()
        self._committing, self._evaluated_at = self._evaluated_at, None
        alarms, retired = state.processor.settle()
        decider = state.alerting if publishing is None else publishing
        outgoing = decider.decide(alarms, retired, in_backlog=self._in_backlog, behind=self._behind())
        self._in_backlog = False
        report = report and state.processor.has_report
        shown, reporting = await self._build(outgoing) if report else (None, 0.0)
        built = self._clock()
        positions = dict(state.processor.positions)
        self._committed = positions
        self._counted = counts = self._counts()
        self._unreported = shown is None
        closed = ClosedPublication()
        if state.store.durable:
            source_positions = replace(self._source_positions(positions), counts=counts)
            merge = encoded_progress(state.processor.progress)
            sections = {POSITIONS: source_positions.encode(), MERGE: merge, **outgoing.sections}
            if publishing is not None:
                closed = publishing.close(state.checkpoint.commits + 1, outgoing)
                sections |= closed.sections
            changes = state.checkpoint.changes(sections, outgoing.outbox)
            state.store.commit(replace(changes, publications=closed.values))
        durable = Durable(shown, alarms, positions, outgoing, state.checkpoint.commits, counts)
        if state.store.durable:
            self._flushing = asyncio.create_task(self._flush(durable, began, closed))
        else:
            state.alerting.deliver(outgoing)
            self._settled(durable, began)
        now, interval = self._clock(), self._spec.interval_seconds
        if report:
            self._report_seconds, self._reported_at = reporting, now
            self._report_soon = now + min(REPORT_RELAX * reporting, LONGEST_REPORT_WAIT)
            self._report_due = max(self._report_soon, now + interval)
        self._soon = now + min(RELAX * (reporting + now - built), RELAXED_INTERVALS * interval)
        self._due = max(self._soon, now + interval)

    async def _flush(self, durable: Durable, began: float, closed: ClosedPublication) -> None:
        await asyncio.to_thread(self._state.store.flush)
        alerting, publishing = self._state.alerting, self._state.publishing
        if publishing is not None:
            publishing.durable(closed, lambda: alerting.deliver(durable.outgoing))
        else:
            alerting.deliver(durable.outgoing)
        self._settled(durable, began)

    def _settled(self, durable: Durable, began: float) -> None:
        self._seconds = self._clock() - began
        self._durations.observe(self._seconds)
        self._committing = None
        self._total = durable.commit if self._state.store.durable else self._total + 1
        self._shown(durable)

    async def _build(self, outgoing: AlertDecisions) -> tuple[Report, float]:
        """Build a report in slices, between which other tasks run; return it and the seconds it took."""
        began = self._clock()
        of_alarms = outgoing.families()
        slices, seconds = self._state.processor.report_in_slices(), self._clock() - began
        while True:
            began = self._clock()
            try:
                next(slices)
            except StopIteration as end:
                built: Report = end.value
                fleet = self._state.alerting.fleet
                details = details_with_incidents(built.details, outgoing.open_incidents)
                report = replace(
                    built,
                    families=[*built.families, *of_alarms, *fleet.families()],
                    details=fleet.labels.details(details),
                )
                return report, seconds + self._clock() - began
            seconds += self._clock() - began
            await yield_to_loop()

    def families(self) -> Sequence[Family]:
        """Metrics of commits."""
        return [
            single("commits_total", float(self._total)),
            single("last_commit_seconds", self._seconds),
            family("commit_duration_seconds", [((), self._durations.histogram())]),
            single("uncommitted_events", float(self._state.processor.uncommitted)),
            *self._state.processor.families(),
            *self._state.store.families(),
        ]


COMMIT_SECONDS = 4.0
"""Seconds a stop waits for the last commit to be on the disk."""


async def finish(commits: Commits) -> None:
    """Make a last commit before a stop; cancelling the caller does not interrupt it.

    Raises
    ------
    StateFailed
        If it is not durable within `COMMIT_SECONDS`.
    """
    finishing = asyncio.create_task(commits.finish())
    loop = asyncio.get_running_loop()
    deadline = loop.time() + COMMIT_SECONDS
    while not finishing.done() and (left := deadline - loop.time()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.wait({finishing}, timeout=left)
    if not finishing.done():
        finishing.cancel()
        raise StateFailed(f"the last commit was not on the disk within {COMMIT_SECONDS:g} s")
    finishing.result()


class OffsetMetadata:
    """Metadata of the offsets committed to Kafka: `state=<identity> commit=<number>`; empty without a state.

    A start compares it with the state that it opens, to detect a lost state directory.

    Parameters
    ----------
    is_shared
        Whether replicas, each with its own state, commit offsets in turn: then the metadata is empty.
    """

    def __init__(self, *, is_shared: bool = False) -> None:
        self._is_shared = is_shared
        self._identity = ""
        self._commit = 0
        self.topics_since_ms: Mapping[str, int] = {}
        """For topics that were added to the state, the record time from which each is read."""

    def opened(self, identity: str, commit: int) -> None:
        """Set the identity of the opened state and the number of its last commit."""
        self._identity, self._commit = identity, commit

    def durable(self, commit: int) -> None:
        """Record the latest durable commit number."""
        self._commit = commit

    def __call__(self) -> str:
        """Return the metadata."""
        if self._is_shared or not self._identity:
            return ""
        return f"state={self._identity} commit={self._commit}"
