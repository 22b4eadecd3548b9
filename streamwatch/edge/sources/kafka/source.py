"""All partitions of the configured topics, read by one process that keeps its own positions.

A little past 250 lines: everything the daemon may ask of a source, each step of which is elsewhere.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from streamwatch.core.events import Fingerprint, Partition
from streamwatch.core.ports import Poll, Record
from streamwatch.edge.sources.kafka.background_tasks import BackgroundTasks
from streamwatch.edge.sources.kafka.batches.codecs import CodecMissing
from streamwatch.edge.sources.kafka.batches.damage import Damage
from streamwatch.edge.sources.kafka.batches.plain_batches import compiled_plain_batches
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from streamwatch.edge.sources.kafka.connection.broker_health import BrokerHealth
from streamwatch.edge.sources.kafka.connection.connection import (
    CONNECTION_ERRORS,
    Connection,
    TopicsMissing,
    require_topics,
)
from streamwatch.edge.sources.kafka.connection.session import Session
from streamwatch.edge.sources.kafka.fetch.taking import TurnRecords
from streamwatch.edge.sources.kafka.fetch.wire import Listing
from streamwatch.edge.sources.kafka.grants import ReadDenied
from streamwatch.edge.sources.kafka.loss import LossCounts, Losses, ReadingEnded
from streamwatch.edge.sources.kafka.positions.group import Group
from streamwatch.edge.sources.kafka.positions.partition_positions import PartitionPositions
from streamwatch.edge.sources.kafka.positions.partition_status import PartitionStatus
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.telemetry import FetchFailed, InternalEvent, TopicsAssigned

NOTHING: Mapping[Partition, Fingerprint] = MappingProxyType({})


class KafkaSource:
    """Implements `core.ports.Source`.

    Positions live here, not in the client: a poll that fails moves none, and whatever replaces the connection
    goes on from them. A log that is not the one that was read is noticed (see `loss`): by topic id before
    anything of it is delivered, and where brokers give no ids, by remembered records. That the state itself
    was lost or exchanged is known from the consumer group alone: without `group_id` it is not noticed.

    Parameters
    ----------
    spec
        Where the brokers are and how long to wait for what.
    topics
        Topics whose every partition is read.
    emit
        Where internal events go.
    offset_metadata
        `state=<identity> commit=<number>` of the durable state as it is, which goes with advisory offsets;
        empty where state is not durable.
    monotonic, wall, jitter
        Seconds that never go back, seconds since the epoch (for `start_from: -2h` alone), numbers in [0, 1).
    """

    def __init__(
        self,
        spec: KafkaSpec,
        topics: Sequence[str],
        emit: Callable[[InternalEvent], None],
        *,
        offset_metadata: Callable[[], str] = lambda: "",
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._spec = spec
        self._topics = tuple(dict.fromkeys(topics))
        self._emit = emit
        self._offset_metadata = offset_metadata
        self._health = BrokerHealth(spec.alive_ms, emit, monotonic)
        self._losses = Losses(spec.on_data_loss, emit)
        self._partition_positions = PartitionPositions(spec, self._topics, self._losses, emit, wall)
        self._group = Group(spec, offset_metadata, self._losses, emit)
        self._background = BackgroundTasks(spec, self._health, emit, monotonic)
        self._partition_status = PartitionStatus(self._health, spec.watermark_grace_ms, monotonic)
        self._session = Session(spec, self._topics, self._health, self._begin, jitter)
        self._changes_settled = 0
        self._held: frozenset[Partition] = frozenset()
        self._damages: Mapping[Partition, Damage] = {}

    @property
    def up(self) -> bool:
        """A broker answered something within the last `alive_ms`: a fetch, be it empty, or a listing."""
        if (connection := self._session.connection) is None:
            return False
        self._health.look(connection, self._partition_positions.positions)
        return self._health.alive

    @property
    def assigned(self) -> bool:
        """Every partition has a position on an open connection."""
        return self._session.connection is not None and bool(self._partition_positions.positions)

    @property
    def losses(self) -> Mapping[str, int]:
        """Times the log was found changed under the reader, or the state not the one last used, by cause.

        Like the two that follow: as of the last `tell`, so that it goes with the positions committed.
        """
        return self._losses.told.times

    @property
    def records_lost(self) -> Mapping[str, int]:
        """Offsets skipped thereby, by cause, where the number is known."""
        return self._losses.told.records

    @property
    def position_unverified(self) -> int:
        """Times the record that would tell a log from another was gone from it."""
        return self._losses.told.unverified_positions

    def count_from(
        self, losses: Mapping[str, int], records_lost: Mapping[str, int], unverified_positions: int
    ) -> None:
        """Go on counting from what is durable, before a start or rewind to the positions that go with it."""
        self._losses.count_from(LossCounts(losses, records_lost, unverified_positions))

    def fingerprints(self) -> Mapping[Partition, Fingerprint]:
        """Fingerprints of the logs by what was evaluated of them; hashed now, one record for each."""
        return self._partition_positions.fingerprints.all()

    def evaluated(self, newest: Mapping[Partition, Record]) -> None:
        """Recognise the logs by these records from now on, the last that were evaluated of each."""
        for partition, record in newest.items():
            self._partition_positions.fingerprints.delivered(partition, record)

    def tell(self) -> None:
        """Let what polls found of the logs be committed with the positions they led to."""
        self._partition_positions.tell()

    def durable(self, positions: Mapping[Partition, int]) -> None:
        """State with these positions survives anything now: commit them, with the mark, when it is time."""
        if self._spec.group_id is not None:
            self._background.durable(dict(positions), self._offset_metadata())

    async def start(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint] = NOTHING
    ) -> None:
        """Verify topics, assign every partition and seek; positions given win over `start_from`.

        Waits for brokers that are away.

        Raises
        ------
        TopicsMissing
            A configured topic does not exist; the nearest existing names are told.
        ReadingEnded
            A log is not the one that was read, or the state not the one last used, and `on_data_loss` is
            `fail`.
        """
        await asyncio.to_thread(compiled_scan)
        await asyncio.to_thread(compiled_plain_batches)
        self._partition_positions.replace(positions, fingerprints)
        await self._session.begin()

    async def rewind(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint] = NOTHING
    ) -> None:
        """Go back to these positions, between two polls; other partitions go back to where they began.

        Raises
        ------
        ReadingEnded
            As from `start`.
        """
        halted = await self._session.halt()
        self._partition_positions.replace(positions, fingerprints)
        if halted:
            self._session.resume()
        elif (connection := self._session.connection) is not None:
            try:
                await self._settle(connection, await connection.listing())
            except (*CONNECTION_ERRORS, TopicsMissing) as error:
                self._session.drop(connection, error)

    async def poll(self) -> Poll:
        """Deliver the next records; returns without any after `poll_timeout_ms`, or while brokers are away.

        Raises
        ------
        ReadingEnded
            The log is not the one that was read, lacks what was to be read next or holds what cannot be read
            and `on_data_loss` is `fail`; records are compressed in a way that needs a package which is not
            installed; or this user may not read a topic.
        """
        connection, partition_positions = self._session.connection, self._partition_positions
        if connection is None:
            await self._session.connected_soon()
            return self._empty()
        try:
            self._pass_damages(connection)
            withheld = self._held | await self._tend(connection)
            wanted = [p for p in partition_positions.positions if p not in withheld] if withheld else None
            taken = await connection.take(wanted, self._spec.poll_timeout_ms)
        except CodecMissing as error:
            raise ReadingEnded(str(error)) from error
        except (*CONNECTION_ERRORS, TopicsMissing) as error:
            self._session.drop(connection, error)
            return self._empty()
        if connection.fetched:
            self._session.proven()
        moved = partition_positions.take_moved()
        self._heed(taken, connection)
        batches = taken.records
        looked_at = self._partition_status.worth_a_look(batches, partition_positions.positions)
        partition_positions.positions.update({p: connection.position(p) for p in looked_at})
        states = self._partition_status.after(looked_at, partition_positions.positions, connection)
        if taken.out_of_range:
            await self._go_on_nearby(connection, taken.out_of_range)
        return Poll(batches, states, moved)

    def _heed(self, taken: TurnRecords, connection: Connection) -> None:
        """Tell of what could not be read; what is damaged is passed over with the next poll.

        What came before the damage is delivered now and evaluated first: a commit in between must not count
        the damage beside a position before it.
        """
        for partition, (error, delay) in taken.failed.items():
            self._emit(FetchFailed(*partition, connection.position(partition), error, round(delay, 3)))
        denied = {p.topic for p, seconds in taken.denied.items() if seconds > self._spec.denied_ms / 1_000}
        if denied:
            raise ReadingEnded(str(ReadDenied(sorted(denied), self._spec)))
        self._damages = taken.damages

    def _pass_damages(self, connection: Connection) -> None:
        damages, self._damages = self._damages, {}
        for partition, damage in damages.items():
            if partition in self._partition_positions.positions:
                self._losses.unreadable(partition, damage)
                connection.seek(partition, damage.next_offset, damage.asked)
                self._partition_positions.pass_over(partition, damage.next_offset)

    def pause(self, partitions: frozenset[Partition]) -> None:
        """Hold exactly these back. What the client has already fetched of them is kept, not fetched again."""
        self._held = partitions

    async def stop(self) -> None:
        """Leave within about `stop_timeout_ms`, whatever state the brokers are in."""
        budget = self._spec.stop_timeout_ms / 1_000
        connection = self._session.connection
        await self._session.end(budget / 2)
        await self._background.finish(connection, budget / 4)
        if connection is not None:
            await connection.close(budget / 2)

    async def _begin(self, connection: Connection, listing: Listing) -> None:
        """Make a new connection the one that is read."""
        partitions = [Partition(t, n) for t in self._topics for n in listing[t].partitions]
        await self._group.ask(connection, partitions, begun=bool(self._partition_positions.positions))
        await self._settle(connection, listing)
        self._background.begin()
        self._emit(TopicsAssigned(self._topics, len(self._partition_positions.positions)))

    async def _settle(self, connection: Connection, listing: Listing) -> None:
        require_topics(self._topics, listing, self._spec.bootstrap_servers)
        await self._partition_positions.settle(connection, listing)
        self._assign(connection)

    def _assign(self, connection: Connection) -> None:
        connection.assign(self._partition_positions.positions)
        self._changes_settled = connection.change_signals.latest
        self._partition_status.clear()

    async def _tend(self, connection: Connection) -> frozenset[Partition]:
        """Between two polls: notice silence and changed topics; partitions whose log is suspect."""
        self._session.heed_silence()
        suspect_partitions = self._suspect_partitions(connection)
        fresh = self._background.tend(connection, suspect=bool(suspect_partitions))
        if len(suspect_partitions) == len(self._partition_positions.positions) and fresh is None:
            await self._background.listed(self._spec.poll_timeout_ms / 1_000)
            fresh = self._background.tend(connection, suspect=False)
        if fresh is not None:
            require_topics(self._topics, fresh.listing, self._spec.bootstrap_servers)
            if await self._partition_positions.revise(connection, fresh.listing):
                self._assign(connection)
            self._changes_settled = max(self._changes_settled, fresh.change_signals)
        return self._suspect_partitions(connection)

    def _suspect_partitions(self, connection: Connection) -> frozenset[Partition]:
        if connection.change_signals.latest == self._changes_settled:
            return frozenset()
        topics = {t for t in self._topics if connection.change_signals.about(t, self._changes_settled)}
        return frozenset(p for p in self._partition_positions.positions if p.topic in topics)

    async def _go_on_nearby(self, connection: Connection, refused: Sequence[Partition]) -> None:
        """Logs do not hold the next offset: go on at the nearest that they hold, or in new ones."""
        try:
            listing = await connection.listing()
            require_topics(self._topics, listing, self._spec.bootstrap_servers)
            await self._partition_positions.nearby(connection, listing, refused)
        except (*CONNECTION_ERRORS, TopicsMissing) as error:
            self._session.drop(connection, error)
            return
        for partition in refused:
            connection.seek(partition, self._partition_positions.positions[partition])
        self._partition_status.clear()

    def _empty(self) -> Poll:
        positions = self._partition_positions.positions
        states = self._partition_status.states(positions, positions, self._session.connection)
        return Poll({}, states, self._partition_positions.take_moved())
