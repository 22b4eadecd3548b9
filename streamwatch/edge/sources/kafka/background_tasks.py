"""Background tasks of a source: listing topics and committing positions, so that neither delays a poll."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import NamedTuple

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.connection import BrokerHealth, Connection
from streamwatch.edge.sources.kafka.group import Group
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import CONNECTION_ERRORS, Listing, worded
from streamwatch.telemetry import InternalEvent, OffsetsNotCommitted


class Fresh(NamedTuple):
    """A listing, and the number of the latest change signal at its request."""

    listing: Listing
    change_signals: int


class BackgroundTasks:
    """Lists topics at intervals, to detect changes and silent brokers, and commits positions for lag tools.

    Parameters
    ----------
    spec
        Intervals and timeouts.
    health
        Is told of every answered listing.
    group
        Consumer group to which positions are committed.
    emit
        Receives internal events.
    monotonic
        Monotonic clock in seconds.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        health: BrokerHealth,
        group: Group,
        emit: Callable[[InternalEvent], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._spec = spec
        self._health = health
        self._group = group
        self._emit = emit
        self._monotonic = monotonic
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._due = {"list": 0.0, "commit": 0.0}
        self._fresh: Fresh | None = None
        self._durable: tuple[Mapping[Partition, int], str] | None = None

    def begin(self) -> None:
        """Reset for a new connection, which has just listed topics; drops a listing of the previous one."""
        if not self._idle("list"):
            self._tasks.pop("list").cancel()
        self._fresh = None
        self._due["list"] = self._monotonic() + self._spec.metadata_refresh_ms / 1_000

    def durable(self, positions: Mapping[Partition, int], text: str) -> None:
        """Set the positions to commit next, and their metadata text."""
        self._durable = positions, text

    def start_due(self, connection: Connection, *, suspect: bool) -> Fresh | None:
        """Start the tasks that are due; return the listing that arrived since the last call, or None.

        With `suspect`, after signals of a change, a listing is due at once.
        """
        now, spec = self._monotonic(), self._spec
        if now >= self._due["list"] or suspect:
            self._begin_listing(connection)
        if self._durable is not None and now >= self._due["commit"] and self._idle("commit"):
            self._due["commit"] = now + spec.commit_interval_ms / 1_000
            self._begin("commit", self._commit(connection))
        fresh, self._fresh = self._fresh, None
        return fresh

    def listen(self, connection: Connection) -> None:
        """List topics if brokers have been silent for half of `alive_ms`, to learn whether they answer.

        Brokers are also silent while all partitions are paused.
        """
        if self._health.silent_ms > self._spec.alive_ms / 2:
            self._begin_listing(connection)

    async def listed(self, timeout_seconds: float) -> None:
        """Wait for a listing under way, at most `timeout_seconds`."""
        if (task := self._tasks.get("list")) is not None:
            await asyncio.wait({task}, timeout=timeout_seconds)

    async def finish(self, connection: Connection | None, timeout_seconds: float) -> None:
        """Cancel all tasks, then commit positions that are not yet committed, if brokers answer.

        Takes at most `timeout_seconds`, of which half is kept for the commit.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:  # a commit that is cancelled leaves its positions to the last one
            await asyncio.wait(self._tasks.values(), timeout=timeout_seconds / 2)
        if connection is not None and self._durable is not None and self._health.alive:
            self._begin("commit", self._commit(connection))
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=deadline - loop.time())
        for task in self._tasks.values():
            task.cancel()

    async def _list(self, connection: Connection) -> None:
        change_signals = connection.change_signals.latest
        try:
            listing = await connection.listing()
        except CONNECTION_ERRORS:
            # A failed listing only delays the next one.
            await asyncio.sleep(self._spec.alive_ms / 4_000)
            return
        self._fresh = Fresh(listing, change_signals)
        self._health.answered()

    async def _commit(self, connection: Connection) -> None:
        durable, self._durable = self._durable, None
        if durable is None:
            return
        try:
            await self._group.commit(connection, *durable)
        except asyncio.CancelledError:
            self._durable = self._durable or durable
            raise
        except CONNECTION_ERRORS as error:
            self._durable = self._durable or durable
            self._emit(OffsetsNotCommitted(worded(error)))

    def _begin_listing(self, connection: Connection) -> None:
        if self._idle("list"):
            self._due["list"] = self._monotonic() + self._spec.metadata_refresh_ms / 1_000
            self._begin("list", self._list(connection))

    def _idle(self, name: str) -> bool:
        task = self._tasks.get(name)
        if task is None or not task.done():
            return task is None
        if not task.cancelled():
            task.result()  # raises the exception of a bug, which ends the process
        return True

    def _begin(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._tasks[name] = asyncio.create_task(work)
