"""`FetchedRecords`: records as they were fetched, positions in one buffer.

Objects are built only for records that are accessed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from streamwatch.core.ports import Record

COLUMNS: Final = 10
OFFSET, TIMESTAMP, KEY, KEY_BYTES, VALUE, VALUE_BYTES, HEADERS, HEADER_COUNT, FAULT, APPENDED = range(COLUMNS)
"""Columns of a row: positions are indexes into the data, lengths are -1 for null.

FAULT is 0 for a record that can be read. HEADERS is the position of the first header: length and bytes of its
name, then of its value; lengths are varints with the sign in the lowest bit. APPENDED is 1 if the broker set
the timestamp.
"""

PADDING: Final = 64
"""Number of zero bytes after the data, so that many bytes can be read at once at its end."""


class FetchedRecords(Sequence["Record"]):
    """Records of one partition in offset order.

    Parameters
    ----------
    data
        uint8: bytes that the rows point into, then `PADDING` zeros.
    rows
        int64, shape (n, COLUMNS).
    """

    __slots__ = ("data", "rows")

    def __init__(self, data: NDArray[np.uint8], rows: NDArray[np.int64]) -> None:
        self.data = data
        self.rows = rows

    @abstractmethod
    def record(self, row: int) -> Record:
        """Build the object of one record."""

    @abstractmethod
    def part(self, rows: NDArray[np.int64]) -> Self:
        """Take some of the rows, over the same data."""

    @abstractmethod
    def over(self, data: NDArray[np.uint8], rows: NDArray[np.int64]) -> Self:
        """Build records of the same partition over other data."""

    @property
    def sizes_bytes(self) -> NDArray[np.int64]:
        """Bytes of key and value of each record: int64, shape (n,)."""
        sizes: NDArray[np.int64] = np.maximum(self.rows[:, KEY_BYTES], 0)
        sizes += np.maximum(self.rows[:, VALUE_BYTES], 0)  # a sum over an axis of two takes longer
        return sizes

    @property
    def size_bytes(self) -> int:
        """Bytes of keys and values."""
        return int(self.sizes_bytes.sum())

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Record | Self:
        if isinstance(index, slice):
            return self.part(self.rows[index])
        count = len(self.rows)
        if not -count <= index < count:
            raise IndexError(f"record {index} of {count}")
        return self.record(index % count)
