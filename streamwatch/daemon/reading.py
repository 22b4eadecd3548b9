"""The loop that reads, evaluates and commits; after a failure of the store it begins again from the disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from streamwatch.core.events import Partition
from streamwatch.core.ports import Poll
from streamwatch.daemon.commits import Commits, CommitSpec, Durable
from streamwatch.daemon.intake import breathe
from streamwatch.daemon.mark import StateMark
from streamwatch.daemon.places import Places
from streamwatch.daemon.state import State
from streamwatch.daemon.vitals import Feed, Vitals, counted
from streamwatch.edge.stores.errors import StateFailed
from streamwatch.telemetry import (
    AlarmRaised,
    CatchUpFinished,
    DiskFreed,
    DiskLow,
    EstimatorsChanged,
    ModelNotTakenOver,
    StateLost,
    StateOpened,
    Telemetry,
)

COMMIT_SECONDS = 4.0
"""What a stop waits for the last commit to be on the disk."""
LEAVE_SECONDS = 1.0
"""What it waits, beyond that, for a thread that still uses the store."""
RETRY_SECONDS = (0.1, 0.5, 2.0, 5.0, 15.0)
"""Between attempts to open state again after its disk failed; the last one repeats."""


@dataclass(frozen=True, slots=True)
class ReadingSpec:
    """What the reading loop is made of."""

    open_state: Callable[[], State]
    """Opens and restores state, in a thread; raises StateRefused or StateFailed."""
    commits: CommitSpec
    disk_is_low: Callable[[], bool] = lambda: False
    """Asked before each poll; nothing is read while it says so."""
    mark: StateMark = field(default_factory=StateMark)
    """Kept up to date with what is durable."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds that never go back."""


