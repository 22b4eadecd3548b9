"""The daemon's reading loop over simulated brokers, disk and clock: one seed, one history."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random

from streamwatch.core.merge import Released
from streamwatch.core.pipeline.pipeline import PartialResult, Pipeline
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import Event, Partition
from streamwatch.daemon import (
    MERGE,
    POSITIONS,
    BatchProcessor,
    Clocks,
    ConsumeLoopSpec,
    DaemonStatus,
    SourcePositions,
    State,
    Topic,
    decode_positions,
    restored_progress,
)
from streamwatch.daemon.commits import Durable
from streamwatch.daemon.consume_loop import ConsumeLoop
from streamwatch.daemon.daemon import DELIVER_SECONDS, FINISH_SECONDS
from streamwatch.daemon.status import SteadyClock
from streamwatch.telemetry import InternalEvent, StateLost
from tests.core.join.durable_streams import cramped_logs
from tests.faults.simulation.broker import SimDecoder, SimSource
from tests.faults.simulation.checks import Shown, a_pipeline, audit, restored, side_of
from tests.faults.simulation.disk import Defect, Disk, DiskStore, require
from tests.faults.simulation.loop import CrashError, StuckError, VirtualLoop
from tests.faults.simulation.telling import Telling
from tests.faults.simulation.workload import Plan, a_plan

LONGEST_SECONDS = 1_500.0
"""That a life takes at most: the longest logs grow for a third of it."""
SETTLING_LIVES = 5
"""Without faults, at most: what the last commit of a stop decides waits for the next start."""


@dataclass
class InternalEvents:
    """Stands where telemetry stands."""

    emitted: list[InternalEvent] = field(default_factory=list)

    def emit(self, event: InternalEvent) -> None:
        self.emitted.append(event)


class Noted:
    """Tells the store what a processor evaluates, which it does not hear of."""

    def __init__(self, processor: BatchProcessor, store: DiskStore) -> None:
        self._step = processor._step
        self._store = store

    def __call__(self, ready: Released) -> tuple[RecordBatch, PartialResult]:
        records, step = self._step(ready)
        self._store.note(records.events(), step.alarms)
        return records, step


class Simulation:
    """Runs of one daemon, one after another, over one disk and one set of logs.

    Parameters
    ----------
    seed
        Of everything.
    plan
        In place of the seed's own.
    crashes
        Turns in which the first runs end; by default the seed says.
    defect
        What is wrong with the disk.
    """

    def __init__(
        self, seed: int, plan: Plan | None = None, crashes: list[int] | None = None, defect: Defect = ""
    ) -> None:
        self.plan = plan or a_plan(seed)
        self._chance = Random(f"{seed} life")
        self.disk = Disk(self._chance, self.plan.troubles, defect)
        self.shown = Shown(self.plan, self.disk)
        self.telemetry = InternalEvents()
        self.origins: dict[int, tuple[Event, Partition, int]] = {}
        self.telling = Telling(seed, self.plan, self.disk)
        self._crashes = crashes
        self._now = 0.0
        self._loop: VirtualLoop | None = None
        self._clock: SteadyClock | None = None
        self._stop = asyncio.Event()
        self._trace = blake2b(digest_size=16)
        self.turns: list[int] = []
        """Of each life."""
        self.promised = False
        """Whether what was found at the end is what every run must give."""
        self.complaints: list[str] = []

    @property
    def trace(self) -> str:
        """Equal for equal histories."""
        return self._trace.hexdigest()

    def final(self) -> Pipeline:
        """What the disk holds."""
        return restored(self.plan, self.disk.images[-1].saved)

    def run(self) -> Simulation:
        """All runs to the end of the logs, then the audit; packed commits are written anew at once."""
        with cramped_logs():
            return self._run()

    def _run(self) -> Simulation:
        chance, plan = self._chance, self.plan
        crashes = self._crashes
        if crashes is None:
            crashes = [
                int(chance.choice((30, 300, 1500)) * chance.random()) + 1 for _ in range(plan.runs - 1)
            ]
        for crash_at in crashes:
            self._live(crash_at, leaves_early=self._crashes is None and chance.random() < 0.25)
        self.telling.heal(self._now)
        for _ in range(SETTLING_LIVES):
            self._live(None, leaves_early=False)
            if not self.disk.images[-1].saved.outbox:
                break
        require(not self.complaints, self.complaints)
        self.promised = audit(plan, self.disk.history(), self.origins)
        self.telling.audit()
        ledger = self.telling.ledger
        self._note(sorted(ledger.counts.items()), sorted(ledger.between.items()))
        for image in self.disk.history():
            self._note(image.number, image.saved, len(image.events))
        return self

    def _live(self, crash_at: int | None, *, leaves_early: bool) -> None:
        chance, plan = self._chance, self.plan
        loop = self._loop = VirtualLoop(chance, self._now, crash_at, plan.slowest_seconds)
        loop.set_exception_handler(lambda _, context: self.complaints.append(str(context)))
        self._clock = SteadyClock(lambda: plan.clock_ms(loop.time()), loop.time)
        self._stop = asyncio.Event()
        self.telling.begin(len(self.turns), loop)
        feed = SimSource(plan.logs, plan.seen_from, self.disk, chance, plan.habits)
        spec = ConsumeLoopSpec(self._open_state, plan.commits, self._disk_is_low, monotonic=loop.time)
        status = DaemonStatus(feed, self.telemetry)
        reading = ConsumeLoop(feed, spec, status, self.telemetry, self._show)
        if leaves_early:
            loop.call_later(chance.random() * 20, self._stop.set)
        loop.call_later(LONGEST_SECONDS, self._give_up)
        try:
            loop.run_until_complete(self._daemon(reading))
            if status.stage != "state is being opened":  # its thread has yet to end
                self._left_well(loop)
            self._drop(loop, "stop")
        except (CrashError, StuckError) as end:
            require(isinstance(end, CrashError), "nothing is going on, and nothing will")
            self._drop(loop, "crash")
        except BaseException:
            self._drop(loop, "bug")
            raise
        self._now += chance.uniform(0.5, 1.0) * chance.choice(plan.down_seconds)
        self.disk.lose_power()
        self._note(self.turns[-1], self._now, self.disk.images[-1].number)
        self.shown.remembered()

    def _left_well(self, loop: VirtualLoop) -> None:
        """A stop leaves nothing behind; a disk that failed or was too slow for it excuses the last commit."""
        last = self.telemetry.emitted[-1]
        left = [task.get_coro().__qualname__ for task in asyncio.all_tasks(loop)]
        if left == ["Commits._flush"]:
            require(self.disk.store is not None, "closed while it is being flushed")
            return
        require(not left, f"left running: {left}")
        require(self.disk.store is None, "left open")
        require(isinstance(last, StateLost) or self.disk.all_durable, "a stop left what is not durable")

    def _drop(self, loop: VirtualLoop, how: str) -> None:
        self.turns.append(loop.turns)
        if how != "bug":
            self.telling.end(how)
        self._now = loop.time()
        self.disk.store = None
        self._loop = None
        loop.drop()

    async def _daemon(self, reading: ConsumeLoop) -> None:
        """As the daemon stops it: a while to deliver and to finish, then by force."""
        task = asyncio.create_task(reading.run(self._stop))
        delivering = asyncio.create_task(self._deliver())
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait({task, stopped}, return_when="FIRST_COMPLETED")
        if self._stop.is_set():
            await self.telling.deliveries.stop(DELIVER_SECONDS)
        delivering.cancel()
        if not task.done():
            await asyncio.wait({task}, timeout=FINISH_SECONDS)
            task.cancel()
        stopped.cancel()
        await asyncio.wait({task, delivering, stopped})
        if not task.cancelled():
            await task

    async def _deliver(self) -> None:
        try:
            await self.telling.deliveries.run()
        except BaseExceptionGroup as several:
            self.complaints += [repr(error) for error in several.exceptions]
            self._stop.set()

    def _give_up(self) -> None:
        if self._loop is not None:
            self.complaints.append("it does not come to an end")
            self._stop.set()

    def _disk_is_low(self) -> bool:
        return self._chance.random() < self.plan.disk_low

    def _open_state(self) -> State:
        plan = self.plan
        store = self.disk.open()
        self.shown.remembered()
        _, _, checkpoint = a_pipeline(plan)
        saved = store.load()
        resumed = checkpoint.restore(saved)
        topics = {p.topic: Topic(side_of(p), SimDecoder(self.origins)) for p in plan.logs}
        stands = decode_positions(saved.sections[POSITIONS]) if saved.commits else SourcePositions()
        progress = restored_progress(saved.sections.get(MERGE), topics)
        assert self._clock is not None
        assert self._loop is not None
        self._clock.not_before(max(progress.running_ms.values(), default=0) - plan.merge.max_future_ms)
        seconds = self._loop.time
        clocks = Clocks(self._clock, lambda: int(seconds() * 1_000))
        processor = BatchProcessor(checkpoint, store, topics, self.telemetry, clocks, plan.merge, progress)
        processor._step = Noted(processor, store)
        self._note("open", saved.commits)
        return State(store, checkpoint, processor, stands, resumed, self.telling.alerting(checkpoint, saved))

    def _show(self, durable: Durable) -> None:
        if self._loop is None:
            return
        self.shown(durable)
        self._note("show", self._loop.turns, sorted(durable.positions.items()))
        ends = {partition: log.end for partition, log in self.plan.logs.items()}
        if durable.positions == ends and not self.telling.waits:
            self._stop.set()

    def _note(self, *what: object) -> None:
        self._trace.update(repr(what).encode())
