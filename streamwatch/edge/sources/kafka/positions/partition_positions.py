"""Where reading stands in every partition, and whether the logs are still those in which it stands there."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from aiokafka.errors import StaleMetadata

from streamwatch.core.events import Fingerprint, Mark, Partition
from streamwatch.edge.sources.kafka.connection.connection import Connection
from streamwatch.edge.sources.kafka.data_loss import DataLossTracker, Found, Kinship, judge
from streamwatch.edge.sources.kafka.fetch.wire import Listed, Listing
from streamwatch.edge.sources.kafka.positions.fingerprints import Fingerprints, mark_of
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.telemetry import InternalEvent, PartitionsAdded

PROBES = 32
"""Records asked for at once; each brings one batch."""


class PartitionPositions:
    """Positions and fingerprints, kept true to a changing cluster.

    A change is looked for at each new connection and in each listing: by the topics' ids, and by fetching a
    remembered record where connections are new or ids unknown. A step that fails has moved nothing by halves:
    it is repeated on the next connection.

    Parameters
    ----------
    spec
        Where to begin what has no position.
    topics
        Those that are read.
    losses
        Told what was lost; may refuse.
    emit
        Where internal events go.
    wall
        Seconds since the epoch, for `start_from: -2h` alone.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        topics: Sequence[str],
        losses: DataLossTracker,
        emit: Callable[[InternalEvent], None],
        wall: Callable[[], float],
    ) -> None:
        self._spec = spec
        self._topics = topics
        self._losses = losses
        self._emit = emit
        self._wall = wall
        self._origins: dict[Partition, int] = {}
        self._former_ids: set[str] = set()
        self._moved: set[Partition] = set()
        self.positions: dict[Partition, int] = {}
        self.fingerprints = Fingerprints()

    def replace(
        self, positions: Mapping[Partition, int], fingerprints: Mapping[Partition, Fingerprint]
    ) -> None:
        """Stand where a store says; partitions unknown to it stand where they began."""
        given = {p: position for p, position in positions.items() if p.topic in self._topics}
        self.positions = self._origins | given
        self._moved.clear()
        self.fingerprints.replace({p: fingerprints[p] for p in given if p in fingerprints})

    def pass_over(self, partition: Partition, resumed: int) -> None:
        """Stand behind what cannot be read."""
        self.positions[partition] = resumed
        self._moved.add(partition)

    def take_moved(self) -> frozenset[Partition]:
        """Name the partitions whose logs were found changed since the last call."""
        moved = frozenset(self._moved)
        self._moved.clear()
        return moved

    def tell(self) -> None:
        """A poll tells where reading stands: what was found of the logs until now may be told with it."""
        self.fingerprints.told()
        self._losses.tell()

    async def settle(self, connection: Connection, listing: Listing) -> None:
        """Find a place in every partition of a cluster that was away or may have changed meanwhile."""
        self._heed(listing)
        begun = {p.topic for p in self.positions}
        new = [Partition(t, n) for t in self._topics if t not in begun for n in listing[t].partitions]
        found = await connection.resolve(new, self._spec.start_from, round(self._wall() * 1_000))
        self._origins |= found
        self.positions |= found
        await self._verify(connection, listing, [p for p in self.positions if self._there(p, listing)])
        self._match(listing)

    async def revise(self, connection: Connection, listing: Listing) -> bool:
        """Compare a listing with what is being read; whether there is something else to read now."""
        self._heed(listing)
        unsure = [p for p in self.positions if self._there(p, listing) and self._kin(p, listing) != "same"]
        moved = await self._verify(connection, listing, unsure)
        return self._match(listing) or moved

    async def nearby(self, connection: Connection, listing: Listing, refused: Collection[Partition]) -> None:
        """Brokers do not have these positions: stand at the nearest offsets they have, or begin a new log."""
        self._heed(listing)
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

    def _heed(self, listing: Listing) -> None:
        """Brokers learn of changes in turn; one that still lists a topic's former self is not believed."""
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
        """Judge the logs of these by topic id and remembered records; whether any position moved."""
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
        """What stands where remembered records stood, the newest first, until that decides."""
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
        if not found and kin != "other":  # nothing of it was ever delivered
            self.fingerprints.belong(partition, listed.topic_id)
            return False
        verdict = judge(kin, list(found.values()))
        if verdict in ("intact", "unverified"):
            if verdict == "unverified":
                self._losses.unverified(partition, next(iter(found)).offset)
            self.fingerprints.belong(partition, listed.topic_id)
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
        """Take up partitions that topics got since, from their beginning; give up those that are gone."""
        there = {Partition(t, n) for t in self._topics for n in listing[t].partitions}
        for partition in sorted(self.positions.keys() - there):
            if self._kin(partition, listing) == "same":
                continue  # a topic never shrinks: this broker has yet to learn that it grew
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
            self.fingerprints.belong(partition, listing[partition.topic].topic_id)
        return bool(added)
