"""The loop that reads, evaluates and commits; after a failure of the store it begins again from the disk."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from streamwatch.core.events import Partition
from streamwatch.core.ports import DeadLetters, Poll, Schemas, Source
from streamwatch.daemon.alerting import event_of
from streamwatch.daemon.commits import Commits, CommitSpec, Durable
from streamwatch.daemon.giving_way import yield_to_loop
from streamwatch.daemon.offset_metadata import OffsetMetadata
from streamwatch.daemon.source_positions import LogCounts, SourcePositions
from streamwatch.daemon.state import State
from streamwatch.daemon.state_holder import StateHolder
from streamwatch.daemon.status import DaemonStatus, counted
from streamwatch.edge.stores.errors import StateFailed, StateForbidden, StateGone, StateRefused
from streamwatch.telemetry import (
    CatchUpCompleted,
    DiskFreed,
    DiskLow,
    Telemetry,
)

COMMIT_SECONDS = 4.0
"""Seconds a stop waits for the last commit to be on the disk."""
LEAVE_SECONDS = 1.0
"""Seconds it waits, beyond that, for a thread that still uses the store."""


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
    fail_on_lost_state: bool = False
    """Whether a state that is removed while it is open ends the daemon, instead of beginning anew."""
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
        self._began = spec.monotonic()
        self._behind = True
        self._backlog_read_ms: int | None = None
        self._low = False
        self._started = False
        self._commits: Commits | None = None
        self._polls: deque[Poll] = deque()
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
                        if (poll := await self._next(stop)) is None:
                            break
                        await self._take(poll, commits, stop)
                    await _finish(commits)
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

    async def _next(self, stop: asyncio.Event) -> Poll | None:
        """The next poll; None when it is time to stop, be it that the brokers kept a poll waiting."""
        if stop.is_set():
            return None
        if self._polls:
            return self._polls.popleft()
        return await self._polled(stop)

    async def _polled(self, stop: asyncio.Event) -> Poll | None:
        try:
            return await self._source.poll()
        except asyncio.CancelledError:
            if stop.is_set():
                return None  # what was read before can be made durable
            raise

    async def _lose(self, error: StateFailed | StateForbidden, stop: asyncio.Event) -> None:
        """Drop what is in memory; nothing of it was shown."""
        delay = self._holder.failed(error)
        await self._leave(LEAVE_SECONDS if stop.is_set() else None)
        if isinstance(error, StateGone) and self._spec.fail_on_lost_state:
            raise StateRefused(
                f"{error}; kafka.on_data_loss is fail: put it back, or start with an empty one"
            )
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
        self._status.stage = "Kafka has not answered yet"
        source_positions, counts = state.source_positions, self._holder.counts()
        self._status.log_counts = counts.plus(state.processor.lost)
        self._polls.clear()
        self._source.count_from(counts.losses, counts.records_lost, counts.position_unverified)
        if self._started:
            await self._source.rewind(source_positions.positions, source_positions.fingerprints)
        else:
            await self._source.start(source_positions.positions, source_positions.fingerprints)
            self._started = True
            self._began = self._spec.monotonic()
        monotonic = self._spec.monotonic
        commits = Commits(
            state,
            self._source_positions,
            self._spec.commits,
            self._settled,
            monotonic,
            self._is_behind,
            self._counted,
        )
        self._commits = commits
        self._status.commits = commits
        self._status.stage = None
        return commits

    def _counted(self) -> LogCounts:
        """What the source found of its logs, and others of theirs."""
        counts = counted(self._source)
        return counts.plus(self._holder.opened.processor.lost)

    def _is_behind(self) -> bool:
        """Tell whether a backlog is being read, or what was read of one waits for its turn."""
        if not self._status.caught_up:
            self._backlog_read_ms = None
            return True
        if self._backlog_read_ms is None:
            self._backlog_read_ms = int(self._spec.monotonic() * 1_000)
        return self.state is not None and self.state.processor.holds_from_before(self._backlog_read_ms)

    def _source_positions(self, positions: Mapping[Partition, int]) -> SourcePositions:
        self._source.evaluated(self._holder.opened.processor.take_newest())
        return SourcePositions(positions, self._source.fingerprints())

    def _settled(self, durable: Durable) -> None:
        self._holder.worked()
        for a in durable.alarms:
            self._telemetry.emit(event_of(a))
        self._status.log_counts = durable.counts
        self._spec.offset_metadata.durable(durable.commit)
        self._source.durable(durable.positions)
        self._show(durable)

    async def _take(self, poll: Poll, commits: Commits, stop: asyncio.Event) -> None:
        """Evaluate what a poll lets go; commit when due, sooner with nothing else to do or a new alarm.

        An alarm met while a backlog is read tells of the past: it waits for the next commit.
        """
        processor = self._holder.opened.processor
        if poll.moved:  # what was read of a log that is gone comes first, and goes with the positions before
            processor.forget_records(poll.moved)
            processor.flush(poll.moved)
            await self._evaluate(commits, stop)
            if processor.has_ready:
                return
        self._source.tell()
        self._status.partitions = poll.partitions
        at_hand = await self._schemas_at_hand(poll, commits, stop)
        if at_hand is None:
            return
        await processor.receive(poll, connected=at_hand and self._source.up and not self._low)
        alarms = await self._evaluate(commits, stop)
        self._source.pause(self._held_back(poll))
        if self._behind and not self._is_behind():
            self._behind = False
            seconds = round(self._spec.monotonic() - self._began, 3)
            self._telemetry.emit(CatchUpCompleted(self.records, seconds))
        if processor.upkeep is not None and not processor.has_ready:
            processor.upkeep.turn()
        await commits.settle(soon=not poll.records or (alarms > 0 and not self._behind))
        await yield_to_loop()

    async def _schemas_at_hand(self, poll: Poll, commits: Commits, stop: asyncio.Event) -> bool | None:
        """Wait until the records of a poll can be decoded; whether that took no time, None if told to stop.

        Meanwhile nothing more is read, but the source is heard, and what was evaluated before becomes
        durable. Records given up at a stop are read again: positions follow what was evaluated.
        """
        schemas, waited = self._spec.schemas, False
        while schemas is not None and not await schemas.ready(poll.records):
            waited = True
            self._source.pause(frozenset(poll.partitions))
            heard = await self._polled(stop)
            if stop.is_set() or heard is None:
                return None
            if heard.moved or heard.records:
                self._polls.append(heard)
            await commits.settle(soon=True)
        return not waited

    async def _evaluate(self, commits: Commits, stop: asyncio.Event) -> int:
        """Evaluate what was released, with commits in between; the number of alarms raised."""
        processor, alarms = self._holder.opened.processor, 0
        while processor.has_ready and not stop.is_set():
            await processor.make_room()
            alarms += processor.evaluate()
            while processor.upkeep is not None and (work := processor.take_work()) is not None:
                await processor.upkeep.do(work)  # nothing is committed in between
                alarms += processor.evaluate()
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


async def _finish(commits: Commits) -> None:
    """Make durable what was read. Being cancelled gives up a poll, which is over: the disk has its time."""
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
