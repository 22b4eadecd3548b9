"""A disk that fills up: reading pauses in time, and where that comes too late, nothing is lost either."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.edge.stores.rocksdb.opening import FreeSpace
from tests.faults.disk.volume import SmallDisk, small_disk
from tests.faults.disk.watching import Pairs, watching

DISK_MEBIBYTES = 160
SPARED_MEGABYTES = 40

pytestmark = pytest.mark.timeout(1_800)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path, DISK_MEBIBYTES) as disk:
        yield disk


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    with EmbeddedBroker() as broker:
        yield Pairs(broker)


@pytest.mark.real("loop mount")
async def test_reading_pauses_while_little_is_free_and_goes_on_when_there_is_room(
    tmp_path: Path, disk: SmallDisk, pairs: Pairs
) -> None:
    settings = [*pairs.settings, f"state.min_free_megabytes={SPARED_MEGABYTES}"]
    async with watching(tmp_path, disk.path / "state", settings) as daemon:
        async with pairs.flowing():
            await daemon.until(lambda: daemon.shown("outcomes_total") > 0)
            disk.fill(leaving_bytes=SPARED_MEGABYTES * 500_000)
            await daemon.until(lambda: daemon.shown("state_disk_low") == 1)
            paused_at = pairs.written
            await daemon.until(lambda: pairs.written > paused_at + 800)
            read = daemon.shown("predictions_accepted_total")
            assert read <= paused_at
            assert disk.free_bytes > 0
            assert await daemon.status("/healthz") == 200
            disk.relieve()
            await daemon.until(lambda: daemon.shown("state_disk_low") == 0)
        await daemon.until_counted(pairs.written)
        assert len(daemon.happened("disk_low")) == len(daemon.happened("disk_freed")) == 1
        assert daemon.happened("state_lost") == []


@pytest.mark.real("loop mount")
async def test_a_disk_that_is_suddenly_full_costs_nothing_but_time(
    tmp_path: Path, disk: SmallDisk, pairs: Pairs
) -> None:
    settings = [*pairs.settings, "state.min_free_megabytes=1", "state.commit_interval=50ms"]
    async with watching(tmp_path, disk.path / "state", settings) as daemon:
        async with pairs.flowing():
            await daemon.until(lambda: daemon.shown("outcomes_total") > 0)
            disk.fill()
            await daemon.until(lambda: len(daemon.happened("state_lost")) >= 2)
            assert "No space left on device" in daemon.happened("state_lost")[0]["error"]
            assert await daemon.status("/healthz") == 200
            assert await daemon.status("/readyz") == 503
            before = daemon.happened("state_opened")
            disk.relieve()
            await daemon.until(lambda: len(daemon.happened("state_opened")) > len(before))
        await daemon.until_counted(pairs.written)
        assert await daemon.status("/readyz") == 200


def test_a_disk_that_cannot_be_asked_is_not_taken_for_full(tmp_path: Path) -> None:
    def asked(_: Path) -> int:
        raise OSError(errno.EIO, "Input/output error")

    assert not FreeSpace(tmp_path, 10**18, free_bytes=asked).is_low()
    assert FreeSpace(tmp_path, 10**18).is_low()
