"""Topics as the job reads them: ends and offsets of moments for the driver, ranges of offsets for the tasks.

Records come through the daemon's own reading of fetch answers, not a second client: the same checksums,
bounds on what a batch may decompress to, reasons of records that cannot be read, and the same settings to
be let in.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Partition
from streamwatch.core.fetched import OFFSET
from streamwatch.edge.sources.kafka.batches.record import KafkaRecords, Piece, gathered
from streamwatch.edge.sources.kafka.connection.connection import Connection
from streamwatch.edge.sources.kafka.connection.topics import require_topics
from streamwatch.edge.sources.kafka.data_loss import DataLossTracker
from streamwatch.edge.sources.kafka.grants import ReadDenied
from streamwatch.edge.sources.kafka.spec import At, KafkaSpec
from streamwatch.spark.cuts import Range

_TURN_MS: Final = 200
PATIENCE_SECONDS: Final = 60.0
"""How long a task waits for brokers that bring nothing; then Spark tries it again."""


class RangeUnreadError(Exception):
    """Brokers did not bring the records of a range."""


@dataclass(frozen=True, slots=True)
class TopicLog:
    """Implements `cuts.Log` over one connection."""

    connection: Connection
    spec: KafkaSpec
    topics: Sequence[str]
    until: Mapping[Partition, int] | None = None
    """Ends beyond which nothing is read, be there more by now; partitions without one are not read."""

    async def partitions(self) -> Sequence[Partition]:
        """Every partition of the topics; raises TopicsMissing."""
        listing = await self.connection.listing()
        require_topics(self.topics, listing, self.spec.bootstrap_servers)
        found = [Partition(topic, number) for topic in self.topics for number in listing[topic].partitions]
        return found if self.until is None else [partition for partition in found if partition in self.until]

    async def ends(self) -> Mapping[Partition, tuple[int, int]]:
        """See `cuts.Log`."""
        ends = {partition: await self.connection.ends(partition) for partition in await self.partitions()}
        if self.until is None:
            return ends
        return {p: (min(first, self.until[p]), min(end, self.until[p])) for p, (first, end) in ends.items()}

    async def offsets_at(self, moment_ms: int) -> Mapping[Partition, int]:
        """See `cuts.Log`."""
        return await self.connection.resolve(await self.partitions(), At(moment_ms), moment_ms)


def add_rows(found: list[Piece], rows: NDArray[np.int64], data: NDArray[np.uint8]) -> None:
    """Add rows; those that point into one answer share its bytes, which are copied once."""
    if found and found[-1][1] is data:
        rows = np.concatenate([found.pop()[0], rows])
    found.append((rows, data, 0))


@dataclass(frozen=True, slots=True)
class RangeRead:
    """Records of a range in order, and what of it was not there."""

    records: KafkaRecords
    lost_times: Mapping[str, int]
    lost_records: Mapping[str, int]


async def read_range(
    connection: Connection, spec: KafkaSpec, wanted: Range, patience_seconds: float = PATIENCE_SECONDS
) -> RangeRead:
    """Read a range of offsets.

    Raises
    ------
    ReadingEnded
        The log does not hold all of it, or holds what cannot be read, and `on_data_loss` is `fail`; or this
        user may not read the topic.
    RangeUnreadError
        Brokers brought nothing for `patience_seconds`.
    CodecMissing
        Records are compressed with a codec whose package is not installed.
    """
    partition, end = wanted.partition, wanted.end
    losses = DataLossTracker(spec.on_data_loss, lambda _event: None)
    connection.assign({partition: wanted.begin})
    found: list[Piece] = []
    deadline = time.monotonic() + patience_seconds
    while connection.position(partition) < end:
        taken = await connection.take([partition], _TURN_MS)
        if partition in taken.denied:
            raise ReadDenied([partition.topic], spec)
        if (records := taken.records.get(partition)) is not None:
            inside = records.rows[records.rows[:, OFFSET] < end]
            if len(inside):
                add_rows(found, inside, records.data)
            deadline = time.monotonic() + patience_seconds
        if (damage := taken.damages.get(partition)) is not None:
            losses.unreadable(partition, damage)
            connection.seek(partition, damage.next_offset, damage.asked)
        if partition in taken.out_of_range:
            first, last = await connection.ends(partition)
            position = connection.position(partition)
            if position >= first:  # the log ends before what was there when the batch was cut
                losses.truncated(partition, position, last)
                break
            losses.overtaken(partition, position, min(first, end))
            connection.seek(partition, first)
        if time.monotonic() > deadline:
            raise RangeUnreadError(
                f"{partition.topic}/{partition.partition}: expected records up to offset {end - 1} from "
                f"{spec.bootstrap_servers}, got none after {connection.position(partition) - 1} for "
                f"{patience_seconds:g} s"
            )
    return RangeRead(gathered(partition, found), dict(losses.times), dict(losses.records))
