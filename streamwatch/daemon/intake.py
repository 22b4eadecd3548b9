"""Records in, state out: stamp, decode, fetch, advance, keep, in turns that let health checks answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from streamwatch.core.checkpoint import Checkpoint
from streamwatch.core.events import Alarm, Event, Invalid, Partition, Progress, Side
from streamwatch.core.ports import Decoder, Poll, Record, Store
from streamwatch.core.series import Report
from streamwatch.telemetry import RecordRejected, Telemetry

RECORDS_PER_TURN = 500
REQUEST_STEPS = 4


async def breathe() -> None:
    """Let the event loop turn between two batches.

    A request takes as many turns as it has steps (read, handle, answer): after a single turn a whole batch
    would stand between two of its steps.
    """
    for _ in range(REQUEST_STEPS):
        await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Topic:
    """What a topic carries, and what turns its records into events."""

    side: Side
    decoder: Decoder


class Intake:
    """Feeds what a poll delivered through the core into the store.

    Parameters
    ----------
    checkpoint
        The core and its estimators, and what remembers what commits need.
    store
        Where state lives.
    topics
        What each topic carries, and how to decode it.
    telemetry
        Told of rejected records.
    now_ms
        The wall clock, only to bound record timestamps from the future.
    positions
        Where reading goes on, of a state that was restored. What had been caught up then may have a backlog
        by now, and holds its side's watermark until that is known.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        store: Store,
        topics: Mapping[str, Topic],
        telemetry: Telemetry,
        now_ms: Callable[[], int],
        positions: Mapping[Partition, int] | None = None,
    ) -> None:
        self.pipeline = checkpoint.pipeline
        self._monitors = checkpoint.monitors
        self._store = store
        self._checkpoint = checkpoint
        self._topics = topics
        self._telemetry = telemetry
        self._now_ms = now_ms
        self._told: dict[Partition, Progress] = {}
        self._newest_ms: dict[Partition, int] = {}
        self._positions: dict[Partition, int] = dict(positions or {})
        self._unread: list[Event] = list(self.pipeline.timeline.unread()) if positions else []
        self._uncommitted = 0
        self._alarms: list[Alarm] = []
        self._retired: list[str] = []
        self.records = 0
        """Records taken in since the start."""

    @property
    def positions(self) -> Mapping[Partition, int]:
        """Where reading would go on after what was taken in."""
        return self._positions

    @property
    def uncommitted(self) -> int:
        """Events taken in since `settle`."""
        return self._uncommitted

    def settle(self) -> tuple[Sequence[Alarm], Sequence[str]]:
        """Everything taken in so far is being committed; the alarms it raised, and models that retired."""
        self._uncommitted = 0
        alarms, self._alarms = self._alarms, []
        retired, self._retired = self._retired, []
        return alarms, retired

    @property
    def owes_time(self) -> bool:
        """Much falls due at once: `pass_time` before the next `take`."""
        return self.pipeline.owes_time

    def pass_time(self) -> int:
        """Let a part of what is due fall due; the number of alarms that raised."""
        return self._evaluate(())

    async def take(self, poll: Poll) -> int:
        """Evaluate a poll; the number of alarms it raised."""
        self._meet(poll)
        alarms = 0
        events: list[Event] = []
        if self._unread:  # on its own: time moves last in every other batch
            alarms += self._evaluate(self._unread)
            self._unread = []
        for partition, records in poll.records.items():
            for start in range(0, len(records), RECORDS_PER_TURN):
                piece = records[start : start + RECORDS_PER_TURN]
                if events and len(events) + len(piece) > RECORDS_PER_TURN:
                    alarms += self._evaluate(events)
                    events = []
                    await breathe()
                events += self._decode(partition, piece)
                self._positions[partition] = piece[-1].offset + 1
        for partition, state in poll.partitions.items():
            self._positions[partition] = state.position  # past control records, too
            if (progress := self._progress(partition, caught_up=state.caught_up)) is not None:
                events.append(progress)
        return alarms + self._evaluate(events) if events else alarms

    def report_in_slices(self) -> Generator[None, None, Report]:
        """What is true after the last commit; gives way between slices of models."""
        families = self.pipeline.join_families()
        families += yield from self._monitors.families_in_slices()
        return Report(families, self._now_ms(), self._monitors.details(), tuple(self._monitors.recent_alarms))

    def _meet(self, poll: Poll) -> None:
        """Make partitions seen for the first time known; they hold their side's time until they are read.

        Those that are no longer there are forgotten.
        """
        for partition in poll.partitions:  # in their order: it is part of the state
            if partition not in self._positions:
                self.pipeline.timeline.add(partition, self._topics[partition.topic].side)
        for partition in self._positions.keys() - poll.partitions.keys() if poll.partitions else ():
            self._forget(partition)

    def _forget(self, partition: Partition) -> None:
        """Its topic was made anew with fewer partitions: kept, it would hold its side's time for ever."""
        self.pipeline.timeline.forget(partition)
        del self._positions[partition]
        self._newest_ms.pop(partition, None)
        self._told.pop(partition, None)
        gone = Progress(*partition, -1, False)
        self._unread = [event for event in self._unread if event != gone]

    def _decode(self, partition: Partition, records: Sequence[Record]) -> Sequence[Event]:
        stamps = self.pipeline.timeline.stamp_all(
            partition, [record.timestamp for record in records], self._now_ms()
        )
        self._newest_ms[partition] = max(self._newest_ms.get(partition, -1), *stamps)
        events = self._topics[partition.topic].decoder.decode_all(records, stamps)
        self.records += len(records)
        for event in events:
            if type(event) is Invalid:
                self._telemetry.emit(RecordRejected(event.topic, event.partition, event.offset, event.reason))
        return events

    def _progress(self, partition: Partition, *, caught_up: bool) -> Progress | None:
        """How far reading has come, if that is news."""
        progress = Progress(
            partition.topic, partition.partition, self._newest_ms.get(partition, -1), caught_up
        )
        if self._told.get(partition) == progress:
            return None
        self._told[partition] = progress
        return progress

    def _evaluate(self, events: Sequence[Event]) -> int:
        found = self._store.fetch(self.pipeline.needs(events))
        step = self.pipeline.advance(events, found)
        self._store.keep(step)
        if self._store.durable:
            self._checkpoint.take(step)
        self._uncommitted += len(events) + len(step.changed)
        self._alarms += step.alarms
        self._retired += [model for _, model in step.retired]
        return len(step.alarms)
