"""Tasks beside reading: listing topics and committing positions, so that neither delays a poll."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import NamedTuple

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.connection import BrokerHealth, Connection
from streamwatch.edge.sources.kafka.group import Group
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import CONNECTION_ERRORS, Listing, worded
from streamwatch.telemetry import InternalEvent, OffsetsNotCommitted


class Fresh(NamedTuple):
    """A listing, and the number of the last change signal when it was asked for."""

    listing: Listing
    change_signals: int


class BackgroundTasks:
    """Lists topics at intervals, to find changes and to see that brokers answer, and commits positions.

    Positions are committed for tools that show lag.

    Parameters
    ----------
    spec
        Intervals and timeouts.
    health
        Notes every listing that was answered.
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
        """Begin with a new connection, which has just listed the topics; drop a listing of the one before."""
        if not self._idle("list"):
            self._tasks.pop("list").cancel()
        self._fresh = None
        self._due["list"] = self._monotonic() + self._spec.metadata_refresh_ms / 1_000

    def durable(self, positions: Mapping[Partition, int], text: str) -> None:
        """Set the positions to commit next, with the text of their metadata."""
        self._durable = positions, text

    def tend(self, connection: Connection, *, suspect: bool) -> Fresh | None:
        """Start what is due, and return the listing that has arrived since the last call; None without one.

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
        """List topics if brokers have been silent for long: brokers that are away do not answer.

        They are silent, too, while all partitions are paused.
        """
        if self._health.silent_ms > self._spec.alive_ms / 2:
            self._begin_listing(connection)

    async def listed(self, timeout_seconds: float) -> None:
        """Wait for the listing under way."""
        if (task := self._tasks.get("list")) is not None:
            await asyncio.wait({task}, timeout=timeout_seconds)

    async def finish(self, connection: Connection | None, timeout_seconds: float) -> None:
        """End all tasks; commit once more if there is something to commit and brokers answer."""
        for task in self._tasks.values():
            task.cancel()
        if connection is not None and self._durable is not None and self._health.alive:
            self._begin("commit", self._commit(connection))
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=timeout_seconds)
        for task in self._tasks.values():
            task.cancel()

    async def _list(self, connection: Connection) -> None:
        change_signals = connection.change_signals.latest
        try:
            listing = await connection.listing()
        except CONNECTION_ERRORS:
            # A failure has no other consequence: the next attempt waits a little.
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
            task.result()  # a bug ends the process, here as anywhere
        return True

    def _begin(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._tasks[name] = asyncio.create_task(work)
