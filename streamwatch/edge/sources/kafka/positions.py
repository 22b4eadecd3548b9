"""Positions of all partitions: kept true to changes of the cluster, and reported with each poll."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from aiokafka.errors import StaleMetadata

from streamwatch.core.ports import PartitionState
from streamwatch.core.records.events import Fingerprint, Mark, Partition
from streamwatch.edge.sources.kafka.connection import BrokerHealth, Connection
from streamwatch.edge.sources.kafka.data_loss import (
    DataLossTracker,
    Fingerprints,
    Found,
    Kinship,
    judge,
    mark_of,
)
from streamwatch.edge.sources.kafka.spec import At, KafkaSpec
from streamwatch.edge.sources.kafka.wire import Listed, Listing
from streamwatch.telemetry import InternalEvent, PartitionsAdded

PROBES = 32
"""Remembered records that are fetched at the same time, at most; each brings one batch."""


class PartitionPositions:
    """Positions and fingerprints of all partitions, updated when logs or topics change.

    Changes are detected at each new connection and in each listing: by the topics' ids, and by fetching a
    remembered record where the connection is new or ids are unknown. A step that fails leaves positions
    consistent, and is repeated on the next connection.

    Parameters
    ----------
    spec
        Where partitions without a position begin.
    topics
        Topics that are read.
    losses
        Counts data loss, and raises LogLost with `on_data_loss: fail`.
    emit
        Receives internal events.
    wall
        Clock in seconds since the epoch, used only for starts such as `-2h`.
    topics_since_ms
        Returns the time (ms) from which some topics are read, instead of `start_from`.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        topics: Sequence[str],
        losses: DataLossTracker,
        emit: Callable[[InternalEvent], None],
        wall: Callable[[], float],
        topics_since_ms: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._spec = spec
        self._topics = topics
        self._losses = losses
        self._emit = emit
        self._wall = wall
        self._topics_since_ms = topics_since_ms
        self._origins: dict[Partition, int] = {}
        self._former_ids: set[str] = set()
        self._moved: set[Partition] = set()
        self.positions: dict[Partition, int] = {}
        self.fingerprints = Fingerprints()

    def replace(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint]
    ) -> None:
        """Set positions from a store; other partitions return to the positions at which they began."""
        given = {p: position for p, position in positions.items() if p.topic in self._topics}
        self.positions = self._origins | given
        self._moved.clear()
        self.fingerprints.replace({p: fingerprints[p] for p in given if p in fingerprints})

    def skip_to(self, partition: Partition, resumed: int) -> None:
        """Set the position after a part of the log that cannot be read."""
        self.positions[partition] = resumed
        self._moved.add(partition)

    def take_moved(self) -> frozenset[Partition]:
        """Return the partitions whose logs were found changed since the last call."""
        moved = frozenset(self._moved)
        self._moved.clear()
        return moved

    def release_findings(self) -> None:
        """Make findings about the logs visible, as a poll now reports the positions after them."""
        self.fingerprints.polled()
        self._losses.release()

    async def settle(self, connection: Connection, listing: Listing) -> None:
        """Determine the position in every partition, and verify all logs, on a new connection."""
        self._require_current_ids(listing)
        begun = {p.topic for p in self.positions}
        new = [Partition(t, n) for t in self._topics if t not in begun for n in listing[t].partitions]
        since_ms, now_ms = self._topics_since_ms(), round(self._wall() * 1_000)
        late = {p for p in new if p.topic in since_ms}
        found = await connection.resolve([p for p in new if p not in late], self._spec.start_from, now_ms)
        for topic in sorted({p.topic for p in late}):
            own = [p for p in new if p.topic == topic]
            found |= await connection.resolve(own, At(since_ms[topic]), now_ms)
        self._origins |= found
        self.positions |= found
        await self._verify(connection, listing, [p for p in self.positions if self._there(p, listing)])
        self._match(listing)

    async def revise(self, connection: Connection, listing: Listing) -> bool:
        """Compare a listing with the partitions being read; tell whether any was added or its log changed."""
        self._require_current_ids(listing)
        unsure = [p for p in self.positions if self._there(p, listing) and self._kin(p, listing) != "same"]
        moved = await self._verify(connection, listing, unsure)
        return self._match(listing) or moved

    async def move_to_nearest(
        self, connection: Connection, listing: Listing, refused: Collection[Partition]
    ) -> None:
        """Replace refused positions by the nearest offset of the log, or the beginning of a recreated one."""
        self._require_current_ids(listing)
        for partition in refused:
            wanted = self.positions[partition]
            fingerprint, kin = self.fingerprints.of(partition), self._kin(partition, listing)
            first, end = await connection.ends(partition)
            if kin != "other" and wanted < first:
                self._losses.overtaken(partition, wanted, first)
                self._moved.add(partition)
                self.positions[partition] = first
            elif kin == "other" or wanted > end:
                listed = listing[partition.topic]
                found: dict[Mark, Found] = {}
                for mark in fingerprint.marks if kin != "other" else ():
                    found[mark] = await self._found(connection, listed, partition, mark)
                if judge(kin, ["beyond", *found.values()]) == "recreated":
                    self._begin_anew(partition, listed, first)
                else:
                    self._cut(partition, listed, end, [m for m, what in found.items() if what == "same"])

    def _require_current_ids(self, listing: Listing) -> None:
        """Raise StaleMetadata for a listing with a topic's former id, from a broker behind the others."""
        for topic in self._topics:
            if (listed := listing.get(topic)) is not None and listed.topic_id in self._former_ids:
                raise StaleMetadata(f"a broker still lists the former topic {topic}")

    def _there(self, partition: Partition, listing: Listing) -> bool:
        return partition.partition in listing[partition.topic].leaders

    def _kin(self, partition: Partition, listing: Listing) -> Kinship:
        then, now = self.fingerprints.of(partition).topic_id, listing[partition.topic].topic_id
        if then is None or now is None:
            return "unknown"
        return "same" if then == now else "other"

    async def _verify(
        self, connection: Connection, listing: Listing, partitions: Sequence[Partition]
    ) -> bool:
        """Judge logs by topic id and remembered records; tell whether any log had changed."""
        moved = False
        for start in range(0, len(partitions), PROBES):
            some = partitions[start : start + PROBES]
            evidence = await asyncio.gather(*(self._evidence(connection, listing, p) for p in some))
            for partition, found in zip(some, evidence, strict=True):
                moved |= await self._conclude(connection, listing, partition, found)
        return moved

    async def _evidence(
        self, connection: Connection, listing: Listing, partition: Partition
    ) -> dict[Mark, Found]:
        """Compare remembered records with the log, the newest first, until the judgement is certain."""
        kin, found = self._kin(partition, listing), dict[Mark, Found]()
        for mark in self.fingerprints.of(partition).marks if kin != "other" else ():
            found[mark] = await self._found(connection, listing[partition.topic], partition, mark)
            newest_decides = len(found) == 1 and found[mark] in ("hidden", "absent")
            if found[mark] == "same" or newest_decides:
                break
        return found

    async def _found(self, connection: Connection, listed: Listed, partition: Partition, mark: Mark) -> Found:
        leader = listed.leaders[partition.partition]
        record = await connection.record_at(leader, partition, mark.offset)
        if record == "beyond":
            first, _ = await connection.ends(partition)
            return "absent" if mark.offset < first else "beyond"
        if isinstance(record, str):
            return record
        return "same" if mark_of(record) == mark else "other"

    async def _conclude(
        self, connection: Connection, listing: Listing, partition: Partition, found: Mapping[Mark, Found]
    ) -> bool:
        listed, position = listing[partition.topic], self.positions[partition]
        kin = self._kin(partition, listing)
        if not found and kin != "other":  # no record of it was ever delivered
            self.fingerprints.set_topic_id(partition, listed.topic_id)
            return False
        verdict = judge(kin, list(found.values()))
        if verdict in ("intact", "unverified"):
            if verdict == "unverified":
                self._losses.unverified(partition, next(iter(found)).offset)
            self.fingerprints.set_topic_id(partition, listed.topic_id)
            return False
        first, end = await connection.ends(partition)
        if verdict == "recreated":
            self._begin_anew(partition, listed, first)
        else:
            beyond = next(iter(found.values())) == "beyond"
            resumed = min(position, end) if beyond else position
            self._cut(partition, listed, resumed, [m for m, what in found.items() if what == "same"])
        return True

    def _begin_anew(self, partition: Partition, listed: Listed, first: int) -> None:
        former = self.fingerprints.of(partition).topic_id
        self._losses.recreated(partition, self.positions[partition], first)
        self._moved.add(partition)
        if former is not None and former != listed.topic_id:
            self._former_ids.add(former)
        self.fingerprints.renew(partition, listed.topic_id)
        self.positions[partition] = self._origins[partition] = first

    def _cut(self, partition: Partition, listed: Listed, resumed: int, marks: Sequence[Mark]) -> None:
        self._losses.truncated(partition, self.positions[partition], resumed)
        self._moved.add(partition)
        self.fingerprints.renew(partition, listed.topic_id, tuple(marks))
        self.positions[partition] = resumed

    def _match(self, listing: Listing) -> bool:
        """Add new partitions of topics, from their beginning, and remove those that no longer exist."""
        there = {Partition(t, n) for t in self._topics for n in listing[t].partitions}
        for partition in sorted(self.positions.keys() - there):
            if self._kin(partition, listing) == "same":
                continue  # a topic never shrinks: this broker does not yet know that it grew
            self._losses.vanished(partition, self.positions[partition])
            self._moved.add(partition)
            del self.positions[partition]
            self._origins.pop(partition, None)
            self.fingerprints.forget(partition)
        added = sorted(there - self.positions.keys())
        for topic, count in Counter(p.topic for p in added).items():
            self._emit(PartitionsAdded(topic, count))
        for partition in added:
            self.positions[partition] = self._origins[partition] = 0
            self.fingerprints.set_topic_id(partition, listing[partition.topic].topic_id)
        return bool(added)


