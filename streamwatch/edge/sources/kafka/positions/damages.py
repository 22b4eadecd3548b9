"""Parts of logs that could not be read, told of and passed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.batches.damage import Damage
from streamwatch.edge.sources.kafka.connection.connection import Connection
from streamwatch.edge.sources.kafka.data_loss import DataLossTracker, ReadingEnded
from streamwatch.edge.sources.kafka.fetch.taking import TurnRecords
from streamwatch.edge.sources.kafka.grants import ReadDenied
from streamwatch.edge.sources.kafka.positions.partition_positions import PartitionPositions
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.telemetry import FetchFailed, InternalEvent


class Damages:
    """Remembers damage until what came before it was evaluated.

    Parameters
    ----------
    spec
        How long a topic may be denied.
    positions
        Where reading stands.
    losses
        Counts what is passed over.
    emit
        Where internal events go.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        positions: PartitionPositions,
        losses: DataLossTracker,
        emit: Callable[[InternalEvent], None],
    ) -> None:
        self._spec = spec
        self._positions = positions
        self._losses = losses
        self._emit = emit
        self._found: Mapping[Partition, Damage] = {}

    def heed(self, taken: TurnRecords, connection: Connection) -> None:
        """Tell of what could not be read; what is damaged is passed over with the next poll.

        What came before the damage is delivered now and evaluated first: a commit in between must not count
        the damage beside a position before it.

        Raises
        ------
        ReadingEnded
            This user may not read a topic.
        """
        for partition, (error, delay) in taken.failed.items():
            self._emit(FetchFailed(*partition, connection.position(partition), error, round(delay, 3)))
        denied = {p.topic for p, seconds in taken.denied.items() if seconds > self._spec.denied_ms / 1_000}
        if denied:
            raise ReadingEnded(str(ReadDenied(sorted(denied), self._spec)))
        self._found = taken.damages

    def pass_over(self, connection: Connection) -> None:
        """Go on behind the damage that was found with the last poll.

        Raises
        ------
        ReadingEnded
            `on_data_loss` is `fail`.
        """
        damages, self._found = self._found, {}
        for partition, damage in damages.items():
            if partition in self._positions.positions:
                self._losses.unreadable(partition, damage)
                connection.seek(partition, damage.next_offset, damage.asked)
                self._positions.pass_over(partition, damage.next_offset)
