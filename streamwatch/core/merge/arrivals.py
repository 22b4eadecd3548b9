"""Records as polls deliver them, before they have a time and a place in the sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records import RecordBatch


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
        What each record decodes to; one for each.
    appended
        Whether the broker set the timestamps (LogAppendTime).
    size_bytes
        What they hold in memory, about.
    """

    offsets: NDArray[np.int64]
    stamps_ms: NDArray[np.int64]
    decodable: NDArray[np.bool_]
    records: RecordBatch
    appended: bool = False
    size_bytes: int = 0

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass(slots=True)
class Rows:
    """Records of any partitions, in offset order within each of them; columns of one length.

    Attributes
    ----------
    order
        int64: place of the record's partition among all, where times are equal.
    offsets, stamps_ms, arrived_ms
        int64; `arrived_ms` of a clock that never goes back.
    decodable
        bool.
    ids
        int64: where its row is kept.
    """

    order: NDArray[np.int64]
    offsets: NDArray[np.int64]
    stamps_ms: NDArray[np.int64]
    arrived_ms: NDArray[np.int64]
    decodable: NDArray[np.bool_]
    ids: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.order)

    def only(self, chosen: NDArray[Any]) -> Rows:
        """Take some rows, by mask or index."""
        return Rows(*(column[chosen] for column in self.columns()))

    def columns(self) -> tuple[NDArray[Any], ...]:
        """Name the columns in the order of the constructor."""
        return (
            self.order,
            self.offsets,
            self.stamps_ms,
            self.arrived_ms,
            self.decodable,
            self.ids,
        )


def rows_of(parts: Sequence[tuple[int, int, int, Arrivals]]) -> Rows:
    """Put together (order of the partition, time of arrival, first id, what arrived), one or more."""
    lengths = [len(arrivals) for *_, arrivals in parts]
    return Rows(
        np.repeat(np.array([order for order, *_ in parts], np.int64), lengths),
        np.concatenate([arrivals.offsets for *_, arrivals in parts]),
        np.concatenate([arrivals.stamps_ms for *_, arrivals in parts]),
        np.repeat(np.array([arrived_ms for _, arrived_ms, *_ in parts], np.int64), lengths),
        np.concatenate([arrivals.decodable for *_, arrivals in parts]),
        np.concatenate([np.arange(first, first + len(arrivals)) for *_, first, arrivals in parts]),
    )


def joined(parts: Sequence[Rows]) -> Rows:
    """Put rows behind one another; one or more."""
    if len(parts) == 1:
        return parts[0]
    return Rows(*(np.concatenate(columns) for columns in zip(*(p.columns() for p in parts), strict=True)))
