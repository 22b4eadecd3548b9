"""The daemon's life with a source made of lists: readiness, publishing, pausing, stopping, crashing."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from streamwatch.core.checkpoint import Checkpoint, Resumed
from streamwatch.core.events import Fingerprint, Partition
from streamwatch.core.monitors import Monitors
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.core.series import Family, Report
from streamwatch.core.specs import AdwinDriftSpec, JoinSpec, MonitorsSpec, PageHinkleySpec, TimeSpec
from streamwatch.daemon import CommitSpec, Daemon, Intake, Places, ReadingSpec, State, Topic, Vitals
from streamwatch.daemon import daemon as module
from streamwatch.edge.decoders.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.telemetry import Telemetry

P, L = Partition("predictions", 0), Partition("labels", 0)
NOW_MS = 1_700_000_000_000
DEADLINE_SECONDS = 20.0


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


async def test_what_was_read_is_evaluated_and_reported() -> None:
    h = house(
        poll(*(prediction(i) for i in range(10))), poll(*(label(i, "a" if i < 8 else "b") for i in range(9)))
    )
    await run_through(h)
    assert h.reported("outcomes_total") == 9
    assert h.reported("errors_total") == 1
    assert h.reported("pending_predictions") == 1
    assert h.reported("join_identities_violated") == 0


async def test_the_server_answers_before_the_estimators_are_compiled_and_readiness_waits_for_partitions() -> (
    None
):
    compiled = asyncio.Event()
    loop = asyncio.get_running_loop()
    seen: list[list[str]] = []

    def warm_up() -> None:
        seen.append([str(h.server.running), *h.vitals.unready()])
        loop.call_soon_threadsafe(compiled.set)

    h = house(poll(prediction(0)), warm_up=warm_up)
    h.source.hang = asyncio.Event()
    running = asyncio.create_task(h.daemon.run())
    await compiled.wait()
    assert seen == [["True", "the estimators are being compiled"]]
    await until(lambda: h.source.started_with is not None)
    assert h.vitals.unready() == ["Kafka has not answered yet"]
    assert h.live("ready") == 0.0
    h.source.hang.set()
    await until(lambda: not h.vitals.unready())
    assert h.live("ready") == 1.0
    h.source.up = False
    assert h.vitals.unready() == ["Kafka cannot be reached"]
    assert h.live("kafka_up") == 0.0
    assert h.live("caught_up") == 0.0
    h.daemon.stop()
    await running
    assert h.vitals.unready() == ["stopping"]


async def test_stopping_evaluates_the_batch_at_hand_and_reports_it_before_the_server_goes() -> None:
    h = house(*(poll(*(prediction(100 * k + i) for i in range(100))) for k in range(50)))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: len(h.source.polls) < 40)
    h.daemon.stop("test")
    await running
    read = 100 * (50 - len(h.source.polls))
    assert h.source.polls, "it was stopped in the middle"
    assert h.reported("predictions_accepted_total") == read
    assert h.source.stopped
    assert not h.server.running
    assert h.events()[-2:] == ["stopping", "stopped"]


async def test_a_poll_that_hangs_does_not_keep_it_from_stopping() -> None:
    h = house()
    h.source.hang = asyncio.Event()
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: h.source.started_with is not None)
    h.daemon.stop()
    async with asyncio.timeout(module.FINISH_SECONDS + 2.0):
        await running
    assert h.source.stopped


def test_a_stop_does_not_wait_for_the_compiler() -> None:
    compiled = threading.Event()

    async def stopped_while_compiling() -> None:
        h = house(warm_up=lambda: compiled.wait(60.0) and None)
        running = asyncio.create_task(h.daemon.run())
        await until(lambda: "kernel_compiling" in h.events())
        h.daemon.stop()
        await running

    began = time.monotonic()
    asyncio.run(stopped_while_compiling())
    assert time.monotonic() - began < DEADLINE_SECONDS
    compiled.set()


async def test_an_error_of_the_compiler_ends_the_run() -> None:
    def fail() -> None:
        raise RuntimeError("no compiler")

    with pytest.raises(RuntimeError, match="no compiler"):
        await house(warm_up=fail).daemon.run()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it(number: signal.Signals) -> None:
    h = house(poll(prediction(0)))
    running = asyncio.create_task(h.daemon.run())
    await h.source.drained.wait()
    os.kill(os.getpid(), number)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await running
    assert json.loads(h.log.getvalue().splitlines()[-2])["signal"] == number.name


async def test_a_bug_ends_the_run_with_its_own_exception_and_everything_closed() -> None:
    h = house(poll(prediction(0)), KeyError("a bug"))
    with pytest.raises(KeyError, match="a bug"):
        await h.daemon.run()
    assert h.source.stopped
    assert not h.server.running


async def test_a_server_that_cannot_listen_ends_the_run_before_anything_is_read() -> None:
    h = house(poll(prediction(0)))

    async def refuse() -> None:
        raise OSError("taken")

    h.server.start = refuse  # type: ignore[method-assign]
    with pytest.raises(OSError, match="taken"):
        await h.daemon.run()
    assert h.source.started_with is None


async def test_reports_are_at_most_one_a_second_under_load_and_at_once_when_idle() -> None:
    h = house(*(poll(*(prediction(10 * k + i) for i in range(10))) for k in range(200)))
    await run_through(h)
    assert len(h.server.reports) <= 5, "200 polls within a fraction of a second"
    assert h.reported("predictions_accepted_total") == 2_000
    await_idle = house(poll(prediction(0)))
    running = asyncio.create_task(await_idle.daemon.run())
    await until(lambda: bool(await_idle.server.reports))
    await until(lambda: await_idle.reported("predictions_accepted_total") == 1)
    await_idle.source.polls.append(poll(prediction(1)))
    await until(lambda: await_idle.reported("predictions_accepted_total") == 2)
    await_idle.daemon.stop()
    await running


async def test_nothing_new_is_not_reported_again() -> None:
    h = house(poll(prediction(0)))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: len(h.server.reports) == 1)
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert len(h.server.reports) == 1
    h.daemon.stop()
    await running


async def test_an_alarm_is_told_and_reported() -> None:
    wrong = range(40, 120)
    predictions = poll(*(prediction(i) for i in range(120)))
    h = house(predictions, poll(*(label(i, "b" if i in wrong else "a") for i in range(120))))
    await run_through(h)
    assert h.events().count("alarm_raised") >= 1
    (family,) = [f for f in h.server.reports[-1].families if f.name == "alarms_total"]
    assert sum(value for _, value in family.samples) == h.events().count("alarm_raised")


async def test_a_rejected_record_is_told_by_its_place_and_counted_by_its_reason() -> None:
    bad = Record("predictions", 0, 1, NOW_MS, b'{"id": "secret-id", ')
    h = house(poll(prediction(0), bad))
    await run_through(h)
    (line,) = [json.loads(x) for x in h.log.getvalue().splitlines() if "record_rejected" in x]
    assert (line["topic"], line["partition"], line["offset"], line["reason"]) == (
        "predictions",
        0,
        1,
        "invalid_json",
    )
    assert "secret-id" not in h.log.getvalue()
    (family,) = [f for f in h.server.reports[-1].families if f.name == "records_invalid_total"]
    assert dict(family.samples) == {("invalid_json",): 1}


async def test_partitions_that_are_ahead_while_others_catch_up_are_held_back() -> None:
    far = NOW_MS - 3_600_000
    behind = poll(prediction(0, at_ms=far), label(0, at_ms=far + 1_800_000), caught_up=False)
    h = house(behind)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: h.source.paused == {L})
    h.source.polls.append(poll(prediction(1, at_ms=NOW_MS - 1_000)))
    await until(lambda: h.source.paused == frozenset())
    h.daemon.stop()
    await running


async def test_a_partition_that_is_gone_holds_nothing_back_and_has_no_position() -> None:
    gone = Partition("labels", 1)
    begun = poll(prediction(0, at_ms=NOW_MS - 7_200_000), label(0), caught_up=False)
    h = house(Poll(begun.records, {**begun.partitions, gone: PartitionState(0, 5, caught_up=False)}))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: gone in h.intake.positions)
    assert h.intake.pipeline.timeline.label_ms == -1
    h.source.polls.append(poll(prediction(1), label(1)))
    await until(lambda: h.intake.pipeline.timeline.label_ms == NOW_MS)
    assert set(h.intake.positions) == {P, L}
    assert h.source.paused == frozenset()
    h.daemon.stop()
    await running


async def test_a_partition_that_was_gone_at_a_start_holds_nothing_back() -> None:
    h = house()
    h.intake.pipeline.timeline.add(P, "prediction")
    gone = Partition("labels", 1)
    h.intake.pipeline.timeline.add(gone, "label")
    restored = {P: 0, gone: 5}
    old = h.intake
    intake = Intake(old._checkpoint, MemoryStore(), old._topics, old._telemetry, lambda: NOW_MS, restored)
    await intake.take(poll(prediction(0), label(0)))
    assert set(intake.positions) == {P, L}
    assert intake.pipeline.timeline.label_ms == NOW_MS


async def test_catching_up_is_told_once_and_shown() -> None:
    h = house(poll(prediction(0), caught_up=False), poll(prediction(1)), poll(prediction(2)))
    await run_through(h)
    assert h.events().count("catch_up_finished") == 1


async def test_a_poll_larger_than_a_turn_gives_way_in_between() -> None:
    h = house()
    turns = 0

    async def spin() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    spinning = asyncio.create_task(spin())
    await h.intake.take(poll(*(prediction(i) for i in range(5_000))))
    spinning.cancel()
    assert turns >= 9
    assert h.intake.records == 5_000


def test_lag_is_never_negative_and_absent_before_the_first_fetch() -> None:
    h = house()
    h.vitals.partitions = {
        P: PartitionState(10, 7, False),
        L: PartitionState(3, 10, False),
        Partition("labels", 1): PartitionState(0, -1, False),
    }
    (family,) = [f for f in h.vitals.families() if f.name == "consumer_lag_records"]
    assert family.labels == ("partition", "topic")
    assert dict(family.samples) == {("0", "predictions"): 0.0, ("0", "labels"): 7.0}


def test_losses_of_the_source_are_shown_by_cause() -> None:
    h = house()
    h.source.losses, h.source.records_lost = {"offset_out_of_range": 2}, {"offset_out_of_range": 40}
    families = {f.name: dict(f.samples) for f in h.vitals.families()}
    assert families["losses_total"] == {("offset_out_of_range",): 2.0}
    assert families["records_lost_total"] == {("offset_out_of_range",): 40.0}
    assert families["state_durable"] == {(): 0.0}
    assert families["start_timestamp_seconds"] == {(): NOW_MS / 1_000}
