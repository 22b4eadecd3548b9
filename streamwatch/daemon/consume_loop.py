"""Consume loop: reads, evaluates and commits; after a failure of the store it reopens the state from disk."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from streamwatch.core.metrics.metric import Durations
from streamwatch.core.ports import DeadLetters, PartitionState, Poll, Record, Schemas, Source
from streamwatch.core.records.events import Partition
from streamwatch.daemon.alerting import event_of
from streamwatch.daemon.backups import Backups
from streamwatch.daemon.commits import (
    Commits,
    CommitSpec,
    Durable,
    OffsetMetadata,
    Processor,
    State,
    finish,
)
from streamwatch.daemon.merged_records import yield_to_loop
from streamwatch.daemon.source_positions import DataLossTotals, SourcePositions
from streamwatch.daemon.state_holder import StateHolder
from streamwatch.daemon.status import DaemonStatus, counted
from streamwatch.edge.stores.kind import StateFailed, StateForbidden, StateGone, StateRefused
from streamwatch.telemetry import CatchUpCompleted, DiskFreed, DiskLow, Telemetry

# Polls of a source, in order; each is evaluated once the schemas that its records need are loaded.
#
# While the schema registry does not answer, all partitions wait: without limit while the partition that needs
# the schema has not been read to its end in this run, at most `max_hold_back_seconds` afterwards. Then that
# partition is left behind: its records are set aside until they can be decoded, nothing more is read from it,
# and the other partitions go on. Records set aside are evaluated out of order.


PATIENCE_SECONDS: Final = 2.0
"""Least time that a poll waits for its schemas, even if earlier polls used up `max_hold_back_seconds`."""


class Decodable(NamedTuple):
    """A poll whose records can be decoded."""

    poll: Poll
    at_once: bool
    """Whether no schema had to be waited for."""


@dataclass(slots=True)
class _Aside:
    """Records read from a partition that was left behind."""

    pieces: list[Sequence[Record]] = field(default_factory=list["Sequence[Record]"])
    """Records by poll, as delivered."""
    needed: set[Any] = field(default_factory=set[Any])
    """Schemas that the records need."""


class Polls:
    """Returns polls in order, and reads further ones ahead while one waits for schemas.

    Parameters
    ----------
    source
        Source of the polls.
    schemas
        Schemas, loaded before the records that need them are decoded; None if no format needs any.
    max_hold_back_seconds
        How long all partitions wait for a missing schema of a partition that was read to its end in this run.
    monotonic
        Monotonic clock in seconds.
    durations
        Histogram to which the duration of each poll is added.
    """

    def __init__(
        self,
        source: Source,
        schemas: Schemas | None,
        max_hold_back_seconds: float = 600.0,
        monotonic: Callable[[], float] = time.monotonic,
        durations: Durations | None = None,
    ) -> None:
        self._durations = durations or Durations()
        self._source = source
        self._schemas = schemas
        self._max_hold_back_seconds = max_hold_back_seconds
        self._monotonic = monotonic
        self._ahead: deque[Poll] = deque()
        self._aside: dict[Partition, _Aside] = {}
        self._states: Mapping[Partition, PartitionState] = {}
        self._seen_end: set[Partition] = set()
        self._waiting_since: float | None = None

    @property
    def left_behind(self) -> frozenset[Partition]:
        """Partitions that are not read until the schemas of their records set aside are loaded."""
        return frozenset(self._aside)

    def clear(self) -> None:
        """Drop the polls read ahead and the records set aside."""
        self._ahead.clear()
        self._aside.clear()
        self._seen_end.clear()

    async def next(self, stop: asyncio.Event) -> Poll | None:
        """Return the next poll; None once `stop` is set, even while brokers keep a poll waiting."""
        if stop.is_set():
            return None
        if self._aside and (returned := await self._returned()):
            return returned
        if self._ahead:
            return self._ahead.popleft()
        return await self._polled(stop)

    def last_of(self, poll: Poll) -> Sequence[Poll]:
        """Take out the records set aside for partitions whose logs are gone or replaced as of a poll.

        They are evaluated without waiting for the missing schemas: the next records are of another log.
        """
        gone = {p for p in self._aside if p in poll.moved or (poll.partitions and p not in poll.partitions)}
        return self._given_back(gone)

    async def decodable(self, poll: Poll, commits: Commits, stop: asyncio.Event) -> Decodable | None:
        """Wait until the records of a poll can be decoded; return None once `stop` is set.

        Meanwhile all partitions are paused, the source is polled for changes, and earlier records are
        committed. At a stop the poll is dropped; the next start reads it again, as positions are those of
        evaluated records.
        """
        schemas, at_once = self._schemas, True
        if schemas is None:
            return Decodable(poll, at_once)
        records = dict(poll.records)
        needed = dict(await schemas.needed(records))
        for partition in self._aside.keys() & records.keys():  # polls read ahead may have some
            self._set_aside(partition, records.pop(partition), needed.pop(partition, ()))
        began = self._monotonic()
        while missing := await schemas.missing(needed):
            at_once = False
            late = self._seen_end.intersection(missing) if self._is_too_long(began) else ()
            for partition in late:
                self._set_aside(partition, records.pop(partition), needed.pop(partition))
            if late:
                continue
            self._source.pause(frozenset(poll.partitions))
            heard = await self._polled(stop)
            if stop.is_set() or heard is None:
                return None
            if heard.moved or heard.records:
                self._ahead.append(heard)
            await commits.settle(soon=True)
        if not self._aside:
            self._waiting_since = None
        self._states = poll.partitions
        self._seen_end.update(p for p, state in poll.partitions.items() if state.at_end_ms is not None)
        return Decodable(self._as_left(records, poll.moved), at_once)

    def _is_too_long(self, began: float) -> bool:
        """Return whether all partitions have waited long enough for schemas, of this poll or earlier ones."""
        now = self._monotonic()
        if self._waiting_since is None:
            self._waiting_since = began
        patient = min(PATIENCE_SECONDS, self._max_hold_back_seconds)
        return now - self._waiting_since >= self._max_hold_back_seconds and now - began >= patient

    def _set_aside(self, partition: Partition, records: Sequence[Record], needed: Any) -> None:
        aside = self._aside.setdefault(partition, _Aside())
        aside.pieces.append(records)
        aside.needed.update(needed)

    async def _returned(self) -> Poll | None:
        """Return the next poll of records set aside whose schemas are all loaded by now; None without any."""
        assert self._schemas is not None  # noqa: S101 - nothing is set aside without
        needed = {partition: aside.needed for partition, aside in self._aside.items()}
        missing = await self._schemas.missing(needed, wait=False)
        found = needed.keys() - set(missing)
        polls = self._given_back(found)
        self._ahead.extendleft(reversed(polls[1:]))
        return polls[0] if polls else None

    def _given_back(self, partitions: Collection[Partition]) -> Sequence[Poll]:
        """Take out the records set aside for these partitions, divided into polls as they were delivered."""
        pieces = {partition: self._aside.pop(partition).pieces for partition in sorted(partitions)}
        polls: list[Poll] = []
        for number in range(max(map(len, pieces.values()), default=0)):
            records = {partition: each[number] for partition, each in pieces.items() if number < len(each)}
            ends = {partition: piece[-1].offset + 1 for partition, piece in records.items()}
            polls.append(Poll(records, {**self._states, **self._states_at(ends)}))
        return polls

    def _states_at(self, positions: Mapping[Partition, int]) -> Mapping[Partition, PartitionState]:
        """Return states of partitions with these positions, at which more is to be evaluated."""
        return {
            partition: replace(self._states[partition], position=position, caught_up=False, at_end_ms=None)
            for partition, position in positions.items()
            if partition in self._states
        }

    def _as_left(self, records: Mapping[Partition, Sequence[Record]], moved: frozenset[Partition]) -> Poll:
        """Return a poll in which partitions left behind have the position of their first record set aside."""
        states = self._states_at({p: aside.pieces[0][0].offset for p, aside in self._aside.items()})
        return Poll(records, {**self._states, **states}, moved, frozenset(states))

    async def _polled(self, stop: asyncio.Event) -> Poll | None:
        began = self._monotonic()
        try:
            poll = await self._source.poll()
        except asyncio.CancelledError:
            if stop.is_set():
                return None  # evaluated records can still be committed
            raise
        self._durations.observe(self._monotonic() - began)
        return poll


class Backlog:
    """Tells whether a backlog is being read, and emits an event when that of the start has been evaluated.

    Parameters
    ----------
    status
        Its `caught_up` is whether every partition was read to its end; its `evaluated_ms` is updated.
    telemetry
        Receives `CatchUpCompleted`, once.
    monotonic
        Monotonic clock in seconds.
    """

    def __init__(self, status: DaemonStatus, telemetry: Telemetry, monotonic: Callable[[], float]) -> None:
        self._status = status
        self._telemetry = telemetry
        self._monotonic = monotonic
        self._began = monotonic()
        self._read_ms: int | None = None
        """Monotonic time at which every partition was read to its end; None while one is not."""
        self._coming: tuple[int, int] | None = None
        """Next `evaluated_ms`, and the time by which all that was in the logs until then had been read."""
        self.passed = False
        """Whether the backlog of the start is over."""

    def begin(self) -> None:
        """Count seconds from now."""
        self._began = self._monotonic()

    def lasts(self, processor: Processor | None) -> bool:
        """Return whether a backlog is being read, or some of its records are not evaluated yet."""
        if not self._status.caught_up:
            self._read_ms = None
            return True
        if self._read_ms is None:
            self._read_ms = int(self._monotonic() * 1_000)
        return processor is not None and processor.holds_from_before(self._read_ms)

    def look(self, processor: Processor, records: int) -> None:
        """Note how far the logs are evaluated, after an evaluation.

        Emits `CatchUpCompleted` with the number of records, once the backlog of the start is over.
        """
        if self._coming is None:
            ends = [state.at_end_ms for state in self._status.partitions.values()]
            known = [each for each in ends if each is not None]
            if ends and len(known) == len(ends):
                self._coming = (min(known), int(self._monotonic() * 1_000))
        if self._coming is not None and not processor.holds_from_before(self._coming[1]):
            self._status.evaluated_ms, self._coming = self._coming[0], None
        if not self.passed and not self.lasts(processor):
            self.passed = True
            self._telemetry.emit(CatchUpCompleted(records, round(self._monotonic() - self._began, 3)))


MEMORY_SECONDS = 10.0
"""Seconds between two calls that return freed memory to the system."""
LEAVE_SECONDS = 1.0
"""Seconds that a stop waits, after the last commit, for threads that still use the store."""


@dataclass(frozen=True, slots=True)
class ConsumeLoopSpec:
    """Parts of the consume loop."""

    open_state: Callable[[], State]
    """Opens and restores state, in a thread; raises StateRefused or StateFailed."""
    commits: CommitSpec
    disk_is_low: Callable[[], bool] = lambda: False
    """Called after each poll; while it returns True, all partitions are paused."""
    offset_metadata: OffsetMetadata = field(default_factory=OffsetMetadata)
    """Updated with what is durable."""
    dead_letters: DeadLetters | None = None
    """Topic of invalid records, used by every state that is opened, stopped at the end of the loop."""
    schemas: Schemas | None = None
    """Schemas, loaded before the records that need them are decoded; None if no format needs any."""
    max_hold_back_seconds: float = 600.0
    """How long all partitions wait for a missing schema of a partition that was read to its end."""
    fail_on_lost_state: str | None = None
    """Name of the setting that has the daemon fail when its state directory is removed while it is open; None
    begins a new state instead."""
    monotonic: Callable[[], float] = time.monotonic
    """Monotonic clock in seconds."""
    backups: Backups | None = None
    """Backups of the open state; None if the state is in memory only."""
    return_memory: Callable[[], object] = lambda: None
    """Returns freed memory to the system; called when a backlog is over, and every ten seconds."""


class ConsumeLoop:
    """Reads, evaluates and commits until it is stopped.

    Parameters
    ----------
    source
        All partitions of the configured topics.
    spec
        How state is opened and committed.
    status
        Updated with every poll and commit.
    telemetry
        Receives internal events.
    show
        Called with every durable commit.
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
        self._memory_due = spec.monotonic() + MEMORY_SECONDS
        self._started = False
        self._commits: Commits | None = None
        self._polls = Polls(source, spec.schemas, spec.max_hold_back_seconds, spec.monotonic, status.polls)
        self.holder = StateHolder(spec.open_state, spec.offset_metadata, status, telemetry, spec.monotonic)

    @property
    def backups(self) -> Backups | None:
        """Backups of the open state; None if the state is in memory only."""
        return self._spec.backups

    async def run(self, stop: asyncio.Event) -> None:
        """Read until `stop` is set, then commit what was evaluated.

        Raises what the source refuses, too (`SourceKind.refusals`).

        Raises
        ------
        StateRefused
            If the state cannot be used; or was removed while it was open, and `fail_on_lost_state` is set.
        """
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
                    if not self.holder.was_open:
                        raise
                    await self._lose(error, stop)
        finally:
            await self._leave(LEAVE_SECONDS)
            if self._spec.backups is not None:
                await self._spec.backups.stop()
            if self._spec.dead_letters is not None:
                await self._spec.dead_letters.stop()
            if self._spec.schemas is not None:
                await self._spec.schemas.close()

    async def _lose(self, error: StateFailed | StateForbidden, stop: asyncio.Event) -> None:
        """Close the state, and wait before it is reopened; nothing that was not committed has been shown."""
        delay = self.holder.failed(error)
        await self._leave(LEAVE_SECONDS if stop.is_set() else None)
        setting = self._spec.fail_on_lost_state
        if isinstance(error, StateGone) and setting is not None:
            raise StateRefused(f"{error}; {setting} is fail: put it back, or start with an empty one")
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await stop.wait()

    async def _leave(self, seconds: float | None) -> None:
        unused = self._spec.backups is None or await self._spec.backups.leave(seconds)
        await self.holder.leave(self._commits, seconds, unused=unused)
        self._commits = self._status.progress = None
        self._status.partitions = {}  # the next state may begin elsewhere

    async def _open(self) -> Commits:
        state = await self.holder.open()
        self._opened()
        state.alerting.begin()  # pending notifications do not wait for the source
        if state.publishing is not None:
            state.publishing.begin()
        self._status.stage = f"{self._source.name} has not answered yet"
        source_positions, counts = state.source_positions, self.holder.counts()
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
        self._status.progress = state.processor.progress
        self._status.shown = False
        self._status.stage = None
        return commits

    def _counted(self) -> DataLossTotals:
        """Sum the data loss counted by the source and by the processor."""
        counts = counted(self._source)
        return counts.plus(self.holder.opened.processor.data_loss)

    def _is_behind(self) -> bool:
        return self._backlog.lasts(None if self.holder.state is None else self.holder.state.processor)

    def _source_positions(self, positions: Mapping[Partition, int]) -> SourcePositions:
        self._source.evaluated(self.holder.opened.processor.take_newest())
        return SourcePositions(positions, self._source.fingerprints())

    def _settled(self, durable: Durable) -> None:
        self.holder.worked()
        for a in durable.alarms:
            self._telemetry.emit(event_of(a))
        self._status.data_loss = durable.counts
        self._spec.offset_metadata.durable(durable.commit)
        publishing = self.holder.opened.publishing
        if publishing is None or publishing.leads:  # of several replicas only the holder commits offsets
            self._source.durable(durable.positions)
        self._show(durable)
        self._status.shown = self._status.shown or durable.report is not None

    async def _take(self, poll: Poll, commits: Commits, stop: asyncio.Event) -> None:
        """Evaluate the records that a poll releases; commit when due, sooner after an empty poll or an alarm.

        An alarm found in a backlog is about the past and waits for the next regular commit.
        """
        processor = self.holder.opened.processor
        for last in self._polls.last_of(poll):
            await processor.receive(last)
            await self._evaluate(commits, stop)
            if processor.has_ready:
                return
        if poll.moved:  # records of a replaced log come first, with the old positions
            processor.forget_records(poll.moved)
            processor.flush(poll.moved)
            await self._evaluate(commits, stop)
            if processor.has_ready:
                return
        self._source.release_findings()
        self._status.partitions = poll.partitions
        decodable = await self._polls.decodable(poll, commits, stop)
        if decodable is None:
            return
        poll = decodable.poll
        self._status.partitions = poll.partitions
        await processor.receive(poll, connected=decodable.at_once and self._source.up and not self._low)
        alarms = await self._evaluate(commits, stop)
        self._source.pause(self._held_back(poll) | self._polls.left_behind)
        was_passed = self._backlog.passed
        self._backlog.look(processor, self.holder.records)
        if processor.maintenance is not None and not processor.has_ready:
            processor.maintenance.schedule_next()
        await commits.settle(soon=not poll.records or (alarms > 0 and self._backlog.passed))
        self._status.shown = self._status.shown or processor.is_empty
        if self._spec.backups is not None:
            self._spec.backups.look(self.holder.opened.store)
        self._return_memory(caught_up=not was_passed and self._backlog.passed)
        await yield_to_loop()

    def _return_memory(self, *, caught_up: bool) -> None:
        """Return freed memory to the system if it is due; a backlog frees a tenth of it in ten seconds."""
        now = self._spec.monotonic()
        if caught_up or now >= self._memory_due:
            self._memory_due = now + MEMORY_SECONDS
            self._spec.return_memory()

    async def _evaluate(self, commits: Commits, stop: asyncio.Event) -> int:
        """Evaluate the released records, with commits in between; return the number of alarms raised."""
        processor, alarms = self.holder.opened.processor, 0
        while processor.has_ready and not (stop.is_set() and processor.may_commit):
            await processor.make_room()
            began = self._spec.monotonic()
            alarms += processor.evaluate()
            self._status.evaluations.observe(self._spec.monotonic() - began)
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
        """Return the partitions not to be read now: those ahead of others, or all while the disk is low."""
        low = self._spec.disk_is_low()
        if low != self._low:
            self._telemetry.emit(DiskLow() if low else DiskFreed())
            self._low = self._status.disk_low = low
        return frozenset(poll.partitions) if low else self.holder.opened.processor.crowded()
