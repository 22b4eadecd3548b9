"""Records as polls deliver them, before they have a time and a place in the sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import EventGroup, is_decodable
from streamwatch.core.fetched import APPENDED, FetchedRecords
from streamwatch.core.records import OBJECT, RecordBatch

if TYPE_CHECKING:
    from streamwatch.core.ports import Record

_ROW_BYTES: Final = 250
"""Bytes a decoded record takes in memory beside its key and value, about, as a row."""
_OBJECT_BYTES: Final = 500
"""Bytes that it takes as an object."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Records of one partition as one poll delivered them, in offset order; columns of one length.

    Attributes
    ----------
    offsets, stamps_ms
        int64; `stamps_ms` as the records carry them, in milliseconds since the epoch.
    decodable
        bool: whether the record could be decoded.
    records
        Decoded records, one for each.
    appended
        Whether the broker set the timestamps (LogAppendTime).
    size_bytes
        Approximate memory they take.
    """

    offsets: NDArray[np.int64]
    stamps_ms: NDArray[np.int64]
    decodable: NDArray[np.bool_]
    records: RecordBatch
    appended: bool = False
    size_bytes: int = 0

    def __len__(self) -> int:
        return len(self.offsets)


def arrivals_of(records: Sequence[Record], batch: RecordBatch) -> Arrivals:
    """Build `Arrivals` from the records of one partition and what they were decoded to."""
    decodable = np.ones(len(batch), np.bool_)
    held = len(batch.objects)
    if batch.objects:
        readable = np.array([is_decodable(event) for event in batch.objects], np.bool_)
        objects = np.flatnonzero(batch.rows["side"] == OBJECT)
        decodable[objects] = readable[batch.rows["object"][objects]]
        held = sum(len(event.events) if isinstance(event, EventGroup) else 1 for event in batch.objects)
    if isinstance(records, FetchedRecords):
        appended = bool(records.rows[:, APPENDED].all())
        size_bytes = records.size_bytes + _ROW_BYTES * len(batch)
    else:
        appended = all(record.timestamp_type == 1 for record in records)
        size_bytes = sum(len(record.value or b"") + len(record.key or b"") for record in records)
    return Arrivals(
        batch.rows["offset"],
        batch.rows["record_ms"],
        decodable,
        batch,
        appended=appended,
        size_bytes=size_bytes + _OBJECT_BYTES * held,
    )
