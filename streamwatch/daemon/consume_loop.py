"""The loop that reads, evaluates and commits; after a failure of the store it begins again from the disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from streamwatch.core.events import Partition
from streamwatch.core.ports import DeadLetters, Poll, Schemas, Source
from streamwatch.daemon.alerting import event_of
from streamwatch.daemon.backlog import Backlog
from streamwatch.daemon.commits import Commits, CommitSpec, Durable
from streamwatch.daemon.giving_way import yield_to_loop
from streamwatch.daemon.last_commit import finish
from streamwatch.daemon.offset_metadata import OffsetMetadata
from streamwatch.daemon.polls import Polls
from streamwatch.daemon.source_positions import DataLossTotals, SourcePositions
from streamwatch.daemon.state import State
from streamwatch.daemon.state_holder import StateHolder
from streamwatch.daemon.status import DaemonStatus, counted
from streamwatch.edge.stores.errors import StateFailed, StateForbidden, StateGone, StateRefused
from streamwatch.telemetry import DiskFreed, DiskLow, Telemetry

LEAVE_SECONDS = 1.0
"""Seconds a stop waits, beyond the last commit, for a thread that still uses the store."""


@dataclass(frozen=True, slots=True)
class ConsumeLoopSpec:
    """Parts of the consume loop."""

    open_state: Callable[[], State]
    """Opens and restores state, in a thread; raises StateRefused or StateFailed."""
    commits: CommitSpec
    disk_is_low: Callable[[], bool] = lambda: False
    """Asked before each poll; nothing is read while it says so."""
    offset_metadata: OffsetMetadata = field(default_factory=OffsetMetadata)
    """Kept up to date with what is durable."""
    dead_letters: DeadLetters | None = None
    """Given to every state that is opened; left at the end."""
    schemas: Schemas | None = None
    """Had at hand before anything is decoded; None where no format needs any."""
    max_hold_back_seconds: float = 600.0
    """How long all wait for a schema that cannot be had, once caught up."""
    fail_on_lost_state: str | None = None
    """Setting whose value `fail` has the daemon end when its state is removed while it is open; None begins
    anew."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds that never go back."""