class Reading:
    """Reads until told to stop.

    Parameters
    ----------
    source
        All partitions of the configured topics.
    spec
        How state is opened and committed.
    vitals
        Kept up to date.
    telemetry
        Told what happens.
    show
        Given every durable commit.
    opened
        Called when state is open, before Kafka is asked.
    """

    def __init__(
        self,
        source: Feed,
        spec: ReadingSpec,
        vitals: Vitals,
        telemetry: Telemetry,
        show: Callable[[Durable], None],
        opened: Callable[[], None] = lambda: None,
    ) -> None:
        self._source = source
        self._spec = spec
        self._vitals = vitals
        self._telemetry = telemetry
        self._show = show
        self._opened = opened
        self._began = spec.monotonic()
        self._behind = True
        self._low = False
        self._started = False
        self._failures = 0
        self._records_before = 0
        self._commits: Commits | None = None
        self.state: State | None = None

    @property
    def records(self) -> int:
        """Records taken in since the start."""
        return self._records_before + (self.state.intake.records if self.state else 0)

    async def run(self, stop: asyncio.Event) -> None:
        """Read until `stop`, then make durable what was read; raises refusals and bugs."""
        try:
            while not stop.is_set():
                try:
                    commits = await self._open()
                    while True:
                        await self._let_time_pass(commits, stop)
                        if (poll := await self._next(stop)) is None:
                            break
                        await self._take(poll, commits)
                    await _finish(commits)
                except StateFailed as error:
                    await self._lose(error, stop)
        finally:
            await self._leave(LEAVE_SECONDS)

    async def _next(self, stop: asyncio.Event) -> Poll | None:
        """The next poll; None when it is time to stop, be it that the brokers kept a poll waiting."""
        if stop.is_set():
            return None
        try:
            return await self._source.poll()
        except asyncio.CancelledError:
            if stop.is_set():
                return None  # what was read before can be made durable
            raise

    async def _leave(self, seconds: float | None) -> None:
        """Close the store once no thread uses it; one that hangs in a flush keeps it to the end."""
        self._vitals.commits = None  # a store that is closed tells nothing of itself
        unused = self._commits is None or await self._commits.abandon(seconds)
        self._commits = None
        if self.state is not None:
            self._records_before = self.records
            if unused:
                self.state.store.close()
            self.state = None

    async def _lose(self, error: StateFailed, stop: asyncio.Event) -> None:
        """Drop what is in memory; nothing of it was shown."""
        delay = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
        self._failures += 1
        self._vitals.durable = False
        self._vitals.stage = "state could not be written or read, and is being opened again"
        self._telemetry.emit(StateLost(str(error), delay))
        await self._leave(LEAVE_SECONDS if stop.is_set() else None)
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await stop.wait()

    async def _open(self) -> Commits:
        self._vitals.stage = "state is being opened"
        began = self._spec.monotonic()
        state = await asyncio.to_thread(self._spec.open_state)
        self.state = state
        self._vitals.durable = state.store.durable
        resumed = state.resumed
        if state.store.durable:
            seconds = round(self._spec.monotonic() - began, 3)
            self._telemetry.emit(
                StateOpened(state.checkpoint.commits, resumed.models, resumed.refolded, seconds)
            )
        if resumed.restarted or resumed.dropped:
            self._telemetry.emit(EstimatorsChanged(resumed.continued, resumed.restarted, resumed.dropped))
        for model, reason in resumed.refused.items():
            self._telemetry.emit(ModelNotTakenOver(model, reason))
        if state.store.durable:
            self._spec.mark.opened(state.store.identity, state.checkpoint.commits)
        self._opened()
        if state.alerting is not None:
            state.alerting.begin()  # what is owed, and what is open, does not wait for Kafka
        self._vitals.stage = "Kafka has not answered yet"
        places, counts = state.places, state.places.counts
        self._vitals.log_counts = counts
        self._source.count_from(counts.losses, counts.records_lost, counts.fingerprint_unverifiable)
        if self._started:
            await self._source.rewind(places.positions, places.fingerprints)
        else:
            await self._source.start(places.positions, places.fingerprints)
            self._started = True
            self._began = self._spec.monotonic()
        monotonic = self._spec.monotonic
        commits = Commits(
            state,
            self._places,
            self._spec.commits,
            self._settled,
            monotonic,
            self._is_behind,
            lambda: counted(self._source),
        )
        self._commits = commits
        self._vitals.commits = commits
        self._vitals.stage = None
        return commits

    def _is_behind(self) -> bool:
        return not self._vitals.caught_up

    def _places(self, positions: Mapping[Partition, int]) -> Places:
        return Places(positions, self._source.fingerprints())

    def _settled(self, durable: Durable) -> None:
        self._failures = 0
        for a in durable.alarms:
            raised = AlarmRaised(a.model, a.detector, a.ordinal, a.outcome, a.at_ms, a.before, a.after)
            self._telemetry.emit(raised)
        self._vitals.log_counts = durable.counts
        self._spec.mark.durable(durable.commit)
        self._source.durable(durable.positions)
        self._show(durable)

    async def _take(self, poll: Poll, commits: Commits) -> None:
        """Evaluate one poll; commit when due, sooner when there is nothing else to do or an alarm is new.

        An alarm met while a backlog is read tells of the past: it waits for the next commit.
        """
        assert self.state is not None  # noqa: S101 - between _open and _leave
        intake = self.state.intake
        self._vitals.partitions = poll.partitions
        alarms = await intake.take(poll)
        self._source.pause(self._held_back(poll))
        if self._behind and self._vitals.caught_up:
            self._behind = False
            seconds = round(self._spec.monotonic() - self._began, 3)
            self._telemetry.emit(CatchUpFinished(self.records, seconds))
        await commits.settle(soon=not poll.records or (alarms > 0 and not self._behind))
        await breathe()

    async def _let_time_pass(self, commits: Commits, stop: asyncio.Event) -> None:
        """What falls due at once may be much: in parts, with commits in between, it needs little memory."""
        assert self.state is not None  # noqa: S101 - between _open and _leave
        intake = self.state.intake
        while intake.owes_time and not stop.is_set():
            intake.pass_time()
            await commits.settle(soon=False)
            await breathe()

    def _held_back(self, poll: Poll) -> frozenset[Partition]:
        """Partitions not to be read now: those ahead of others, or all while the disk is nearly full."""
        assert self.state is not None  # noqa: S101 - see _take
        low = self._spec.disk_is_low()
        if low != self._low:
            self._telemetry.emit(DiskLow() if low else DiskFreed())
            self._low = self._vitals.disk_low = low
        return frozenset(poll.partitions) if low else self.state.intake.pipeline.timeline.ahead()


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
