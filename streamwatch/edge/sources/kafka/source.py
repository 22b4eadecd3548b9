"""All partitions of the configured topics, read by one process that keeps its own positions.

A little past 250 lines: everything the daemon may ask of a source, each step of which is elsewhere.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from aiokafka.errors import OffsetOutOfRangeError, UnsupportedCodecError

from streamwatch.core.events import Fingerprint, Partition
from streamwatch.core.ports import Poll
from streamwatch.edge.sources.kafka.connection import (
    CONNECTION_ERRORS,
    Connection,
    TopicsMissing,
    require_topics,
)
from streamwatch.edge.sources.kafka.group import Group
from streamwatch.edge.sources.kafka.liveness import Liveness
from streamwatch.edge.sources.kafka.loss import Losses, ReadingEnded, Tally
from streamwatch.edge.sources.kafka.outlook import Outlook
from streamwatch.edge.sources.kafka.session import Session
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.standing import Standing
from streamwatch.edge.sources.kafka.upkeep import Upkeep
from streamwatch.edge.sources.kafka.wire import Listing
from streamwatch.telemetry import Happening, TopicsAssigned

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
        Where happenings go.
    mark
        `state=<identity> commit=<number>` of the durable state as it is, which goes with advisory offsets;
        empty where state is not durable.
    monotonic, wall, jitter
        Seconds that never go back, seconds since the epoch (for `start_from: -2h` alone), numbers in [0, 1).
    """

    def __init__(
        self,
        spec: KafkaSpec,
        topics: Sequence[str],
        emit: Callable[[Happening], None],
        *,
        mark: Callable[[], str] = lambda: "",
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._spec = spec
        self._topics = tuple(dict.fromkeys(topics))
        self._emit = emit
        self._mark = mark
        self._life = Liveness(spec.alive_ms, emit, monotonic)
        self._losses = Losses(spec.on_loss, emit)
        self._standing = Standing(spec, self._topics, self._losses, emit, wall)
        self._group = Group(spec, mark, self._losses, emit)
        self._upkeep = Upkeep(spec, self._life, emit, monotonic)
        self._outlook = Outlook(self._life, spec.watermark_grace_ms, monotonic)
        self._session = Session(spec, self._topics, self._life, self._begin, jitter)
        self._doubts_settled = 0
        self._held: frozenset[Partition] = frozenset()

    @property
    def up(self) -> bool:
        """A broker answered something within the last `alive_ms`: a fetch, be it empty, or a listing."""
        if (connection := self._session.connection) is None:
            return False
        self._life.look(connection, self._standing.positions)
        return self._life.alive

    @property
    def assigned(self) -> bool:
        """Every partition has a position on an open connection."""
        return self._session.connection is not None and bool(self._standing.positions)

    @property
    def losses(self) -> Mapping[str, int]:
        """Times the log was found changed under the reader, or the state not the one last used, by cause.

        Like the two that follow: as of the last poll, so that it goes with the positions that this one told.
        """
        return self._losses.told.times

    @property
    def records_lost(self) -> Mapping[str, int]:
        """Offsets skipped thereby, by cause, where the number is known."""
        return self._losses.told.records

    @property
    def fingerprint_unverifiable(self) -> int:
        """Times the record that would tell a log from another was gone from it."""
        return self._losses.told.unverifiable

    def count_from(
        self, losses: Mapping[str, int], records_lost: Mapping[str, int], unverifiable: int
    ) -> None:
        """Go on counting from what is durable, before a start or rewind to the positions that go with it."""
        self._losses.count_from(Tally(losses, records_lost, unverifiable))

    def fingerprints(self) -> Mapping[Partition, Fingerprint]:
        """How the logs are recognised at the positions of the last poll; hashed now, one record for each."""
        return self._standing.fingerprints.all()

    def durable(self, positions: Mapping[Partition, int]) -> None:
        """State with these positions survives anything now: commit them, with the mark, when it is time."""
        if self._spec.group_id is not None:
            self._upkeep.durable(dict(positions), self._mark())

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
            A log is not the one that was read, or the state not the one last used, and `on_loss` is `fail`.
        """
        self._standing.replace(positions, fingerprints)
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
        self._standing.replace(positions, fingerprints)
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
            The log is not the one that was read or lacks what was to be read next and `on_loss` is `fail`, or
            records are compressed in a way that needs a package which is not installed.
        """
        connection, standing = self._session.connection, self._standing
        if connection is None:
            await self._session.connected_soon()
            return self._empty()
        try:
            withheld = self._held | await self._tend(connection)
            wanted = [p for p in standing.positions if p not in withheld] if withheld else None
            found = await connection.records(wanted, self._spec.poll_timeout_ms)
            batches = {Partition(*tp): batch for tp, batch in found.items()}
            looked_at = self._outlook.worth_a_look(batches, standing.positions)
            standing.positions.update({p: await connection.position(p) for p in looked_at})
        except OffsetOutOfRangeError as error:
            await self._go_on_nearby(connection, [Partition(*tp) for tp in error.args[0]])
            return self._empty()
        except UnsupportedCodecError as error:
            raise ReadingEnded(f"{error}: install it with pip install 'streamwatch[compression]'") from error
        except (*CONNECTION_ERRORS, TopicsMissing) as error:
            self._session.drop(connection, error)
            return self._empty()
        for partition, batch in batches.items():
            standing.fingerprints.delivered(partition, batch)
        standing.tell()
        return Poll(batches, self._outlook.after(looked_at, standing.positions, connection))

    def pause(self, partitions: frozenset[Partition]) -> None:
        """Hold exactly these back. What the client has already fetched of them is kept, not fetched again."""
        self._held = partitions

    async def stop(self) -> None:
        """Leave within about `stop_timeout_ms`, whatever state the brokers are in."""
        budget = self._spec.stop_timeout_ms / 1_000
        connection = self._session.connection
        await self._session.end(budget / 2)
        await self._upkeep.finish(connection, budget / 4)
        if connection is not None:
            await connection.close(budget / 2)

    async def _begin(self, connection: Connection, listing: Listing) -> None:
        """Make a new connection the one that is read."""
        partitions = [Partition(t, n) for t in self._topics for n in listing[t].partitions]
        await self._group.ask(connection, partitions, begun=bool(self._standing.positions))
        await self._settle(connection, listing)
        self._upkeep.begin()
        self._emit(TopicsAssigned(self._topics, len(self._standing.positions)))

    async def _settle(self, connection: Connection, listing: Listing) -> None:
        require_topics(self._topics, listing, self._spec.bootstrap_servers)
        await self._standing.settle(connection, listing)
        self._assign(connection)

    def _assign(self, connection: Connection) -> None:
        connection.assign(self._standing.positions)
        self._doubts_settled = connection.doubts.latest
        self._outlook.clear()

    async def _tend(self, connection: Connection) -> frozenset[Partition]:
        """Between two polls: notice silence and changed topics; partitions whose log is in doubt."""
        self._session.heed_silence()
        doubted = self._doubted(connection)
        fresh = self._upkeep.tend(connection, doubtful=bool(doubted))
        if len(doubted) == len(self._standing.positions) and fresh is None:
            await self._upkeep.listed(self._spec.poll_timeout_ms / 1_000)
            fresh = self._upkeep.tend(connection, doubtful=False)
        if fresh is not None:
            require_topics(self._topics, fresh.listing, self._spec.bootstrap_servers)
            if await self._standing.revise(connection, fresh.listing):
                self._assign(connection)
            self._doubts_settled = max(self._doubts_settled, fresh.doubts)
        return self._doubted(connection)

    def _doubted(self, connection: Connection) -> frozenset[Partition]:
        if connection.doubts.latest == self._doubts_settled:
            return frozenset()
        topics = {t for t in self._topics if connection.doubts.about(t, self._doubts_settled)}
        return frozenset(p for p in self._standing.positions if p.topic in topics)

    async def _go_on_nearby(self, connection: Connection, refused: Sequence[Partition]) -> None:
        """Logs do not hold the next offset: go on at the nearest that they hold, or in new ones."""
        try:
            listing = await connection.listing()
            require_topics(self._topics, listing, self._spec.bootstrap_servers)
            await self._standing.nearby(connection, listing, refused)
        except (*CONNECTION_ERRORS, TopicsMissing) as error:
            self._session.drop(connection, error)
            return
        for partition in refused:
            connection.seek(partition, self._standing.positions[partition])
        self._outlook.clear()

    def _empty(self) -> Poll:
        positions = self._standing.positions
        self._standing.tell()
        return Poll({}, self._outlook.states(positions, positions, self._session.connection))
