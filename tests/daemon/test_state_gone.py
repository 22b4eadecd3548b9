"""The state's directory is removed while the daemon runs: not durable, counted, as `on_data_loss` says."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from streamwatch.edge.stores.kind import StateGone, StateRefused
from tests.core.model_store import ModelStore
from tests.cpu_budget import until
from tests.daemon.fake_daemon import FakeDaemon
from tests.daemon.test_durability import Disk, durable_fake_daemon, pairs, running_until


class Removable(Disk):
    """A disk whose contents can be taken away."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = False
        self.absent = False

    def look(self) -> bool:
        if self.gone:
            self.gone = False
            self.model_store = ModelStore()
            raise StateGone("the state in state was removed")
        return False


def removable(disk: Removable, *polls: object, fail: bool = False) -> FakeDaemon:
    h = durable_fake_daemon(disk, *polls)
    reading = h.daemon._consume_loop
    setting = "kafka.on_data_loss" if fail else None
    reading._spec = replace(reading._spec, disk_is_low=disk.look, fail_on_lost_state=setting)
    return h


async def test_a_removed_state_is_counted_and_reading_begins_anew_where_that_is_asked_for() -> None:
    disk = Removable()
    h = removable(disk, pairs(0, 10))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: bool(h.server.reports) and h.source.drained.is_set())
    assert h.live("state_durable") == 1
    disk.may_flush.clear()
    disk.gone = True
    await until(lambda: disk.opened == 2)
    await until(lambda: h.source.losses.get("state_gone") == 1)
    disk.may_flush.set()
    await until(lambda: h.status.durable and h.status.data_loss is not None)
    await until(lambda: h.status.data_loss.losses.get("state_gone") == 1)
    assert "state_lost" in h.events()
    h.daemon.stop()
    await running
    again = removable(disk)
    await running_until(again, lambda: again.status.data_loss is not None)
    assert again.status.data_loss.losses == {"state_gone": 1}


async def test_state_is_not_called_durable_while_it_is_gone() -> None:
    disk = Removable()
    h = removable(disk, pairs(0, 10))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: bool(h.server.reports) and h.source.drained.is_set())
    seen: list[float] = []
    lose = h.daemon._consume_loop._leave

    async def leaving(seconds: float | None) -> None:
        seen.append(h.live("state_durable"))
        await lose(seconds)

    h.daemon._consume_loop._leave = leaving  # type: ignore[method-assign]
    disk.gone = True
    await until(lambda: bool(seen))
    assert seen == [0.0]
    h.daemon.stop()
    await running


async def test_a_removed_state_ends_the_daemon_where_that_is_asked_for() -> None:
    disk = Removable()
    h = removable(disk, pairs(0, 10), fail=True)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: bool(h.server.reports) and h.source.drained.is_set())
    disk.gone = True
    with pytest.raises(StateRefused, match=r"was removed; kafka\.on_data_loss is fail"):
        await running
    assert disk.opened == 1
