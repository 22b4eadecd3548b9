"""Positions of every partition and data loss found in its log, as a commit stores them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field

import msgspec

from streamwatch.core.buckets.results import DataLoss, total_data_loss
from streamwatch.core.join.durable.packed import reading
from streamwatch.core.merge import MergeProgress, ReleasedState
from streamwatch.core.records.events import Fingerprint, Int64, Name, Partition

POSITIONS, MERGE = "positions", "merge"
"""Names of the sections of a commit with `PositionsSection` and with the progress of the merge."""


class PartitionPosition(msgspec.Struct, frozen=True, array_like=True):
    """Position in one partition, and the fingerprint of its log."""

    topic: Name
    partition: Int64
    position: Int64
    fingerprint: Fingerprint | None = None


class DataLossTotals(msgspec.Struct, frozen=True):
    """Data loss found in the logs since the beginning of the state."""

    losses: Mapping[Name, Int64] = {}
    """Number of losses (a log was truncated, replaced, ...) by cause."""
    records_lost: Mapping[Name, Int64] = {}
    """Records known to be lost, by cause."""
    position_unverified: Int64 = 0
    """Number of times that it could not be verified that a log is the one read before."""

    def plus(self, lost: DataLoss) -> DataLossTotals:
        """Add data loss that was counted elsewhere."""
        if not lost.times:
            return self
        both = total_data_loss((DataLoss(dict(self.losses), dict(self.records_lost)), lost))
        return DataLossTotals(both.times, both.records, self.position_unverified)

    def minus(self, lost: DataLoss) -> DataLossTotals:
        """Subtract data loss that was counted elsewhere."""
        if not lost.times:
            return self
        return DataLossTotals(
            dict(Counter(self.losses) - Counter(lost.times)),
            dict(Counter(self.records_lost) - Counter(lost.records)),
            self.position_unverified,
        )


class PositionsSection(msgspec.Struct, frozen=True):
    """Positions and counts as a commit stores them."""

    partitions: list[PartitionPosition]
    counts: DataLossTotals = DataLossTotals()


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(PositionsSection)


@dataclass(frozen=True, slots=True)
class SourcePositions:
    """Positions and fingerprints of every partition, and data loss."""

    positions: Mapping[Partition, int] = field(default_factory=dict[Partition, int])
    fingerprints: Mapping[Partition, Fingerprint] = field(default_factory=dict[Partition, Fingerprint])
    counts: DataLossTotals = field(default_factory=DataLossTotals)

    def only(self, topics: Container[str]) -> SourcePositions:
        """Return a copy without partitions of other topics; the counts stay."""
        return SourcePositions(
            {p: position for p, position in self.positions.items() if p.topic in topics},
            {p: fingerprint for p, fingerprint in self.fingerprints.items() if p.topic in topics},
            self.counts,
        )

    def encode(self) -> bytes:
        """Encode for a commit."""
        partitions = [
            PartitionPosition(*partition, position, self.fingerprints.get(partition))
            for partition, position in sorted(self.positions.items())
        ]
        return _ENCODER.encode(PositionsSection(partitions, self.counts))


def decode_positions(written: bytes | None) -> SourcePositions:
    """Decode the positions of a commit (None: no positions); raises PackedError for other bytes."""
    if written is None:
        return SourcePositions()
    with reading(f"the section {POSITIONS!r}"):
        section = _DECODER.decode(written)
    by_partition = {Partition(each.topic, each.partition): each for each in section.partitions}
    return SourcePositions(
        {partition: each.position for partition, each in by_partition.items()},
        {partition: each.fingerprint for partition, each in by_partition.items() if each.fingerprint},
        section.counts,
    )


_MERGE_DECODER = msgspec.msgpack.Decoder(ReleasedState)


def encoded_progress(progress: MergeProgress) -> bytes:
    """Encode the progress of the merged sequence for a commit."""
    return _ENCODER.encode(progress.state())


def restored_progress(written: bytes | None, topics: Collection[str] | None = None) -> MergeProgress:
    """Decode the progress of the merged sequence from a commit.

    Parameters
    ----------
    written
        Section of the commit; None: progress of a new sequence.
    topics
        Topics whose partitions are kept; None: all.

    Raises
    ------
    PackedError
        If the bytes are not such a section.
    """
    if written is None:
        return MergeProgress()
    with reading(f"the section {MERGE!r}"):
        state = _MERGE_DECODER.decode(written)
    return MergeProgress.restored(state, {p.topic for p in state.partitions} if topics is None else topics)
