"""All partitions of the configured topics, read by one process that keeps its own positions.

Past 250 lines, because connecting, polling and leaving share one state.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from aiokafka.errors import OffsetOutOfRangeError, UnsupportedCodecError

from streamwatch.core.events import Partition
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.edge.sources.kafka.backoff import Backoff
from streamwatch.edge.sources.kafka.connection import (
    CONNECTION_ERRORS,
    Complaints,
    Connection,
    TopicsMissing,
    require_topics,
    worded,
)
from streamwatch.edge.sources.kafka.liveness import Liveness
from streamwatch.edge.sources.kafka.loss import Losses, ReadingEnded
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.upkeep import Upkeep
from streamwatch.telemetry import Happening, PartitionsAdded, TopicsAssigned

LOOK_SECONDS = 0.1
"""How old what a poll tells of a partition that did not deliver may be, while others deliver."""


class KafkaSource:
    """Implements `core.ports.Source`.

    Positions live here, not in the client: a poll that fails moves none, and whatever replaces the connection
    goes on from them.

    Parameters
    ----------
    spec
        Where the brokers are and how long to wait for what.
    topics
        Topics whose every partition is read.
    emit
        Where happenings go.
    monotonic, wall, jitter
        Seconds that never go back, seconds since the epoch (for `start_from: -2h` alone), numbers in [0, 1).
    """

    def __init__(
        self,
        spec: KafkaSpec,
        topics: Sequence[str],
        emit: Callable[[Happening], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._spec = spec
        self._topics = tuple(dict.fromkeys(topics))
        self._emit = emit
        self._monotonic = monotonic
        self._wall = wall
        self._backoff = Backoff(spec.backoff_initial_ms / 1_000, spec.backoff_max_ms / 1_000, jitter)
        self._life = Liveness(spec.alive_ms, emit, monotonic)
        self._losses = Losses(spec.on_loss, emit)
        self._upkeep = Upkeep(spec, self._life, emit, monotonic)
        self._complaints = Complaints()
        self._connection: Connection | None = None
        self._positions: dict[Partition, int] = {}
        self._held: frozenset[Partition] = frozenset()
        self._connecting: asyncio.Task[None] | None = None
        self._latest: dict[Partition, PartitionState] = {}
        self._look_at_all = 0.0

    @property
    def up(self) -> bool:
        """A broker answered something within the last `alive_ms`: a fetch, be it empty, or a listing."""
        if self._connection is None:
            return False
        self._life.look(self._connection, self._positions)
        return self._life.alive

    @property
    def assigned(self) -> bool:
        """Every partition has a position on an open connection."""
        return self._connection is not None and bool(self._positions)

    @property
    def losses(self) -> Mapping[str, int]:
        """Times the log was found changed under the reader, by cause."""
        return self._losses.times

    @property
    def records_lost(self) -> Mapping[str, int]:
        """Offsets skipped thereby, by cause, where the number is known."""
        return self._losses.records

    async def start(self, positions: Mapping[Partition, int]) -> None:
        """Verify topics, assign every partition and seek; positions given win over `start_from`.

        Waits for brokers that are away.

        Raises
        ------
        TopicsMissing
            A configured topic does not exist; the nearest existing names are told.
        ReadingEnded
            A partition with a position is gone, and `on_loss` is `fail`.
        """
        self._complaints.attach()
        self._positions = {p: position for p, position in positions.items() if p.topic in self._topics}
        missed = False
        while True:
            try:
                return await self._connect()
            except CONNECTION_ERRORS as error:
                delay = self._failed(error)
            except TopicsMissing:
                if missed:
                    raise
                missed, delay = True, self._spec.topic_grace_ms / 1_000
            await asyncio.sleep(delay)

    async def poll(self) -> Poll:
        """Deliver the next records; returns without any after `poll_timeout_ms`, or while brokers are away.

        Raises
        ------
        ReadingEnded
            The log no longer holds what was to be read next and `on_loss` is `fail`, or records are
            compressed in a way that needs a package which is not installed.
        """
        connection = self._connection
        if connection is None:
            await self._reconnected_soon()
            return Poll({}, self._states(self._positions))
        try:
            self._tend(connection)
            wanted = [p for p in self._positions if p not in self._held] if self._held else None
            found = await connection.records(wanted, self._spec.poll_timeout_ms)
            looked_at = self._worth_a_look([Partition(*tp) for tp in found])
            self._positions = self._positions | {p: await connection.position(p) for p in looked_at}
        except OffsetOutOfRangeError as error:
            await self._go_on_nearby(connection, error)
            return Poll({}, self._states(self._positions))
        except UnsupportedCodecError as error:
            raise ReadingEnded(f"{error}: install it with pip install 'streamwatch[compression]'") from error
        except (*CONNECTION_ERRORS, TopicsMissing) as error:
            self._drop(connection, error)
            return Poll({}, self._states(self._positions))
        self._life.look(connection, looked_at)
        states = self._states(looked_at)
        self._latest = states if len(states) == len(self._positions) else self._latest | states
        return Poll({Partition(*tp): batch for tp, batch in found.items()}, self._latest)

    def pause(self, partitions: frozenset[Partition]) -> None:
        """Hold exactly these back. What the client has already fetched of them is kept, not fetched again."""
        self._held = partitions

    async def stop(self) -> None:
        """Leave within about `stop_timeout_ms`, whatever state the brokers are in."""
        budget = self._spec.stop_timeout_ms / 1_000
        connection, self._connection = self._connection, None
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait({self._connecting}, timeout=budget / 2)
        await self._upkeep.finish(connection, self._positions, budget / 4)
        if connection is not None:
            await connection.close(budget / 2)
        self._complaints.detach()

    async def _connect(self) -> None:
        """Open a connection, find the partitions, and read them from where reading stands."""
        connection = Connection(self._spec)
        try:
            await connection.open()
            listing = await connection.listing()
            require_topics(self._topics, listing, self._spec.bootstrap_servers)
            begun = {p.topic for p in self._positions}
            new = [Partition(t, n) for t in self._topics if t not in begun for n in listing[t]]
            now_ms = round(self._wall() * 1_000)
            self._positions |= await connection.resolve(new, self._spec.start_from, now_ms)
            self._match(listing)
            connection.assign(self._positions)
        except BaseException:
            await connection.close(self._spec.stop_timeout_ms / 4_000)
            raise
        self._connection = connection
        self._backoff.reset()
        self._life.begin()
        self._upkeep.begin()
        self._emit(TopicsAssigned(self._topics, len(self._positions)))

    def _match(self, listing: Mapping[str, Sequence[int]]) -> bool:
        """Take up partitions that topics got since, from their beginning; give up those that are gone."""
        self._look_at_all = 0.0
        there = {Partition(t, n) for t in self._topics for n in listing[t]}
        for partition in sorted(self._positions.keys() - there):
            self._losses.vanished(partition, self._positions[partition])
            del self._positions[partition]
        added = sorted(there - self._positions.keys())
        for topic, count in Counter(p.topic for p in added).items():
            self._emit(PartitionsAdded(topic, count))
        self._positions |= dict.fromkeys(added, 0)
        return bool(added)

    def _drop(self, connection: Connection, error: BaseException) -> None:
        """Give a connection up; the next polls wait for another."""
        self._connection = None
        self._connecting = asyncio.create_task(self._replace(connection, self._failed(error)))

    async def _replace(self, connection: Connection, delay_seconds: float) -> None:
        await connection.close(self._spec.stop_timeout_ms / 2_000)
        while True:
            await asyncio.sleep(delay_seconds)
            try:
                return await self._connect()
            except (*CONNECTION_ERRORS, TopicsMissing) as error:
                delay_seconds = self._failed(error)

    async def _reconnected_soon(self) -> None:
        """Wait a poll's time for the attempts to connect, which go on in between."""
        if self._connecting is None:
            raise RuntimeError("poll() before start()")
        await asyncio.wait({self._connecting}, timeout=self._spec.poll_timeout_ms / 1_000)
        if self._connecting.done():
            self._connecting.result()

    def _tend(self, connection: Connection) -> None:
        """Between two polls: notice silence and changed partitions."""
        silent_seconds = self._life.silent_ms / 1_000
        if silent_seconds * 1_000 > self._spec.stall_ms:
            raise TimeoutError(f"no answer for {silent_seconds:.0f} s")
        if not self._life.alive and not self._life.lost:
            self._life.failed(f"no answer for {silent_seconds:.0f} s{self._complaint()}")
        listing = self._upkeep.tend(connection, self._positions)
        if listing:
            require_topics(self._topics, listing, self._spec.bootstrap_servers)
            if self._match(listing):
                connection.assign(self._positions)

    async def _go_on_nearby(self, connection: Connection, error: OffsetOutOfRangeError) -> None:
        """The log does not hold the next offset: go on at the nearest that it holds."""
        for tp, wanted in error.args[0].items():
            partition = Partition(*tp)
            try:
                first, end = await connection.ends(partition)
            except CONNECTION_ERRORS as failure:
                self._drop(connection, failure)
                return
            self._positions[partition] = self._losses.resumed(partition, wanted, first, end)
            connection.seek(partition, self._positions[partition])

    def _worth_a_look(self, delivered: Collection[Partition]) -> Collection[Partition]:
        """Partitions of which a poll may bring news: those that delivered, and now and then all of them."""
        now = self._monotonic()
        if delivered and now < self._look_at_all:
            return delivered
        self._look_at_all = now + LOOK_SECONDS
        return list(self._positions)

    def _states(self, partitions: Iterable[Partition]) -> dict[Partition, PartitionState]:
        connection, grace_ms = self._connection, self._spec.watermark_grace_ms
        states: dict[Partition, PartitionState] = {}
        for partition in partitions:
            position = self._positions[partition]
            highwater = -1 if connection is None else connection.last_fetch(partition)[0]
            caught_up = highwater == position and self._life.fetched_within(partition, grace_ms)
            # A leader that has just restarted may answer with a high watermark it has yet to recover.
            shown = max(highwater, position) if highwater >= 0 else -1
            states[partition] = PartitionState(position, shown, caught_up)
        return states

    def _failed(self, error: BaseException) -> float:
        """Tell that brokers are away; the seconds until the next attempt."""
        delay = self._backoff.next_seconds()
        self._life.failed(worded(error) + self._complaint(), delay)
        return delay

    def _complaint(self) -> str:
        complaint, self._complaints.last = self._complaints.last, ""
        return f" ({complaint})" if complaint else ""
