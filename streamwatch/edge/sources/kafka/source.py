"""The source: reads all partitions of the configured topics, and keeps its own positions."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import DataLossCounters, Poll, Record
from streamwatch.core.records.events import Fingerprint, Partition
from streamwatch.edge.sources.kafka.background_tasks import BackgroundTasks, Group
from streamwatch.edge.sources.kafka.batches.frames import Damage
from streamwatch.edge.sources.kafka.batches.opened import CodecMissing, compiled_plain_batches
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from streamwatch.edge.sources.kafka.connection import (
    BrokerHealth,
    Connection,
    Session,
    TopicsMissing,
    require_topics,
)
from streamwatch.edge.sources.kafka.data_loss import DataLossSnapshot, DataLossTracker, ReadingEnded
from streamwatch.edge.sources.kafka.fetching import TurnRecords
from streamwatch.edge.sources.kafka.positions import PartitionPositions, PartitionStatus
from streamwatch.edge.sources.kafka.refusals import ReadDenied
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import CONNECTION_ERRORS, Listing
from streamwatch.telemetry import FetchFailed, InternalEvent, TopicsAssigned

# Metrics of the brokers, and of data loss.


def source_families(counts: DataLossCounters | None, *, up: bool) -> Sequence[Family]:
    """Return the metrics of the source.

    Parameters
    ----------
    counts
        Counts of data loss; None before the state is open: they then have no samples, as a scrape must not
        see 0 after the counts of the previous run.
    up
        Whether brokers answer.
    """
    return [
        single("kafka_up", float(up)),
        _by_cause("kafka_data_loss_total", {} if counts is None else counts.losses),
        _by_cause("kafka_records_lost_total", {} if counts is None else counts.records_lost),
        single(
            "kafka_position_unverified_total", None if counts is None else float(counts.position_unverified)
        ),
    ]


def _by_cause(name: str, counts: Mapping[str, int]) -> Family:
    return family(name, [((cause,), float(n)) for cause, n in sorted(counts.items())])


NOTHING: Mapping[Partition, Fingerprint] = MappingProxyType({})


class KafkaSource:
    """Source of all partitions of topics of Kafka; implements `core.ports.Source`.

    Positions are kept here, not in the client: a poll that fails changes none, and the next connection
    continues from them. A replaced log is detected (see `data_loss`) by its topic id before any record of it
    is delivered; where brokers report no ids, by remembered records. A lost or exchanged state is detected
    only by the offsets of the consumer group, so only with `group_id`.

    Parameters
    ----------
    spec
        Addresses of the brokers, credentials and time limits.
    topics
        Topics to read.
    emit
        Receives internal events.
    offset_metadata
        Returns the state's mark, `state=<identity> commit=<number>`, which is committed with offsets; empty
        where the state is not durable.
    topics_since_ms
        Returns topics that were added to the state, and the time (ms) from which each is read instead of
        `start_from`.
    monotonic, wall, jitter
        Monotonic clock in seconds; clock in seconds since the epoch, used only for starts such as `-2h`;
        random numbers in [0, 1).
    """

    def __init__(  # noqa: PLR0913  # clocks, and what is asked of the state
        self,
        spec: KafkaSpec,
        topics: Sequence[str],
        emit: Callable[[InternalEvent], None],
        offset_metadata: Callable[[], str] = lambda: "",
        topics_since_ms: Callable[[], Mapping[str, int]] = dict,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.name = "Kafka"
        self._spec = spec
        self._topics = tuple(dict.fromkeys(topics))
        self._emit = emit
        self._offset_metadata = offset_metadata
        self._health = BrokerHealth(spec.alive_ms, emit, monotonic)
        self._losses = DataLossTracker(spec.on_data_loss, emit)
        self._partition_positions = PartitionPositions(
            spec, self._topics, self._losses, emit, wall, topics_since_ms
        )
        self._group = Group(spec, offset_metadata, self._losses, emit, monotonic)
        self._background = BackgroundTasks(spec, self._health, self._group, emit, monotonic)
        self._partition_status = PartitionStatus(self._health, spec.watermark_grace_ms, monotonic)
        self._session = Session(spec, self._topics, self._health, self._begin, jitter)
        self._changes_settled = 0
        self._missing: frozenset[str] | None = None
        """Topics of `required_topics` that were missing in the last listing; None before one."""
        self._damages: Mapping[Partition, Damage] = {}
        """Damage found with the last poll, which is skipped once the records before it are evaluated."""
        self._held: frozenset[Partition] = frozenset()
        self._listening: asyncio.Task[None] | None = None

    @property
    def up(self) -> bool:
        """Tell whether a broker answered a fetch or a listing within the last `alive_ms`."""
        if (connection := self._session.connection) is None:
            return False
        self._health.look(connection, self._partition_positions.positions)
        return self._health.alive

    @property
    def assigned(self) -> bool:
        """Tell whether a connection is open and every partition is assigned to it."""
        return self._session.connection is not None and bool(self._partition_positions.positions)

    @property
    def losses(self) -> Mapping[str, int]:
        """Number of changed logs, unreadable batches, and states that were not the one last used, by cause.

        This, `records_lost` and `position_unverified` are as of the last `release_findings`, so that they fit
        the committed positions.
        """
        return self._losses.released.times

    @property
    def records_lost(self) -> Mapping[str, int]:
        """Number of offsets that were skipped, by cause, where it is known."""
        return self._losses.released.records

    @property
    def position_unverified(self) -> int:
        """Number of logs whose identifying record was gone."""
        return self._losses.released.unverified_positions

    def count_from(
        self, losses: Mapping[str, int], records_lost: Mapping[str, int], unverified_positions: int
    ) -> None:
        """Continue from durable counts, before a start or rewind to the positions committed with them."""
        self._losses.count_from(DataLossSnapshot(losses, records_lost, unverified_positions))

    def fingerprints(self) -> Mapping[Partition, Fingerprint]:
        """Return the fingerprints of the logs as of the evaluated records; hashes one record of each."""
        return self._partition_positions.fingerprints.all()

    def evaluated(self, newest: Mapping[Partition, Record]) -> None:
        """Set the last evaluated record of partitions, by which their logs are identified."""
        for partition, record in newest.items():
            self._partition_positions.fingerprints.delivered(partition, record)

    def release_findings(self) -> None:
        """Make findings about the logs visible, to be committed with the positions after them."""
        self._partition_positions.release_findings()

    def durable(self, positions: Mapping[Partition, int]) -> None:
        """Set the positions, durable now, to commit with the state's mark at the next interval."""
        if self._spec.group_id is not None:
            self._background.durable(dict(positions), self._offset_metadata())

    async def start(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint] = NOTHING
    ) -> None:
        """Verify topics, and assign every partition from `positions`; topics without any from `start_from`.

        Waits for unreachable brokers without limit.

        Raises
        ------
        TopicsMissing
            A configured topic does not exist; the error names the nearest existing ones.
        ReadingEnded
            A log was replaced, or the state is not the one last used, and `on_data_loss` is `fail`; brokers
            refused this client for `denied_ms`; or the package that signs tokens is missing.
        """
        await asyncio.to_thread(compiled_scan)
        await asyncio.to_thread(compiled_plain_batches)
        self._partition_positions.replace(positions, fingerprints)
        self._listening = asyncio.create_task(self._listen())
        await self._session.begin()

    async def rewind(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint] = NOTHING
    ) -> None:
        """Return to positions, between two polls; other partitions return to where they began.

        Raises
        ------
        ReadingEnded
            A log was replaced, and `on_data_loss` is `fail`.
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
        """Return the next records; none after `poll_timeout_ms`, or while brokers are unreachable.

        Raises
        ------
        ReadingEnded
            A log was replaced, lacks the next record or has damage, and `on_data_loss` is `fail`; the package
            of a codec is not installed; or this user may not read a topic.
        """
        connection, partition_positions = self._session.connection, self._partition_positions
        if self._listening is not None and self._listening.done():
            self._listening.result()  # raises the exception of a bug, which alone ends it
        if connection is None:
            await self._session.wait_connected()
            return self._empty()
        try:
            self._skip_damage(connection)
            self._session.check_silence()
            withheld = self._held | await self._apply_changes(connection)
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
        self._report(taken, connection)
        looked_at = self._partition_status.to_inspect(taken.records, partition_positions.positions)
        partition_positions.positions.update({p: connection.position(p) for p in looked_at})
        states = self._partition_status.after(looked_at, partition_positions.positions, connection)
        if taken.out_of_range:
            try:
                await self._move_to_nearest(connection, taken.out_of_range)
            except (*CONNECTION_ERRORS, TopicsMissing) as error:
                self._session.drop(connection, error)
        return Poll(taken.records, states, moved)

    def pause(self, partitions: frozenset[Partition]) -> None:
        """Pause exactly these partitions; records already fetched of them are kept."""
        self._held = partitions

    def families(self, counts: DataLossCounters | None) -> Sequence[Family]:
        """Return the metrics of the brokers and of data loss; parameters as of `source_families`."""
        families = source_families(counts, up=self.up)
        missing = self._missing
        if not self._spec.required_topics or missing is None:
            return families
        return [*families, single("dead_letter_topic_missing", float(bool(missing)))]

    async def stop(self) -> None:
        """Stop within about `stop_timeout_ms`, also if brokers do not answer."""
        connection, budget = self._session.connection, self._spec.stop_timeout_ms / 1_000
        if self._listening is not None:
            self._listening.cancel()
        await self._session.end(budget / 2)
        await self._background.finish(connection, budget / 4)
        if connection is not None:
            await connection.close(budget / 2)

    async def _listen(self) -> None:
        """Measure answers and silence of brokers at intervals, also while no poll runs."""
        while True:
            await asyncio.sleep(self._health.pulse_seconds)
            if (connection := self._session.connection) is not None:
                self._health.look(connection, self._partition_positions.positions)
                self._background.listen(connection)
            self._health.turned()

    async def _begin(self, connection: Connection, listing: Listing) -> None:
        """Assign all partitions to a new connection, and compare the state with the consumer group."""
        partitions = [Partition(t, n) for t in self._topics for n in listing[t].partitions]
        await self._group.ask(connection, partitions, begun=bool(self._partition_positions.positions))
        await self._settle(connection, listing)
        self._background.begin()
        self._emit(TopicsAssigned(self._topics, len(self._partition_positions.positions)))

    # Every partition of the topics is assigned to a connection, again when topics change.

    async def _settle(self, connection: Connection, listing: Listing) -> None:
        """Determine positions, and assign all partitions to a new connection."""
        self._require_topics(listing)
        await self._partition_positions.settle(connection, listing)
        self._assign(connection)

    async def _apply_changes(self, connection: Connection) -> frozenset[Partition]:
        """Apply changes of topics between two polls; return the partitions whose logs may be others now."""
        suspect_partitions = self._suspect_partitions(connection)
        fresh = self._background.start_due(connection, suspect=bool(suspect_partitions))
        if len(suspect_partitions) == len(self._partition_positions.positions) and fresh is None:
            await self._background.listed(self._spec.poll_timeout_ms / 1_000)
            fresh = self._background.start_due(connection, suspect=False)
        if fresh is not None:
            self._require_topics(fresh.listing)
            if await self._partition_positions.revise(connection, fresh.listing):
                self._assign(connection)
            self._changes_settled = max(self._changes_settled, fresh.change_signals)
        return self._suspect_partitions(connection)

    async def _move_to_nearest(self, connection: Connection, refused: Sequence[Partition]) -> None:
        """Continue at the nearest offsets, or in recreated logs, where logs do not hold the position."""
        listing = await connection.listing()
        self._require_topics(listing)
        await self._partition_positions.move_to_nearest(connection, listing, refused)
        for partition in refused:
            connection.seek(partition, self._partition_positions.positions[partition])
        self._partition_status.clear()

    def _assign(self, connection: Connection) -> None:
        connection.assign(self._partition_positions.positions)
        self._changes_settled = connection.change_signals.latest
        self._partition_status.clear()

    def _suspect_partitions(self, connection: Connection) -> frozenset[Partition]:
        if connection.change_signals.latest == self._changes_settled:
            return frozenset()
        topics = {t for t in self._topics if connection.change_signals.about(t, self._changes_settled)}
        return frozenset(p for p in self._partition_positions.positions if p.topic in topics)

    def _require_topics(self, listing: Listing) -> None:
        require_topics(self._topics, listing, self._spec.bootstrap_servers)
        there = {name for name, listed in listing.items() if listed.partitions}
        self._missing = frozenset(dict(self._spec.required_topics)) - there

    def _report(self, taken: TurnRecords, connection: Connection) -> None:
        """Report failures and denials of one turn, and keep its damage for the next poll.

        Records before the damage are delivered and evaluated first: a commit in between must not store the
        damage with a position before it. Raises ReadingEnded if access was denied for `denied_ms`.
        """
        for partition, (error, delay) in taken.failed.items():
            self._emit(FetchFailed(*partition, connection.position(partition), error, round(delay, 3)))
        denied = {p.topic for p, seconds in taken.denied.items() if seconds > self._spec.denied_ms / 1_000}
        if denied:
            raise ReadingEnded(str(ReadDenied(sorted(denied), self._spec)))
        self._damages = taken.damages

    def _skip_damage(self, connection: Connection) -> None:
        """Count and skip the damage of the last poll; raises ReadingEnded if `on_data_loss` is `fail`."""
        damages, self._damages = self._damages, {}
        for partition, damage in damages.items():
            if partition in self._partition_positions.positions:
                self._losses.unreadable(partition, damage)
                connection.seek(partition, damage.next_offset, damage.asked)
                self._partition_positions.skip_to(partition, damage.next_offset)

    def _empty(self) -> Poll:
        positions = self._partition_positions.positions
        states = self._partition_status.states(positions, positions, self._session.connection)
        return Poll({}, states, self._partition_positions.take_moved())
