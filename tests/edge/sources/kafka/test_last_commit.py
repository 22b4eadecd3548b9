"""The last commit of positions, of which a stop may find one under way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.background_tasks import BackgroundTasks
from streamwatch.edge.sources.kafka.spec import KafkaSpec

P = Partition("events", 0)


class SlowGroup:
    """A group whose first commit is never answered."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.committed: list[Mapping[Partition, int]] = []

    async def commit(self, connection: object, positions: Mapping[Partition, int], text: str) -> None:
        del connection, text
        if not self.asked.is_set():
            self.asked.set()
            await asyncio.Event().wait()
        self.committed.append(positions)


class AliveBrokers:
    """Brokers that answer."""

    alive = True
    silent_ms = 0.0

    def answered(self) -> None:
        """Note nothing."""


class NoTopics:
    """A connection that lists nothing."""

    change_signals = SimpleNamespace(latest=0)

    async def listing(self) -> None:
        await asyncio.Event().wait()


async def finished(*later: int) -> list[Mapping[Partition, int]]:
    """What is committed at a stop that finds a commit of position 7 under way, before others were durable."""
    group, now = SlowGroup(), 0.0
    tasks = BackgroundTasks(
        KafkaSpec(group_id="g"),
        cast("Any", AliveBrokers()),
        cast("Any", group),
        lambda _: None,
        lambda: now,
    )
    connection = cast("Any", NoTopics())
    tasks.durable({P: 7}, "state")
    tasks.start_due(connection, suspect=False)
    await group.asked.wait()
    for position in later:
        tasks.durable({P: position}, "state")
    async with asyncio.timeout(20.0):
        await tasks.finish(connection, 10.0)
    return group.committed


async def test_positions_whose_commit_was_under_way_are_committed_at_the_stop() -> None:
    assert await finished() == [{P: 7}]


class DeafConnection:
    """A connection that lists nothing, and goes on for a while after it was cancelled."""

    change_signals = SimpleNamespace(latest=0)

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def listing(self) -> None:
        while not self.ended.is_set():
            with suppress(asyncio.CancelledError):
                await self.ended.wait()


class SilentGroup:
    """A group whose commits are never answered."""

    async def commit(self, *_: object) -> None:
        await asyncio.Event().wait()


async def test_a_stop_takes_no_more_than_its_time_where_neither_a_listing_nor_the_commit_ends() -> None:
    tasks = BackgroundTasks(
        KafkaSpec(group_id="g"),
        cast("Any", AliveBrokers()),
        cast("Any", SilentGroup()),
        lambda _: None,
        lambda: 0.0,
    )
    connection = DeafConnection()
    tasks.start_due(cast("Any", connection), suspect=True)
    tasks.durable({P: 7}, "state")
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await tasks.finish(cast("Any", connection), 0.4)
    taken = loop.time() - begun
    connection.ended.set()
    assert 0.35 < taken < 0.6


async def test_newer_positions_are_committed_instead() -> None:
    assert await finished(8, 9) == [{P: 9}]
