"""Time that leaps, at the daemon: what falls due does so in parts, and a stop may come between them."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

from streamwatch.core.checkpoint import Checkpoint
from streamwatch.core.monitors import Monitors
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.specs import JoinSpec, TimeSpec
from streamwatch.daemon import (
    POSITIONS,
    CommitSpec,
    Daemon,
    Intake,
    ReadingSpec,
    State,
    Topic,
    Vitals,
    places,
)
from streamwatch.daemon.places import Places
from streamwatch.edge.decoders.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.keys import digest_ids
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from streamwatch.telemetry import Telemetry
from tests.house import NOW_MS, SPEC, FakeServer, FakeSource, House, label, poll, prediction, until

WAITING, AT_ONCE = 300, 10
JOIN = JoinSpec(horizon_ms=60_000, early_horizon_ms=60_000)
LONG_AGO = NOW_MS - 86_400_000


class LeapHouse:
    """Lives over one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.pipeline: Pipeline | None = None

    def life(self, *polls) -> House:
        telemetry = Telemetry(stream=io.StringIO())
        topics = {
            name: Topic(side, JsonDecoder(name, side, TopicMapping(), digest_ids))
            for name, side in (("predictions", "prediction"), ("labels", "label"))
        }

        def open_state() -> State:
            spec = RocksSpec(self.directory, JOIN.horizon_ms, JOIN.early_horizon_ms, 0, due_records=AT_ONCE)
            store, monitors = RocksStore.open(spec), Monitors(SPEC)
            self.pipeline = pipeline = Pipeline(JOIN, TimeSpec(), monitors, {})
            checkpoint = Checkpoint(pipeline, monitors, SPEC, 1_000)
            saved = store.load()
            resumed = checkpoint.restore(saved)
            stands = places(saved.sections[POSITIONS]) if saved.commits else Places()
            intake = Intake(checkpoint, store, topics, telemetry, lambda: NOW_MS, stands.positions)
            return State(store, checkpoint, intake, stands, resumed)

        source, server = FakeSource(list(polls)), FakeServer()
        vitals = Vitals(source, telemetry, clock=lambda: NOW_MS / 1_000)
        reading = ReadingSpec(open_state, CommitSpec(0.05, 2 * AT_ONCE))
        daemon = Daemon(source, reading, server, vitals, telemetry, lambda: None)
        return House(source, server, vitals, None, daemon, io.StringIO())


def waiting():
    """Predictions of a day ago, ten a second, whose labels are yet to come."""
    return [prediction(i, at_ms=LONG_AGO + 100 * i) for i in range(WAITING)]


async def test_a_leap_is_committed_in_parts_and_a_stop_between_them_loses_nothing(tmp_path: Path) -> None:
    houses = LeapHouse(tmp_path / "state")
    first = houses.life(poll(*waiting(), caught_up=False))
    running = asyncio.create_task(first.daemon.run())
    await until(first.source.drained.is_set)
    first.daemon.stop()
    await running
    assert houses.pipeline.counters.predictions_accepted == WAITING

    second = houses.life(poll(label(10**6), prediction(10**6)))
    running = asyncio.create_task(second.daemon.run())

    def half_way() -> bool:
        pipeline = houses.pipeline
        return pipeline.owes_time and pipeline.counters.predictions_expired > WAITING // 3

    async with asyncio.timeout(60):
        while not half_way():  # noqa: ASYNC110  # what is waited for has no event
            await asyncio.sleep(0)
    second.daemon.stop()
    await running
    assert 0 < houses.pipeline.counters.predictions_expired < WAITING, "the stop came between two parts"

    third = houses.life()
    running = asyncio.create_task(third.daemon.run())
    await until(third.source.drained.is_set)
    third.daemon.stop()
    await running
    assert houses.pipeline.counters.predictions_expired == WAITING
    assert houses.pipeline.counters.predictions_resolved == 1
    assert not houses.pipeline.owes_time
    assert houses.pipeline.identities() == []
