"""A file system that the kernel turns read-only under the daemon: it says so, waits, and loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamwatch.demo.embedded import EmbeddedBroker
from tests.faults.disk.volume import volume
from tests.faults.disk.watching import Pairs, watching


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    with EmbeddedBroker() as broker:
        yield Pairs(broker)


@pytest.mark.real("loop mount")
async def test_a_file_system_that_turns_read_only_costs_nothing_but_time(
    tmp_path: Path, pairs: Pairs
) -> None:
    with volume(tmp_path, "errors=remount-ro") as disk:
        settings = [*pairs.settings, "state.commit_interval=50ms", "state.min_free_megabytes=1"]
        async with watching(tmp_path, disk.path / "state", settings) as daemon:
            async with pairs.flowing():
                await daemon.until(lambda: daemon.shown("outcomes_total") > 0)
                disk.turn_read_only()
                await daemon.until(lambda: len(daemon.happened("state_lost")) >= 2)
                assert "Read-only file system" in daemon.happened("state_lost")[-1]["error"]
                assert await daemon.status("/healthz") == 200
                assert await daemon.status("/readyz") == 503
                await daemon.until(lambda: daemon.shown("state_durable") == 0)
                opened = len(daemon.happened("state_opened"))
                disk.repair()
                await daemon.until(lambda: len(daemon.happened("state_opened")) > opened)
            await daemon.until_counted(pairs.written)
            assert await daemon.status("/readyz") == 200
