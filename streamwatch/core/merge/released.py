"""A stretch of the sequence: records in order, with the clock at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Partition
from streamwatch.core.merge.queues import IN_ORDER, NO_PLACE
from streamwatch.core.records import RecordBatch, no_records, rows_of, words_of

__all__ = ["IN_ORDER", "NO_PLACE", "Released", "together"]


@dataclass(frozen=True, slots=True)
class Released:
    """Records whose turn it is; columns of one length.

    Attributes
    ----------
    records
        What they decode to, with the clock at each of them.
    partitions
        Those that `places` are indices of.
    places
        int64: which partition each record is of.
    offsets, times_ms
        int64: offset, and time in its partition.
    clock_ms
        int64: the clock at each record, in milliseconds since the epoch; not decreasing.
    lateness_ms
        int64: by how much the clock had passed the record's time when it came after a later one; `IN_ORDER`;
        or `NO_PLACE`: it came after a later one, but could not be decoded and has no time that it could miss.
    reasons
        uint8: why its timestamp was corrected (`timestamps.REASONS`), or 0.
    """

    records: RecordBatch
    partitions: Sequence[Partition]
    places: NDArray[np.int64]
    offsets: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    clock_ms: NDArray[np.int64]
    lateness_ms: NDArray[np.int64]
    reasons: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.records)

    def part(self, start: int, stop: int) -> Released:
        """Take the records from `start` up to `stop`."""
        return Released(
            self.records.part(start, stop),
            self.partitions,
            self.places[start:stop],
            self.offsets[start:stop],
            self.times_ms[start:stop],
            self.clock_ms[start:stop],
            self.lateness_ms[start:stop],
            self.reasons[start:stop],
        )


def together(parts: Sequence[Released]) -> Released:
    """Put stretches of the sequence behind one another that were released together."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none, codes = np.empty(0, np.int64), np.empty(0, np.uint8)
        return Released(no_records(), (), none, none, none, none, none, codes)
    last = parts[-1].records
    return Released(
        RecordBatch(
            rows_of(np.concatenate([words_of(part.records.rows) for part in parts])),
            last.texts,
            last.objects,
            last.vocabulary,
        ),
        parts[0].partitions,
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        np.concatenate([part.times_ms for part in parts]),
        np.concatenate([part.clock_ms for part in parts]),
        np.concatenate([part.lateness_ms for part in parts]),
        np.concatenate([part.reasons for part in parts]),
    )
