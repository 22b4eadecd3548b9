"""What is done beside reading, in tasks of its own so that it never delays a poll."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.connection import CONNECTION_ERRORS, Connection, worded
from streamwatch.edge.sources.kafka.liveness import Liveness
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.telemetry import Happening, OffsetsNotCommitted


class Upkeep:
    """Lists topics now and then, for partitions added and as a sign of life; commits positions for lag tools.

    Parameters
    ----------
    spec
        How often, and how long to wait.
    life
        Told of every listing that was answered.
    emit
        Where happenings go.
    monotonic
        Seconds that never go back.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        life: Liveness,
        emit: Callable[[Happening], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._spec = spec
        self._life = life
        self._emit = emit
        self._monotonic = monotonic
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._due = {"list": 0.0, "commit": 0.0}
        self._listing: Mapping[str, Sequence[int]] = {}

    def begin(self) -> None:
        """A new connection was opened and has just listed the topics."""
        self._listing = {}
        self._due["list"] = self._monotonic() + self._spec.metadata_refresh_ms / 1_000

    def tend(self, connection: Connection, positions: Mapping[Partition, int]) -> Mapping[str, Sequence[int]]:
        """Start what is due; the partitions by topic if a listing has come in, else nothing."""
        now, spec = self._monotonic(), self._spec
        quiet = self._life.silent_ms > spec.alive_ms / 2  # all partitions held, or brokers away: ask which
        if (now >= self._due["list"] or quiet) and self._idle("list"):
            self._due["list"] = now + spec.metadata_refresh_ms / 1_000
            self._begin("list", self._list(connection))
        if spec.group_id is not None and now >= self._due["commit"] and self._idle("commit"):
            self._due["commit"] = now + spec.commit_interval_ms / 1_000
            self._begin("commit", self._commit(connection, positions))
        listing, self._listing = self._listing, {}
        return listing

    async def finish(
        self, connection: Connection | None, positions: Mapping[Partition, int], timeout_seconds: float
    ) -> None:
        """End all tasks; commit once more if brokers answer."""
        for task in self._tasks.values():
            task.cancel()
        if connection is not None and self._spec.group_id is not None and self._life.alive:
            self._begin("commit", self._commit(connection, positions))
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=timeout_seconds)
        for task in self._tasks.values():
            task.cancel()

    async def _list(self, connection: Connection) -> None:
        try:
            listing = await connection.listing()
        except CONNECTION_ERRORS:
            # No sign of life, which is all it says. The next attempt is not at once.
            await asyncio.sleep(self._spec.alive_ms / 4_000)
            return
        self._listing = listing
        self._life.answered()

    async def _commit(self, connection: Connection, positions: Mapping[Partition, int]) -> None:
        try:
            await connection.commit(positions)
        except CONNECTION_ERRORS as error:
            self._emit(OffsetsNotCommitted(worded(error)))

    def _idle(self, name: str) -> bool:
        task = self._tasks.get(name)
        if task is None or not task.done():
            return task is None
        if not task.cancelled():
            task.result()  # a bug ends the process, here as anywhere
        return True

    def _begin(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._tasks[name] = asyncio.create_task(work)
