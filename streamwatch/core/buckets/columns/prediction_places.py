"""Places of accepted predictions in the sequence, by number, as long as they may be pending."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.durable.packed import pack_columns, unpack_columns
from streamwatch.core.join.compiled.layout import NUMBER_BITS

PLACE_COLUMNS: Final = ("time_ms", "partition", "offset", "event")
"""Columns of places; `partition` is the bucket's number of the partition."""
_LEAST: Final = 1_024


class PredictionPlacesState(msgspec.Struct, array_like=True, frozen=True):
    """State of the places of pending predictions."""

    accepted: int
    columns: bytes
    """Numbers of the predictions, and columns `PLACE_COLUMNS`."""


class PredictionPlaces:
    """Places of predictions, int64, in the order of acceptance.

    All are kept from the oldest pending prediction on, including those resolved in between.
    """

    __slots__ = ("_columns", "_first", "accepted")

    def __init__(self) -> None:
        self._columns = np.zeros((_LEAST, len(PLACE_COLUMNS)), np.int64)
        self._first = 1
        """Number of the first prediction kept."""
        self.accepted = 0
        """Number of the prediction accepted last."""

    def __len__(self) -> int:
        return self.accepted + 1 - self._first

    def add(self, places: NDArray[np.int64]) -> None:
        """Add the places of the predictions accepted next, shape (n, 4)."""
        count = len(self)
        self._make_room(count + len(places))
        self._columns[count : count + len(places)] = places
        self.accepted += len(places)

    def of(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """Places of predictions by their numbers modulo 2³¹, shape (n, 4)."""
        return self._columns.take(self._whole(numbers) - self._first, axis=0)

    def forget_before(self, oldest: int | None) -> None:
        """Drop predictions before number `oldest` (modulo 2³¹), the oldest pending one; None drops all."""
        first = self.accepted + 1
        if oldest is not None:
            first = int(self._whole(np.array([oldest], np.int32))[0])
        gone = first - self._first
        if gone > len(self) - gone:  # only if less is moved than is dropped
            left = self._columns[gone : len(self)].copy()
            self._columns = left if len(left) >= _LEAST else np.zeros((_LEAST, len(PLACE_COLUMNS)), np.int64)
            self._columns[: len(left)] = left
            self._first = first

    def state(self, pending: NDArray[np.int32]) -> tuple[PredictionPlacesState, NDArray[np.int32]]:
        """State from which `restore` continues, and the sorted numbers of these pending predictions."""
        whole = np.sort(self._whole(pending))
        places = self._columns.take(whole - self._first, axis=0)
        return PredictionPlacesState(self.accepted, pack_columns([whole, *places.T])), _short(whole)

    def restore(self, state: PredictionPlacesState) -> NDArray[np.int32]:
        """Continue from a state, and return the sorted numbers of pending predictions."""
        packed = unpack_columns(state.columns, 1 + len(PLACE_COLUMNS))
        whole, *places = (column.astype(np.int64) for column in packed)
        self.accepted = state.accepted
        self._first = int(whole[0]) if len(whole) else state.accepted + 1
        self._make_room(len(self))
        self._columns[whole - self._first] = np.stack(places, axis=1)
        return _short(whole)

    def _whole(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        return self.accepted - ((self.accepted - numbers.astype(np.int64)) & NUMBER_BITS)

    def _make_room(self, count: int) -> None:
        if count > len(self._columns):
            longer = np.zeros((max(count, 2 * len(self._columns)), len(PLACE_COLUMNS)), np.int64)
            longer[: len(self._columns)] = self._columns
            self._columns = longer


def _short(whole: NDArray[np.int64]) -> NDArray[np.int32]:
    return (whole & NUMBER_BITS).astype(np.int32)
