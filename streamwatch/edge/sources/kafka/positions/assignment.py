"""Which partitions a connection reads, as topics change."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.background_tasks import BackgroundTasks
from streamwatch.edge.sources.kafka.connection.connection import Connection
from streamwatch.edge.sources.kafka.connection.topics import require_topics
from streamwatch.edge.sources.kafka.fetch.wire import Listing
from streamwatch.edge.sources.kafka.positions.partition_positions import PartitionPositions
from streamwatch.edge.sources.kafka.positions.partition_status import PartitionStatus
from streamwatch.edge.sources.kafka.spec import KafkaSpec


class Assignment:
    """Assigns every partition of the topics, and others when the topics are no longer the same.

    Parameters
    ----------
    spec
        How long to wait for what.
    topics
        Those that have to exist.
    positions
        Where reading stands; it tells a log from another.
    status
        What is known of partitions as they are read.
    background
        Lists topics now and then.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        topics: Sequence[str],
        positions: PartitionPositions,
        status: PartitionStatus,
        background: BackgroundTasks,
    ) -> None:
        self._spec = spec
        self._topics = topics
        self._positions = positions
        self._status = status
        self._background = background
        self._changes_settled = 0

    async def settle(self, connection: Connection, listing: Listing) -> None:
        """Read over this connection from where reading stands.

        Raises
        ------
        TopicsMissing
            A topic does not exist.
        ReadingEnded
            A log is not the one that was read, and `on_data_loss` is `fail`.
        """
        self._require_topics(listing)
        await self._positions.settle(connection, listing)
        self._assign(connection)

    async def tend(self, connection: Connection) -> frozenset[Partition]:
        """Check topics for changes between two polls; gives the partitions whose log may have changed.

        Raises
        ------
        TopicsMissing, ReadingEnded
            As from `settle`.
        """
        suspect_partitions = self._suspect_partitions(connection)
        fresh = self._background.tend(connection, suspect=bool(suspect_partitions))
        if len(suspect_partitions) == len(self._positions.positions) and fresh is None:
            await self._background.listed(self._spec.poll_timeout_ms / 1_000)
            fresh = self._background.tend(connection, suspect=False)
        if fresh is not None:
            self._require_topics(fresh.listing)
            if await self._positions.revise(connection, fresh.listing):
                self._assign(connection)
            self._changes_settled = max(self._changes_settled, fresh.change_signals)
        return self._suspect_partitions(connection)

    async def go_on_nearby(self, connection: Connection, refused: Sequence[Partition]) -> None:
        """Logs do not hold the next offset: go on at the nearest that they hold, or in new ones.

        Raises
        ------
        TopicsMissing, ReadingEnded
            As from `settle`.
        """
        listing = await connection.listing()
        self._require_topics(listing)
        await self._positions.nearby(connection, listing, refused)
        for partition in refused:
            connection.seek(partition, self._positions.positions[partition])
        self._status.clear()

    def _assign(self, connection: Connection) -> None:
        connection.assign(self._positions.positions)
        self._changes_settled = connection.change_signals.latest
        self._status.clear()

    def _suspect_partitions(self, connection: Connection) -> frozenset[Partition]:
        if connection.change_signals.latest == self._changes_settled:
            return frozenset()
        topics = {t for t in self._topics if connection.change_signals.about(t, self._changes_settled)}
        return frozenset(p for p in self._positions.positions if p.topic in topics)

    def _require_topics(self, listing: Listing) -> None:
        require_topics(self._topics, listing, self._spec.bootstrap_servers)