class ConsumeLoop:
    """Reads until told to stop.

    Parameters
    ----------
    source
        All partitions of the configured topics.
    spec
        How state is opened and committed.
    status
        Kept up to date.
    telemetry
        Told what happens.
    show
        Given every durable commit.
    opened
        Called when state is open, before the source is asked.
    """

    def __init__(
        self,
        source: Source,
        spec: ConsumeLoopSpec,
        status: DaemonStatus,
        telemetry: Telemetry,
        show: Callable[[Durable], None],
        opened: Callable[[], None] = lambda: None,
    ) -> None:
        self._source = source
        self._spec = spec
        self._status = status
        self._telemetry = telemetry
        self._show = show
        self._opened = opened
        self._backlog = Backlog(status, telemetry, spec.monotonic)
        self._low = False
        self._started = False
        self._commits: Commits | None = None
        self._polls = Polls(source, spec.schemas, spec.max_hold_back_seconds, spec.monotonic)
        self._holder = StateHolder(spec.open_state, spec.offset_metadata, status, telemetry, spec.monotonic)

    @property
    def records(self) -> int:
        """Records taken in since the start."""
        return self._holder.records

    @property
    def state(self) -> State | None:
        """State that is open; None before the first, and between two."""
        return self._holder.state

    async def run(self, stop: asyncio.Event) -> None:
        """Read until `stop`, then make durable what was read; raises refusals and bugs."""
        try:
            while not stop.is_set():
                try:
                    commits = await self._open()
                    while True:
                        if (poll := await self._polls.next(stop)) is None:
                            break
                        await self._take(poll, commits, stop)
                    await finish(commits)
                except StateFailed as error:
                    await self._lose(error, stop)
                except StateForbidden as error:
                    if not self._holder.was_open:
                        raise
                    await self._lose(error, stop)
        finally:
            await self._leave(LEAVE_SECONDS)
            if self._spec.dead_letters is not None:
                await self._spec.dead_letters.stop()
            if self._spec.schemas is not None:
                await self._spec.schemas.close()

    async def _lose(self, error: StateFailed | StateForbidden, stop: asyncio.Event) -> None:
        """Drop what is in memory; nothing of it was shown."""
        delay = self._holder.failed(error)
        await self._leave(LEAVE_SECONDS if stop.is_set() else None)
        setting = self._spec.fail_on_lost_state
        if isinstance(error, StateGone) and setting is not None:
            raise StateRefused(f"{error}; {setting} is fail: put it back, or start with an empty one")
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await stop.wait()

    async def _leave(self, seconds: float | None) -> None:
        await self._holder.leave(self._commits, seconds)
        self._commits = None

    async def _open(self) -> Commits:
        state = await self._holder.open()
        self._opened()
        if state.alerting is not None:
            state.alerting.begin()  # what is owed, and what is open, does not wait for the source
        self._status.stage = f"{self._source.name} has not answered yet"
        source_positions, counts = state.source_positions, self._holder.counts()
        self._status.data_loss = counts.plus(state.processor.data_loss)
        self._polls.clear()
        self._source.count_from(counts.losses, counts.records_lost, counts.position_unverified)
        if self._started:
            await self._source.rewind(source_positions.positions, source_positions.fingerprints)
        else:
            await self._source.start(source_positions.positions, source_positions.fingerprints)
            self._started = True
            self._backlog.begin()
        commits = Commits(
            state,
            self._source_positions,
            self._spec.commits,
            self._settled,
            self._spec.monotonic,
            self._is_behind,
            self._counted,
        )
        self._commits = commits
        self._status.commits = commits
        self._status.shown = False
        self._status.stage = None
        return commits

    def _counted(self) -> DataLossTotals:
        """What the source found of its logs, and others of theirs."""
        counts = counted(self._source)
        return counts.plus(self._holder.opened.processor.data_loss)

    def _is_behind(self) -> bool:
        return self._backlog.lasts(None if self.state is None else self.state.processor)

    def _source_positions(self, positions: Mapping[Partition, int]) -> SourcePositions:
        self._source.evaluated(self._holder.opened.processor.take_newest())
        return SourcePositions(positions, self._source.fingerprints())

    def _settled(self, durable: Durable) -> None:
        self._holder.worked()
        for a in durable.alarms:
            self._telemetry.emit(event_of(a))
        self._status.data_loss = durable.counts
        self._spec.offset_metadata.durable(durable.commit)
        self._source.durable(durable.positions)
        self._show(durable)
        self._status.shown = self._status.shown or durable.report is not None

    async def _take(self, poll: Poll, commits: Commits, stop: asyncio.Event) -> None:
        """Evaluate what a poll lets go; commit when due, sooner with nothing else to do or a new alarm.

        An alarm met while a backlog is read tells of the past: it waits for the next commit.
        """
        processor = self._holder.opened.processor
        for last in self._polls.last_of(poll):
            await processor.receive(last)
            await self._evaluate(commits, stop)
            if processor.has_ready:
                return
        if poll.moved:  # what was read of a log that is gone comes first, and goes with the positions before
            processor.forget_records(poll.moved)
            processor.flush(poll.moved)
            await self._evaluate(commits, stop)
            if processor.has_ready:
                return
        self._source.tell()
        self._status.partitions = poll.partitions
        decodable = await self._polls.decodable(poll, commits, stop)
        if decodable is None:
            return
        poll = decodable.poll
        self._status.partitions = poll.partitions
        await processor.receive(poll, connected=decodable.at_once and self._source.up and not self._low)
        alarms = await self._evaluate(commits, stop)
        self._source.pause(self._held_back(poll) | self._polls.left_behind)
        self._backlog.look(processor, self.records)
        if processor.maintenance is not None and not processor.has_ready:
            processor.maintenance.schedule_next()
        await commits.settle(soon=not poll.records or (alarms > 0 and self._backlog.passed))
        self._status.shown = self._status.shown or processor.is_empty
        await yield_to_loop()

    async def _evaluate(self, commits: Commits, stop: asyncio.Event) -> int:
        """Evaluate what was released, with commits in between; the number of alarms raised."""
        processor, alarms = self._holder.opened.processor, 0
        while processor.has_ready and not stop.is_set():
            await processor.make_room()
            alarms += processor.evaluate()
            while processor.maintenance is not None and (work := processor.take_work()) is not None:
                await processor.maintenance.run_in_thread(work)  # nothing is committed in between
                alarms += processor.evaluate()
            commits.evaluated()
            await processor.rejected.deliver(only_if_full=True)
            if processor.has_ready:
                await commits.settle(soon=False)
                await yield_to_loop()
        return alarms

    def _held_back(self, poll: Poll) -> frozenset[Partition]:
        """Partitions not to be read now: those ahead of others, or all while the disk is nearly full."""
        low = self._spec.disk_is_low()
        if low != self._low:
            self._telemetry.emit(DiskLow() if low else DiskFreed())
            self._low = self._status.disk_low = low
        return frozenset(poll.partitions) if low else self._holder.opened.processor.crowded()
