"""Nothing is shown before it is durable; what cannot be written is read again."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import CommitBatch, Poll
from streamwatch.core.specs import JoinSpec
from streamwatch.daemon import (
    MERGE,
    POSITIONS,
    BatchProcessor,
    CommitSpec,
    ConsumeLoopSpec,
    Daemon,
    DaemonStatus,
    State,
    decode_positions,
    restored_progress,
)
from streamwatch.daemon.source_positions import SourcePositions
from streamwatch.edge.keys import digest_bytes
from streamwatch.edge.stores.kind import StateFailed, StateForbidden, StateRefused
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.telemetry import Telemetry
from tests.core.model_store import ModelStore
from tests.cpu_budget import until
from tests.daemon.fake_daemon import (
    AT_ONCE,
    CLOCKS,
    NOW_MS,
    SPEC,
    FakeDaemon,
    FakeServer,
    FakeSource,
    L,
    P,
    label,
    plain_topics,
    poll,
    prediction,
    quiet,
    stands,
)


class Disk:
    """What survives, and how writing to it goes."""

    def __init__(self):
        self.model_store = ModelStore()
        self.may_flush = threading.Event()
        self.may_flush.set()
        self.commits_that_fail = 0
        self.flushes_that_fail = 0
        self.opened = 0
        self.low = False
        self.refusal: Exception | None = None


class DiskStore(MemoryStore):
    """Contents of commits, kept by the test as a disk would."""

    def __init__(self, disk: Disk):
        super().__init__()
        self._disk = disk

    @property
    def durable(self) -> bool:
        return True

    def load(self):
        return self._disk.model_store.saved()

    def commit(self, changes: CommitBatch) -> None:
        if self._disk.commits_that_fail:
            self._disk.commits_that_fail -= 1
            raise StateFailed("no space left on device")
        self._disk.model_store.commit(changes)

    def flush(self) -> None:
        self._disk.may_flush.wait(20.0)
        if self._disk.flushes_that_fail:
            self._disk.flushes_that_fail -= 1
            raise StateFailed("input/output error")


OFTEN = CommitSpec(0.05, 50)


def durable_fake_daemon(disk: Disk, *polls, commits=OFTEN, source: FakeSource | None = None) -> FakeDaemon:
    log = io.StringIO()
    telemetry = Telemetry(stream=log)
    topics = plain_topics()

    def open_state() -> State:
        if disk.refusal is not None:
            raise disk.refusal
        disk.opened += 1
        store, monitors = DiskStore(disk), EstimatorSet(SPEC)
        pipeline = Pipeline(JoinSpec(), monitors, digest_bytes)
        checkpoint = Checkpoint(pipeline, monitors, SPEC, 1_000)
        saved = store.load()
        resumed = checkpoint.restore(saved)
        stands = decode_positions(saved.sections[POSITIONS]) if saved.commits else SourcePositions()
        progress = restored_progress(saved.sections.get(MERGE), topics)
        processor = BatchProcessor(checkpoint, store, topics, telemetry, CLOCKS, AT_ONCE, progress)
        return State(store, checkpoint, processor, stands, resumed, quiet(monitors))

    source, server = source or FakeSource(list(polls)), FakeServer()
    status = DaemonStatus(source, telemetry, clock=lambda: NOW_MS / 1_000)
    reading = ConsumeLoopSpec(open_state, commits, lambda: disk.low)
    daemon = Daemon(source, reading, server, status, telemetry, lambda: None)
    return FakeDaemon(source, server, status, None, daemon, log)


async def running_until(h: FakeDaemon, condition: Callable[[], bool]) -> None:
    running = asyncio.create_task(h.daemon.run())
    try:
        await until(condition)
    finally:
        h.daemon.stop()
        await running


def pairs(first: int, number: int):
    """Predictions and their labels in one poll, nothing left pending."""
    numbers = range(first, first + number)
    return poll(*(prediction(i) for i in numbers), *(label(i) for i in numbers))


async def test_nothing_is_shown_and_no_offset_given_out_before_the_disk_has_it() -> None:
    disk = Disk()
    disk.may_flush.clear()
    h = durable_fake_daemon(disk, pairs(0, 10))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: disk.model_store.commits > 0)
    await h.source.drained.wait()
    assert h.server.reports == []
    assert h.source.durable_positions == {}
    disk.may_flush.set()
    await until(lambda: bool(h.server.reports))
    await until(lambda: h.source.durable_positions == {P: 10, L: 10})
    h.daemon.stop()
    await running
    assert h.reported("outcomes_total") == 10


async def test_reading_goes_on_while_the_disk_is_slow_but_not_without_end() -> None:
    disk = Disk()
    disk.may_flush.clear()
    h = durable_fake_daemon(disk, *(pairs(20 * k, 20) for k in range(40)), commits=CommitSpec(0.0, 50))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: len(h.source.polls) < 38)
    for _ in range(30):
        await asyncio.sleep(0.005)
    assert len(h.source.polls) > 30, "it must wait for the disk at some point"
    disk.may_flush.set()
    await until(lambda: not h.source.polls)
    h.daemon.stop()
    await running
    assert h.reported("outcomes_total") == 800


@pytest.mark.parametrize("failing", ["commits_that_fail", "flushes_that_fail"])
async def test_after_a_failed_write_everything_not_durable_is_read_again(failing: str) -> None:
    disk = Disk()
    setattr(disk, failing, 1)
    h = durable_fake_daemon(disk, pairs(0, 10))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: h.source.rewound_to is not None)
    assert h.server.reports == []
    written = failing == "flushes_that_fail"  # a failed flush leaves it open whether the commit is there
    assert h.source.rewound_to == ({P: 10, L: 10} if written else {})
    if not written:
        h.source.polls.append(pairs(0, 10))
    await until(lambda: bool(h.server.reports) and h.reported("predictions_accepted_total") == 10)
    h.daemon.stop()
    await running
    assert disk.opened == 2
    assert h.events().count("state_lost") == 1
    assert h.reported("outcomes_total") == 10


async def test_a_state_that_cannot_be_used_ends_the_run_in_words() -> None:
    disk = Disk()
    disk.refusal = StateRefused("another daemon uses it")
    h = durable_fake_daemon(disk)
    with pytest.raises(StateRefused, match="another daemon"):
        await h.daemon.run()
    assert not h.server.running


async def test_a_state_that_may_not_be_written_is_refused_at_the_start() -> None:
    """Once it was open it is waited for: tests/faults/test_read_only.py."""
    disk = Disk()
    disk.refusal = StateForbidden("read-only")
    with pytest.raises(StateForbidden):
        await durable_fake_daemon(disk).daemon.run()


async def test_a_state_whose_disk_fails_at_the_opening_is_tried_again() -> None:
    disk = Disk()
    disk.refusal = StateFailed("input/output error")
    h = durable_fake_daemon(disk, pairs(0, 3))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: "state_lost" in h.events())
    assert h.status.unready()
    assert h.live("state_durable") == 0.0
    disk.refusal = None
    await until(lambda: bool(h.server.reports) and h.reported("outcomes_total") == 3)
    assert h.live("state_durable") == 1.0
    h.daemon.stop()
    await running


async def test_a_stop_makes_durable_what_was_read_and_a_start_goes_on_from_it() -> None:
    disk = Disk()
    h = durable_fake_daemon(disk, pairs(0, 10), commits=CommitSpec(3_600.0, 1_000_000))
    await running_until(h, h.source.drained.is_set)
    again = durable_fake_daemon(disk, pairs(10, 5))
    await running_until(again, lambda: bool(again.server.reports) and again.reported("outcomes_total") == 15)
    assert again.source.started_with == {P: 10, L: 10}
    opened = [line for line in again.log.getvalue().splitlines() if "state_opened" in line]
    assert '"refolded_outcomes": 10' in opened[0]


async def test_nothing_is_read_while_the_disk_is_nearly_full() -> None:
    disk = Disk()
    disk.low = True
    h = durable_fake_daemon(disk, poll(prediction(0)))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: h.source.paused == {P, L})
    assert h.live("state_disk_low") == 1.0
    disk.low = False
    await until(lambda: h.source.paused == frozenset())
    assert h.live("state_disk_low") == 0.0
    h.daemon.stop()
    await running
    assert [name for name in h.events() if name.startswith("disk")] == ["disk_low", "disk_freed"]


async def test_state_that_is_open_counts_as_durable_before_kafka_has_answered() -> None:
    source = FakeSource([], hang=asyncio.Event())
    h = durable_fake_daemon(Disk(), source=source)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: source.started_with is not None)
    assert (h.live("state_durable"), h.live("ready")) == (1.0, 0.0)
    source.hang.set()
    h.daemon.stop()
    await running


async def test_an_alarm_is_delivered_only_when_it_is_durable() -> None:
    disk = Disk()
    disk.may_flush.clear()
    numbers = range(120)
    wrong = range(40, 120)
    h = durable_fake_daemon(
        disk,
        poll(*(prediction(i) for i in numbers)),
        poll(*(label(i, "b" if i in wrong else "a") for i in numbers)),
        commits=CommitSpec(0.05, 1_000),  # what fills two commits would wait for the disk
    )
    running = asyncio.create_task(h.daemon.run())
    await h.source.drained.wait()
    await until(lambda: disk.model_store.commits > 0)
    assert "alarm_raised" not in h.events()
    disk.may_flush.set()
    await until(lambda: "alarm_raised" in h.events())
    h.daemon.stop()
    await running


async def test_what_is_held_is_no_part_of_a_commit_neither_its_position_nor_its_fingerprint() -> None:
    disk = Disk()
    held = Poll({P: [prediction(1, record_ms=NOW_MS + 1)]}, {P: stands(2), L: stands(1, caught_up=False)})
    h = durable_fake_daemon(disk, poll(prediction(0), label(0)), held)
    h.source.idle = False
    await running_until(h, h.source.drained.is_set)
    assert {partition: record.offset for partition, record in h.source.newest.items()} == {P: 0, L: 0}
    assert h.source.durable_positions == {P: 1, L: 1}
    progress = restored_progress(disk.model_store.sections[MERGE])
    assert progress.positions == {P: 1, L: 1}
    assert progress.running_ms == {P: NOW_MS, L: NOW_MS}
    again = durable_fake_daemon(
        disk, Poll({P: [prediction(1, record_ms=NOW_MS + 1)]}, {P: stands(2), L: stands(1)})
    )
    again.source.idle = False
    late = NOW_MS + 2
    again.source.polls.append(Poll({L: [label(1, record_ms=late)]}, {P: stands(2), L: stands(2)}))
    await running_until(again, again.source.drained.is_set)
    assert again.source.started_with == {P: 1, L: 1}


def test_positions_survive_their_commit() -> None:
    stands = SourcePositions({P: 3, L: 9})
    assert decode_positions(stands.encode()) == stands
    assert replace(stands, positions={P: 3}) == stands.only({"predictions"})


def test_positions_and_progress_that_no_partition_has_are_refused() -> None:
    stands = msgspec.msgpack.decode(SourcePositions({P: 3}).encode())
    [partition] = stands["partitions"]
    for damaged in ([*partition[:2], 2**63, *partition[3:]], [partition[0], 2**64 - 1, *partition[2:]]):
        with pytest.raises(PackedError, match="the section 'positions' cannot be read"):
            decode_positions(msgspec.msgpack.encode({**stands, "partitions": [damaged]}))
    for damaged in ([["predictions", 0, 3, 2**63]], [["predictions", 0, 2**63, 3]]):
        with pytest.raises(PackedError, match="the section 'merge' cannot be read"):
            restored_progress(msgspec.msgpack.encode([damaged]))
