"""Time that leaps, at the daemon: what falls due does so in parts, and a stop may come between them."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join import join as compiled_join
from streamwatch.core.pipeline import pipeline as pipeline_module
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.pipeline import Pipeline
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
from streamwatch.edge.keys import bytes_of_keys, id_keys
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from streamwatch.telemetry import Telemetry
from tests.cpu_budget import until
from tests.daemon.fake_daemon import (
    AT_ONCE,
    CLOCKS,
    NOW_MS,
    SPEC,
    FakeDaemon,
    FakeServer,
    FakeSource,
    label,
    plain_topics,
    poll,
    prediction,
    quiet,
)

pytestmark = pytest.mark.slow

WAITING, AT_A_TIME = 300, 10
JOIN = JoinSpec(horizon_ms=60_000, early_horizon_ms=60_000, assume="a")
LONG_AGO = NOW_MS - 86_400_000


class LeapingFakeDaemon:
    """Runs over one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.pipeline: Pipeline | None = None

    def life(self, *polls) -> FakeDaemon:
        telemetry = Telemetry(stream=io.StringIO())
        topics = plain_topics(id_keys("", digest=True))

        def open_state() -> State:
            store, monitors = RocksStore.open(RocksSpec(self.directory)), EstimatorSet(SPEC)
            self.pipeline = pipeline = Pipeline(JOIN, monitors, bytes_of_keys)
            checkpoint = Checkpoint(pipeline, monitors, SPEC, 1_000)
            saved = store.load()
            resumed = checkpoint.restore(saved)
            stands = decode_positions(saved.sections[POSITIONS]) if saved.commits else SourcePositions()
            progress = restored_progress(saved.sections.get(MERGE), topics)
            processor = BatchProcessor(checkpoint, store, topics, telemetry, CLOCKS, AT_ONCE, progress)
            return State(store, checkpoint, processor, stands, resumed, quiet(monitors))

        source, server = FakeSource(list(polls)), FakeServer()
        status = DaemonStatus(source, telemetry, clock=lambda: NOW_MS / 1_000)
        reading = ConsumeLoopSpec(open_state, CommitSpec(0.05, 2 * AT_A_TIME))
        daemon = Daemon(source, reading, server, status, telemetry, lambda: None)
        return FakeDaemon(source, server, status, None, daemon, io.StringIO())


def waiting():
    """Predictions of a day ago, ten a second, whose labels are yet to come."""
    return [prediction(i, record_ms=LONG_AGO + 100 * i) for i in range(WAITING)]


async def test_a_leap_is_committed_in_parts_and_a_stop_between_them_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_join, "ROOM", AT_A_TIME)
    monkeypatch.setattr(pipeline_module, "MOST_AT_ONCE", AT_A_TIME)
    fake_daemons = LeapingFakeDaemon(tmp_path / "state")
    first = fake_daemons.life(poll(*waiting()))
    running = asyncio.create_task(first.daemon.run())
    await until(first.source.drained.is_set)
    first.daemon.stop()
    await running
    assert fake_daemons.pipeline.join.counters.predictions_accepted == WAITING

    second = fake_daemons.life(poll(label(10**6), prediction(10**6)))
    running = asyncio.create_task(second.daemon.run())

    def half_way() -> bool:
        return fake_daemons.pipeline.join.counters.predictions_expired > WAITING // 3

    async with asyncio.timeout(60):
        while not half_way():  # noqa: ASYNC110  # what is waited for has no event
            await asyncio.sleep(0)
    second.daemon.stop()
    await running
    assert 0 < fake_daemons.pipeline.join.counters.predictions_expired < WAITING, (
        "the stop came between two parts"
    )

    third = fake_daemons.life(poll(label(10**6), prediction(10**6)))
    running = asyncio.create_task(third.daemon.run())
    await until(third.source.drained.is_set)
    third.daemon.stop()
    await running
    assert fake_daemons.pipeline.join.counters.predictions_expired == WAITING
    assert fake_daemons.pipeline.join.counters.predictions_resolved == 1
    assert fake_daemons.pipeline.identities() == []
