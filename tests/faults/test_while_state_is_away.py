"""Between a failure of the disk and the next opening of state, the daemon can still be asked how it is."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from streamwatch.edge.stores.kind import StateFailed
from streamwatch.edge.stores.rocksdb import RocksSpec, RocksStore
from tests.cpu_budget import until
from tests.daemon.test_durability import Disk, DiskStore, durable_fake_daemon, pairs


class StoreOnFailingDisk(DiskStore):
    """Tells of itself what RocksDB would, and closes it."""

    directory: Path

    def __init__(self, disk: Disk):
        super().__init__(disk)
        self._rocks = RocksStore.open(RocksSpec(self.directory))

    def families(self):
        return self._rocks.families()

    def close(self) -> None:
        self._rocks.close()


async def test_metrics_are_answered_while_state_is_closed(tmp_path: Path, monkeypatch) -> None:
    StoreOnFailingDisk.directory = tmp_path / "state"
    monkeypatch.setattr("tests.daemon.test_durability.DiskStore", StoreOnFailingDisk)
    disk = Disk()
    disk.commits_that_fail = 1
    h = durable_fake_daemon(disk, pairs(0, 10))
    running = asyncio.create_task(h.daemon.run())
    try:
        await until(lambda: disk.opened == 1)
        disk.refusal = StateFailed("input/output error")
        await until(lambda: h.events().count("state_lost") >= 2)
        assert h.live("state_durable") == 0.0
    finally:
        h.daemon.stop()
        with contextlib.suppress(StateFailed):
            await running
    assert "state_bytes" not in {family.name for family in h.status.families()}
