"""A daemon whose source is made of lists and whose server remembers: a house that tests look into."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streamwatch.core.checkpoint import Checkpoint, Resumed
from streamwatch.core.events import Fingerprint, Partition
from streamwatch.core.monitors import Monitors
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.core.series import Family, Report
from streamwatch.core.specs import AdwinDriftSpec, JoinSpec, MonitorsSpec, PageHinkleySpec, TimeSpec
from streamwatch.daemon import CommitSpec, Daemon, Intake, Places, ReadingSpec, State, Topic, Vitals
from streamwatch.edge.decoders.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.telemetry import Telemetry

P, L = Partition("predictions", 0), Partition("labels", 0)
NOW_MS = 1_700_000_000_000
DEADLINE_SECONDS = 300.0


@dataclass(frozen=True)
class Record:
    topic: str
    partition: int
    offset: int
    timestamp: int
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()


def prediction(offset: int, predicted: str = "a", at_ms: int = NOW_MS) -> Record:
    value = json.dumps({"id": str(offset), "model": "m", "prediction": predicted}).encode()
    return Record("predictions", 0, offset, at_ms, value)


def label(offset: int, truth: str = "a", at_ms: int = NOW_MS) -> Record:
    return Record("labels", 0, offset, at_ms, json.dumps({"id": str(offset), "label": truth}).encode())


def poll(*records: Record, caught_up: bool = True) -> Poll:
    by_partition: dict[Partition, list[Record]] = {}
    for record in records:
        by_partition.setdefault(Partition(record.topic, record.partition), []).append(record)
    ends = {p: batch[-1].offset + 1 for p, batch in by_partition.items()}
    return Poll(by_partition, {p: PartitionState(ends.get(p, 0), ends.get(p, 0), caught_up) for p in (P, L)})


@dataclass
class FakeSource:
    """Delivers its polls, then idles; each poll is a point where the test may look."""

    polls: list[Poll | Exception] = field(default_factory=list)
    up: bool = True
    assigned: bool = False
    losses: Mapping[str, int] = field(default_factory=dict)
    records_lost: Mapping[str, int] = field(default_factory=dict)
    fingerprint_unverifiable: int = 0
    paused: frozenset[Partition] = frozenset()
    started_with: Mapping[Partition, int] | None = None
    stopped: bool = False
    hang: asyncio.Event | None = None
    durable_positions: Mapping[Partition, int] = field(default_factory=dict)
    rewound_to: Mapping[Partition, int] | None = None
    ends: dict[Partition, int] = field(default_factory=dict)
    drained: asyncio.Event = field(default_factory=asyncio.Event)

    def fingerprints(self) -> Mapping[Partition, Fingerprint]:
        return {}

    def durable(self, positions: Mapping[Partition, int]) -> None:
        self.durable_positions = dict(positions)

    def count_from(
        self, losses: Mapping[str, int], records_lost: Mapping[str, int], unverifiable: int
    ) -> None:
        self.losses, self.records_lost = dict(losses), dict(records_lost)
        self.fingerprint_unverifiable = unverifiable

    async def rewind(self, positions: Mapping[Partition, int], _fingerprints: object) -> None:
        self.rewound_to = positions

    async def start(self, positions: Mapping[Partition, int], _fingerprints: object) -> None:
        self.started_with = positions
        if self.hang is not None:
            await self.hang.wait()
        self.assigned = True

    async def poll(self) -> Poll:
        await asyncio.sleep(0)
        if self.polls:
            item = self.polls.pop(0)
            if isinstance(item, Exception):
                raise item
            for partition, state in item.partitions.items():
                self.ends[partition] = max(self.ends.get(partition, 0), state.position)
            return item
        self.drained.set()
        await asyncio.sleep(0.01)
        return Poll({}, {p: PartitionState(self.ends.get(p, 0), self.ends.get(p, 0), True) for p in (P, L)})

    def pause(self, partitions: frozenset[Partition]) -> None:
        self.paused = partitions

    async def stop(self) -> None:
        self.stopped = True


@dataclass
class FakeServer:
    url: str = "http://fake"
    reports: list[Report] = field(default_factory=list)
    running: bool = False
    was_started: bool = False

    async def start(self) -> None:
        self.running = self.was_started = True

    def publish(self, report: Report) -> None:
        self.reports.append(report)

    async def stop(self) -> None:
        self.running = False


@dataclass
class House:
    source: FakeSource
    server: FakeServer
    vitals: Vitals
    intake: Intake
    daemon: Daemon
    log: io.StringIO

    def events(self) -> list[str]:
        return [json.loads(line)["event"] for line in self.log.getvalue().splitlines()]

    def live(self, name: str) -> float:
        return only(self.vitals.families(), name)

    def reported(self, name: str, number: int = -1) -> float:
        return only(self.server.reports[number].families, name)


def only(families: Sequence[Family], name: str) -> float:
    (family,) = [family for family in families if family.name == name]
    ((_, value),) = family.samples
    assert isinstance(value, float | int)
    return value


SENSITIVE = PageHinkleySpec(threshold=5.0, min_outcomes=5)
SPEC = MonitorsSpec(detectors=(SENSITIVE, AdwinDriftSpec()), max_models=4, max_classes=10)


def house(*polls: Poll | Exception, warm_up: Callable[[], None] = lambda: None) -> House:
    log = io.StringIO()
    telemetry = Telemetry(stream=log)
    monitors = Monitors(SPEC)
    pipeline = Pipeline(JoinSpec(), TimeSpec(), monitors, {})
    topics = {
        "predictions": Topic("prediction", JsonDecoder("predictions", "prediction", TopicMapping())),
        "labels": Topic("label", JsonDecoder("labels", "label", TopicMapping())),
    }
    store = MemoryStore()
    checkpoint = Checkpoint(pipeline, monitors, SPEC, 1_000)
    intake = Intake(checkpoint, store, topics, telemetry, lambda: NOW_MS)
    state = State(store, checkpoint, intake, Places(), Resumed())
    source, server = FakeSource(list(polls)), FakeServer()
    vitals = Vitals(source, telemetry, clock=lambda: NOW_MS / 1_000)
    reading = ReadingSpec(lambda: state, CommitSpec())
    daemon = Daemon(source, reading, server, vitals, telemetry, warm_up)
    return House(source, server, vitals, intake, daemon, log)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110  # what is waited for has no event
            await asyncio.sleep(0.005)


async def run_through(h: House) -> None:
    """Run until every poll was delivered and evaluated, then stop."""
    running = asyncio.create_task(h.daemon.run())
    await asyncio.wait(
        {running, asyncio.ensure_future(h.source.drained.wait())}, return_when="FIRST_COMPLETED"
    )
    h.daemon.stop()
    await running
