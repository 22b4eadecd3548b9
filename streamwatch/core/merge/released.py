"""A stretch of the sequence: records in order, with the clock at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Partition
from streamwatch.core.merge.queues import IN_ORDER, NO_PLACE
from streamwatch.core.records import RecordBatch, no_records, rows_of, words_of

__all__ = ["CONTINUED", "IN_ORDER", "NO_PLACE", "Released", "together"]

CONTINUED: Final = -3
"""Instead of its lateness: the row is of the same record as the next one, which says it of both."""


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
        or `NO_PLACE`: it came after a later one, but could not be decoded and has no time that it could miss;
        or `CONTINUED`.
    reasons
        uint8: why its timestamp was corrected (`timestamps.REASONS`), or 0.
    events, tied
        int64: events that the record holds, 0 if it was skipped, and predictions among them whose class was
        one of several with the largest score. Of a record that has several rows, all are told at its last.
        None where every record holds one event, and no class was tied.
    """

    records: RecordBatch
    partitions: Sequence[Partition]
    places: NDArray[np.int64]
    offsets: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    clock_ms: NDArray[np.int64]
    lateness_ms: NDArray[np.int64]
    reasons: NDArray[np.uint8]
    events: NDArray[np.int64] | None = None
    tied: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.records)

    def end_of_record(self, stop: int) -> int:
        """Give the first place, from `stop` on, before which a record ends."""
        if stop < len(self):
            while self.lateness_ms[stop - 1] == CONTINUED:
                stop += 1
        return min(stop, len(self))

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
            None if self.events is None else self.events[start:stop],
            None if self.tied is None else self.tied[start:stop],
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
            last.topics,
        ),
        parts[0].partitions,
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        np.concatenate([part.times_ms for part in parts]),
        np.concatenate([part.clock_ms for part in parts]),
        np.concatenate([part.lateness_ms for part in parts]),
        np.concatenate([part.reasons for part in parts]),
    )