# State of every partition as of a poll: position, end of the log, and whether it is caught up.


LOOK_SECONDS = 0.1
"""Age that the reported state of a partition without records may have while others deliver."""


class PartitionStatus:
    """Cache of partitions' states, so that a poll inspects only those that may have changed.

    Parameters
    ----------
    health
        Tells when each partition was last fetched.
    grace_ms
        A partition is caught up only if a fetch of it was answered within this time.
    monotonic
        Monotonic clock in seconds.
    """

    def __init__(self, health: BrokerHealth, grace_ms: float, monotonic: Callable[[], float]) -> None:
        self._health = health
        self._grace_ms = grace_ms
        self._monotonic = monotonic
        self._latest: dict[Partition, PartitionState] = {}
        self._look_at_all = 0.0

    def clear(self) -> None:
        """Drop all states, as partitions or positions have changed."""
        self._latest, self._look_at_all = {}, 0.0

    def to_inspect(
        self, delivered: Collection[Partition], positions: Mapping[Partition, int]
    ) -> Collection[Partition]:
        """Return the partitions to inspect: those that delivered, and every `LOOK_SECONDS` all of them."""
        now = self._monotonic()
        if delivered and now < self._look_at_all:
            return delivered
        self._look_at_all = now + LOOK_SECONDS
        return list(positions)

    def after(
        self, looked_at: Collection[Partition], positions: Mapping[Partition, int], connection: Connection
    ) -> Mapping[Partition, PartitionState]:
        """Inspect some partitions after a poll, and return the states of all."""
        self._health.look(connection, looked_at)
        states = self.states(looked_at, positions, connection)
        self._latest = states if len(states) == len(positions) else self._latest | states
        return self._latest

    def states(
        self,
        partitions: Iterable[Partition],
        positions: Mapping[Partition, int],
        connection: Connection | None,
    ) -> dict[Partition, PartitionState]:
        """Return the states of partitions now."""
        states: dict[Partition, PartitionState] = {}
        for partition in partitions:
            position = positions[partition]
            highwater = -1 if connection is None else connection.last_fetch(partition)[0]
            caught_up = highwater == position and self._health.fetched_within(partition, self._grace_ms)
            # A leader that has just restarted may answer with a high watermark that is too low.
            shown = max(highwater, position) if highwater >= 0 else -1
            at_end_ms = None if connection is None else connection.at_end_ms(partition, position)
            states[partition] = PartitionState(position, shown, caught_up, at_end_ms)
        return states
