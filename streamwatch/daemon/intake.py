"""Records in, state out: stamp, decode, fetch, advance, commit, in turns that let health checks answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from streamwatch.core.events import Event, Invalid, Partition, Progress, Side
from streamwatch.core.monitors import Monitors
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.ports import Decoder, Poll, Record, Store
from streamwatch.core.series import Report
from streamwatch.telemetry import AlarmRaised, RecordRejected, Telemetry

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
    pipeline, monitors, store
        The core, its estimators, and where state lives.
    topics
        What each topic carries, and how to decode it.
    telemetry
        Told of rejected records and raised alarms.
    now_ms
        The wall clock, only to bound record timestamps from the future.
    """

    def __init__(  # the parts of one turn
        self,
        pipeline: Pipeline,
        monitors: Monitors,
        store: Store,
        topics: Mapping[str, Topic],
        telemetry: Telemetry,
        now_ms: Callable[[], int],
    ) -> None:
        self.pipeline = pipeline
        self._monitors = monitors
        self._store = store
        self._topics = topics
        self._telemetry = telemetry
        self._now_ms = now_ms
        self._told: dict[Partition, Progress] = {}
        self._newest_ms: dict[Partition, int] = {}
        self._positions: dict[Partition, int] = {}
        self.records = 0
        """Records taken in since the start."""

    async def take(self, poll: Poll) -> int:
        """Evaluate a poll and commit it; the number of alarms it raised."""
        self._meet(poll)
        alarms = 0
        events: list[Event] = []
        for partition, records in poll.records.items():
            for start in range(0, len(records), RECORDS_PER_TURN):
                piece = records[start : start + RECORDS_PER_TURN]
                if events and len(events) + len(piece) > RECORDS_PER_TURN:
                    alarms += self._commit(events)
                    events = []
                    await breathe()
                events += self._decode(partition, piece)
                self._positions[partition] = piece[-1].offset + 1
        for partition, state in poll.partitions.items():
            self._positions[partition] = state.position  # past control records, too
            if (progress := self._progress(partition, caught_up=state.caught_up)) is not None:
                events.append(progress)
        return alarms + self._commit(events) if events else alarms

    def report_in_slices(self) -> Generator[None, None, Report]:
        """What is true after the last commit; gives way between slices of models."""
        families = self.pipeline.join_families()
        families += yield from self._monitors.families_in_slices()
        return Report(families, self._now_ms(), self._monitors.details())

    def _meet(self, poll: Poll) -> None:
        """Make partitions seen for the first time known; they hold their side's time until they are read."""
        for partition in poll.partitions.keys() - self._positions.keys():
            self.pipeline.timeline.add(partition, self._topics[partition.topic].side)

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

    def _commit(self, events: Sequence[Event]) -> int:
        found = self._store.fetch(self.pipeline.needs(events))
        step = self.pipeline.advance(events, found)
        self._store.commit(step, self._positions)
        for alarm in step.alarms:
            self._telemetry.emit(
                AlarmRaised(
                    alarm.model,
                    alarm.detector,
                    alarm.ordinal,
                    alarm.outcome,
                    alarm.at_ms,
                    alarm.before,
                    alarm.after,
                )
            )
        return len(step.alarms)
