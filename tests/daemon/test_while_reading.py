"""What a backlog must not pay for: a report with every commit, a look at all that a start left behind."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace

import pytest

from streamwatch.daemon import commits
from streamwatch.daemon.commits import CommitSpec
from tests.cpu_budget import until
from tests.daemon.fake_daemon import (
    fake_daemon,
    run_through,
)
from tests.daemon.test_durability import Disk, durable_fake_daemon, pairs


async def test_while_a_backlog_is_read_reports_do_not_come_with_every_commit() -> None:
    disk = Disk()
    backlog = [pairs(20 * k, 20) for k in range(40)]
    h = durable_fake_daemon(disk, *backlog, commits=CommitSpec(interval_seconds=3_600.0, events=20))
    loop = h.daemon._consume_loop
    loop._spec = replace(loop._spec, monotonic=lambda: 0.0)  # as if reports took no time
    await run_through(h)
    assert disk.model_store.commits >= 20
    assert len(h.server.reports) <= 4
    assert h.reported("outcomes_total") == 800


async def test_a_stop_commits_without_a_report_where_reports_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[tuple[int, int]] = []
    for seconds in (3_600.0, -1.0):
        monkeypatch.setattr(commits, "LAST_REPORT_SECONDS", seconds)
        disk = Disk()
        h = durable_fake_daemon(
            disk, pairs(0, 20), commits=CommitSpec(interval_seconds=3_600.0, events=1_000)
        )
        await run_through(h)
        assert disk.model_store.commits
        found.append((disk.model_store.commits, len(h.server.reports)))
    (commits_with, reports_with), (commits_without, reports_without) = found
    assert commits_without == commits_with
    assert reports_without == reports_with - 1


async def test_what_a_start_leaves_is_not_looked_at_again_by_the_garbage_collector() -> None:
    gc.unfreeze()  # whatever ran in this process before
    h = fake_daemon(pairs(0, 10))
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: gc.get_freeze_count() > 0)
    h.daemon.stop()
    await running
    assert gc.get_freeze_count() == 0
