"""A daemon whose source is made of lists and whose server remembers: a fake daemon that tests look into."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.rules import AlarmsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.merge import MergeProgress, MergeSpec
from streamwatch.core.metrics.series import Family, Report
from streamwatch.core.pipeline.checkpoint import Checkpoint, RestoreReport
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import DataLossCounters, PartitionState, Poll, Schemas
from streamwatch.core.records.events import Fingerprint, Partition
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.core.specs import AdwinDriftSpec, JoinSpec, MonitorsSpec, PageHinkleySpec
from streamwatch.daemon import (
    BatchProcessor,
    Clocks,
    CommitSpec,
    ConsumeLoopSpec,
    Daemon,
    DaemonStatus,
    RejectedRecords,
    SourcePositions,
    State,
    Topic,
)
from streamwatch.daemon.alerting import Alerting
from streamwatch.daemon.deliveries import Deliveries, DeliverySpec
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.keys import IdKeys, digest_bytes
from streamwatch.edge.sources.kafka.source import source_families
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.telemetry import Telemetry

P, L = Partition("predictions", 0), Partition("labels", 0)
NOW_MS = 1_700_000_000_000
CLOCKS = Clocks(lambda: NOW_MS, lambda: 0)
"""Clocks that stand still: what was read counts as read when every fetch was sent."""
AT_ONCE = MergeSpec(settle_ms=0)
"""Records go as soon as every partition was found at its end or read beyond them."""


@dataclass(frozen=True)
class Record:
    topic: str
    partition: int
    offset: int
    timestamp: int
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    timestamp_type: int = 0
    fault: str | None = None


def prediction(offset: int, predicted_class: str = "a", record_ms: int = NOW_MS) -> Record:
    value = json.dumps({"id": str(offset), "model": "m", "prediction": predicted_class}).encode()
    return Record("predictions", 0, offset, record_ms, value)


def label(offset: int, true_class: str = "a", record_ms: int = NOW_MS) -> Record:
    return Record(
        "labels", 0, offset, record_ms, json.dumps({"id": str(offset), "label": true_class}).encode()
    )


def bad(offset: int) -> Record:
    return Record("predictions", 0, offset, NOW_MS, b"{")


def poll(*records: Record, caught_up: bool = True) -> Poll:
    by_partition: dict[Partition, list[Record]] = {}
    for record in records:
        by_partition.setdefault(Partition(record.topic, record.partition), []).append(record)
    ends = {p: batch[-1].offset + 1 for p, batch in by_partition.items()}
    return Poll(by_partition, {p: stands(ends.get(p, 0), caught_up=caught_up) for p in (P, L)})


def stands(position: int, *, caught_up: bool = True) -> PartitionState:
    """At the end of a partition, or with more to be read."""
    return PartitionState(position, position, caught_up, CLOCKS.monotonic_ms() if caught_up else None)


@dataclass
class FakeSource:
    """Delivers its polls, then idles; each poll is a point where the test may look."""

    polls: list[Poll | Exception] = field(default_factory=list)
    name: str = "Kafka"
    up: bool = True
    assigned: bool = False
    losses: Mapping[str, int] = field(default_factory=dict)
    records_lost: Mapping[str, int] = field(default_factory=dict)
    position_unverified: int = 0
    paused: frozenset[Partition] = frozenset()
    started_with: Mapping[Partition, int] | None = None
    stopped: bool = False
    hang: asyncio.Event | None = None
    durable_positions: Mapping[Partition, int] = field(default_factory=dict)
    rewound_to: Mapping[Partition, int] | None = None
    ends: dict[Partition, int] = field(default_factory=dict)
    newest: dict[Partition, Record] = field(default_factory=dict)
    releases: int = 0
    last: Mapping[Partition, PartitionState] = field(default_factory=dict)
    idle: bool = True
    """Whether every partition is found at its end once the polls are used up."""
    drained: asyncio.Event = field(default_factory=asyncio.Event)

    def fingerprints(self) -> Mapping[Partition, Fingerprint]:
        return {}

    def evaluated(self, newest: Mapping[Partition, Record]) -> None:
        self.newest |= newest

    def release_findings(self) -> None:
        self.releases += 1

    def durable(self, positions: Mapping[Partition, int]) -> None:
        self.durable_positions = dict(positions)

    def count_from(
        self, losses: Mapping[str, int], records_lost: Mapping[str, int], unverified_positions: int
    ) -> None:
        self.losses, self.records_lost = dict(losses), dict(records_lost)
        self.position_unverified = unverified_positions

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
            self.last = item.partitions
            for partition, state in item.partitions.items():
                self.ends[partition] = max(self.ends.get(partition, 0), state.position)
            return item
        self.drained.set()
        await asyncio.sleep(0.01)
        return Poll({}, {p: stands(self.ends.get(p, 0)) for p in (P, L)} if self.idle else self.last)

    def pause(self, partitions: frozenset[Partition]) -> None:
        self.paused = partitions

    def families(self, counts: DataLossCounters | None) -> Sequence[Family]:
        return source_families(counts, up=self.up)

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
class FakeDaemon:
    source: FakeSource
    server: FakeServer
    status: DaemonStatus
    processor: BatchProcessor
    daemon: Daemon
    log: io.StringIO
    checkpoint: Checkpoint | None = None

    def events(self) -> list[str]:
        return [json.loads(line)["event"] for line in self.log.getvalue().splitlines()]

    def live(self, name: str) -> float:
        return only(self.status.families(), name)

    def reported(self, name: str, number: int = -1) -> float:
        return only(self.server.reports[number].families, name)


def only_samples(families: Sequence[Family], name: str):
    (family,) = [family for family in families if family.name == name]
    return family.samples


def only(families: Sequence[Family], name: str) -> float:
    ((_, value),) = only_samples(families, name)
    assert isinstance(value, float | int)
    return value


SENSITIVE = PageHinkleySpec(threshold=5.0, min_outcomes=5)
SPEC = MonitorsSpec(detectors=(SENSITIVE, AdwinDriftSpec()), max_models=4, max_classes=10)


def quiet(monitors: EstimatorSet) -> Alerting:
    """Alerting without receivers."""
    deliveries = Deliveries([], DeliverySpec(), lambda _: None)
    return Alerting(
        AlarmBook(AlarmsSpec(), "state-1"), deliveries, lambda: monitors.facts, lambda: NOW_MS, {}
    )


def plain_topics(keys: IdKeys | None = None, vocabulary: Vocabulary | None = None) -> dict[str, Topic]:
    """Topics of JSON, whose decoders number names by one vocabulary as those of a daemon do."""
    vocabulary = vocabulary or Vocabulary()
    return {
        name: Topic(side, JsonDecoder(DecoderSpec(name, side, TopicMapping(), keys, vocabulary)))
        for name, side in (("predictions", "prediction"), ("labels", "label"))
    }


def fake_daemon(
    *polls: Poll | Exception,
    warm_up: Callable[[], None] = lambda: None,
    merge: MergeSpec = AT_ONCE,
    monotonic_ms: Callable[[], int] = CLOCKS.monotonic_ms,
    progress: MergeProgress | None = None,
    schemas: Schemas | None = None,
    rejected: RejectedRecords | None = None,
    monotonic: Callable[[], float] = time.monotonic,
    max_hold_back_seconds: float = 600.0,
    return_memory: Callable[[], object] = lambda: None,
    join: JoinSpec | None = None,
) -> FakeDaemon:
    log = io.StringIO()
    telemetry = Telemetry(stream=log)
    monitors = EstimatorSet(SPEC)
    pipeline = Pipeline(join or JoinSpec(), monitors, digest_bytes)
    topics = plain_topics()
    store = MemoryStore()
    checkpoint = Checkpoint(pipeline, monitors, SPEC, 1_000)
    clocks = Clocks(CLOCKS.host_ms, monotonic_ms)
    processor = BatchProcessor(
        checkpoint, store, topics, telemetry, clocks, merge, progress, rejected=rejected
    )
    state = State(store, checkpoint, processor, SourcePositions(), RestoreReport(), quiet(monitors))
    source, server = FakeSource(list(polls)), FakeServer()
    status = DaemonStatus(source, telemetry, schemas=schemas, clock=lambda: NOW_MS / 1_000)
    reading = ConsumeLoopSpec(
        lambda: state,
        CommitSpec(),
        schemas=schemas,
        max_hold_back_seconds=max_hold_back_seconds,
        monotonic=monotonic,
        return_memory=return_memory,
    )
    daemon = Daemon(source, reading, server, status, telemetry, warm_up)
    return FakeDaemon(source, server, status, processor, daemon, log, checkpoint)


async def taken(processor: BatchProcessor, given: Poll) -> None:
    """Receive a poll and evaluate everything that it lets go."""
    await processor.receive(given)
    while processor.has_ready:
        processor.evaluate()


async def run_through(h: FakeDaemon) -> None:
    """Run until every poll was delivered and evaluated, then stop."""
    running = asyncio.create_task(h.daemon.run())
    await asyncio.wait(
        {running, asyncio.ensure_future(h.source.drained.wait())}, return_when="FIRST_COMPLETED"
    )
    h.daemon.stop()
    await running
