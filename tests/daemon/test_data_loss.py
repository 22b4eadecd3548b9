"""What is found of the logs is part of the state: counted once, over all runs, shown when it is durable."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from streamwatch.core.records.events import Fingerprint, Mark, Partition
from streamwatch.daemon import POSITIONS, decode_positions
from streamwatch.daemon.source_positions import DataLossTotals, SourcePositions
from streamwatch.edge.stores.kind import StateFailed
from tests.cpu_budget import until
from tests.daemon.fake_daemon import (
    FakeDaemon,
    FakeSource,
    L,
    P,
)
from tests.daemon.test_durability import Disk, durable_fake_daemon, pairs, running_until

COUNTERS = (
    "kafka_data_loss_total",
    "kafka_records_lost_total",
    "kafka_position_unverified_total",
    "commits_total",
)


@dataclass
class ShortenedLog(FakeSource):
    """Retention has taken the beginning of the log of predictions; a start or rewind finds that out."""

    begins: int = 0

    async def start(self, positions: Mapping[Partition, int], fingerprints: object) -> None:
        await super().start(positions, fingerprints)
        self._look(positions)

    async def rewind(self, positions: Mapping[Partition, int], fingerprints: object) -> None:
        await super().rewind(positions, fingerprints)
        self._look(positions)

    def _look(self, positions: Mapping[Partition, int]) -> None:
        self.ends = dict(positions)
        lost = self.begins - positions.get(P, 0)
        if lost > 0:
            self.losses = Counter(self.losses) + Counter(retention=1)
            self.records_lost = Counter(self.records_lost) + Counter(retention=lost)
            self.position_unverified += 1
            self.ends[P] = self.begins


def shown(h: FakeDaemon) -> dict[str, dict[tuple[str, ...], float]]:
    return {name: samples for name, samples in scraped(h).items() if samples}


def scraped(h: FakeDaemon) -> dict[str, dict[tuple[str, ...], float]]:
    return {f.name: dict(f.samples) for f in h.status.families() if f.name in COUNTERS}


def on_the_disk(disk: Disk) -> DataLossTotals:
    return decode_positions(disk.model_store.sections[POSITIONS]).counts


async def lost_ten_in_each_life(disk: Disk, *begins: int) -> None:
    """Runs that each find that retention was ahead of them."""
    for begin in begins:
        h = durable_fake_daemon(disk, source=ShortenedLog([], begins=begin))
        await running_until(h, lambda h=h: bool(h.server.reports))


@pytest.mark.slow
@pytest.mark.parametrize("failing", ["commits_that_fail", "flushes_that_fail"])
async def test_a_loss_found_before_a_write_that_fails_is_counted_once(failing: str) -> None:
    disk = Disk()
    await running_until(durable_fake_daemon(disk, pairs(0, 10)), lambda: disk.model_store.commits > 0)
    setattr(disk, failing, 1)
    h = durable_fake_daemon(disk, source=ShortenedLog([], begins=40))
    await running_until(h, lambda: bool(h.server.reports))
    assert h.events().count("state_lost") == 1
    once = DataLossTotals({"retention": 1}, {"retention": 30}, 1)
    assert on_the_disk(disk) == once
    assert h.status.data_loss == once


async def test_a_second_life_goes_on_from_the_counts_of_the_first_and_shows_them_from_its_opening() -> None:
    disk = Disk()
    await lost_ten_in_each_life(disk, 10, 20)
    kept = DataLossTotals({"retention": 2}, {"retention": 20}, 2)
    assert on_the_disk(disk) == kept
    commits = disk.model_store.commits
    h = durable_fake_daemon(disk, source=ShortenedLog([], begins=20))
    h.source.hang = asyncio.Event()
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: h.source.started_with is not None)
    assert h.status.data_loss == kept, "state is open, and Kafka has yet to answer"
    disk.may_flush.clear()
    h.source.hang.set()
    await until(lambda: h.status.stage is None)
    assert shown(h) == {
        "kafka_data_loss_total": {("retention",): 2.0},
        "kafka_records_lost_total": {("retention",): 20.0},
        "kafka_position_unverified_total": {(): 2.0},
        "commits_total": {(): commits},
    }
    disk.may_flush.set()
    await until(lambda: h.live("commits_total") == commits + 1)
    h.daemon.stop()
    await running


async def test_nothing_that_was_found_is_shown_before_it_is_durable() -> None:
    disk = Disk()
    await lost_ten_in_each_life(disk, 10)
    before = disk.model_store.commits
    disk.may_flush.clear()
    h = durable_fake_daemon(disk, source=ShortenedLog([], begins=20))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: disk.model_store.commits > before)
    assert h.source.losses == {"retention": 2}
    assert on_the_disk(disk).losses == {"retention": 2}, "it was written and is yet to be flushed"
    assert shown(h) == {
        "kafka_data_loss_total": {("retention",): 1.0},
        "kafka_records_lost_total": {("retention",): 10.0},
        "kafka_position_unverified_total": {(): 1.0},
        "commits_total": {(): before},
    }
    disk.may_flush.set()
    await until(lambda: h.live("kafka_position_unverified_total") == 2.0)
    assert shown(h)["kafka_data_loss_total"] == {("retention",): 2.0}
    assert shown(h)["kafka_records_lost_total"] == {("retention",): 20.0}
    h.daemon.stop()
    await running
    assert h.status.data_loss == on_the_disk(disk)


async def test_before_state_is_open_nothing_is_shown_that_would_seem_to_have_gone_back() -> None:
    disk = Disk()
    await lost_ten_in_each_life(disk, 10)
    disk.refusal = StateFailed("input/output error")
    h = durable_fake_daemon(disk)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: "state_lost" in h.events())
    assert shown(h) == {}
    assert set(scraped(h)) == set(COUNTERS) - {"commits_total"}
    disk.refusal = None
    await until(lambda: shown(h).get("kafka_position_unverified_total") == {(): 1.0})
    h.daemon.stop()
    await running


async def test_a_loss_that_moves_no_position_is_committed_and_shown() -> None:
    disk = Disk()
    h = durable_fake_daemon(disk, pairs(0, 10))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: h.source.durable_positions == {P: 10, L: 10})
    h.source.losses = {"recreated": 1}
    await until(lambda: shown(h).get("kafka_data_loss_total") == {("recreated",): 1.0})
    assert on_the_disk(disk) == DataLossTotals({"recreated": 1})
    h.daemon.stop()
    await running


def test_counts_survive_their_commit_and_the_end_of_their_topic() -> None:
    counts = DataLossTotals({"retention": 2, "recreated": 1}, {"retention": 40}, 3)
    stands = SourcePositions({P: 3, L: 9}, {P: Fingerprint("id", (Mark(2, 7),))}, counts)
    assert decode_positions(stands.encode()) == stands
    assert stands.only({"labels"}) == SourcePositions({L: 9}, {}, counts)
