"""What a poll tells of every partition: where reading stands, where the log ends, whether it is caught up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from streamwatch.core.events import Partition
from streamwatch.core.ports import PartitionState
from streamwatch.edge.sources.kafka.connection.broker_health import BrokerHealth
from streamwatch.edge.sources.kafka.connection.connection import Connection

LOOK_SECONDS = 0.1
"""How old what a poll tells of a partition that did not deliver may be, while others deliver."""


class PartitionStatus:
    """Keeps what is known of partitions that need not be looked at in each poll.

    Parameters
    ----------
    health
        Knows when each partition was last fetched.
    grace_ms
        A partition is caught up only by a fetch newer than this.
    monotonic
        Seconds that never go back.
    """

    def __init__(self, health: BrokerHealth, grace_ms: float, monotonic: Callable[[], float]) -> None:
        self._health = health
        self._grace_ms = grace_ms
        self._monotonic = monotonic
        self._latest: dict[Partition, PartitionState] = {}
        self._look_at_all = 0.0

    def clear(self) -> None:
        """Partitions or their positions changed at once."""
        self._latest, self._look_at_all = {}, 0.0

    def worth_a_look(
        self, delivered: Collection[Partition], positions: Mapping[Partition, int]
    ) -> Collection[Partition]:
        """Partitions of which a poll may bring news: those that delivered, and now and then all of them."""
        now = self._monotonic()
        if delivered and now < self._look_at_all:
            return delivered
        self._look_at_all = now + LOOK_SECONDS
        return list(positions)

    def after(
        self, looked_at: Collection[Partition], positions: Mapping[Partition, int], connection: Connection
    ) -> Mapping[Partition, PartitionState]:
        """Every partition after a poll that looked at these."""
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
        """These partitions now."""
        states: dict[Partition, PartitionState] = {}
        for partition in partitions:
            position = positions[partition]
            highwater = -1 if connection is None else connection.last_fetch(partition)[0]
            caught_up = highwater == position and self._health.fetched_within(partition, self._grace_ms)
            # A leader that has just restarted may answer with a high watermark it has yet to recover.
            shown = max(highwater, position) if highwater >= 0 else -1
            at_end_ms = None if connection is None else connection.at_end_ms(partition, position)
            states[partition] = PartitionState(position, shown, caught_up, at_end_ms)
        return states
