"""Counts of the predictions that each model had made at every outcome (`Outcome.made`).

Predictions of a model are accepted in all id buckets, and its outcomes are evaluated in a model bucket. So id
buckets send the positions of accepted predictions, and the model bucket counts those up to each outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.contract import DUE
from streamwatch.core.buckets.pieces import NameNumbers
from streamwatch.core.jit import entry, hot
from streamwatch.core.join.durable.columns import (
    PackedError,
    pack_columns,
    steps_within,
    unpack_columns,
    values_within,
)
from streamwatch.core.join.layout import NUMBER_BITS
from streamwatch.core.records.events import Name

# Positions of accepted predictions in the sequence, by number, as long as they may be pending.


POSITION_COLUMNS: Final = ("time_ms", "partition", "offset", "event")
"""Columns of positions; `partition` is the id bucket's number of the partition, in model buckets its rank."""
_LEAST: Final = 1_024


class PredictionPositionsState(msgspec.Struct, array_like=True, frozen=True):
    """State of the positions of pending predictions."""

    accepted: int
    columns: bytes
    """Numbers of the predictions, and columns `POSITION_COLUMNS`."""


class PredictionPositions:
    """Positions of predictions, int64, in the order of acceptance.

    All are kept from the oldest pending prediction on, including those resolved in between.
    """

    __slots__ = ("_columns", "_first", "accepted")

    def __init__(self) -> None:
        self._columns = np.zeros((_LEAST, len(POSITION_COLUMNS)), np.int64)
        self._first = 1
        """Number of the first prediction kept."""
        self.accepted = 0
        """Number of the prediction accepted last."""

    def __len__(self) -> int:
        return self.accepted + 1 - self._first

    def add(self, positions: NDArray[np.int64]) -> None:
        """Add the positions of the predictions accepted next, shape (n, 4)."""
        count = len(self)
        self._make_room(count + len(positions))
        self._columns[count : count + len(positions)] = positions
        self.accepted += len(positions)

    def of(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """Positions of predictions by their numbers modulo 2³¹, shape (n, 4)."""
        return self._columns.take(self._whole(numbers) - self._first, axis=0)

    def forget_before(self, oldest: int | None) -> None:
        """Drop predictions before number `oldest` (modulo 2³¹), the oldest pending one; None drops all.

        They are kept until most of all are dropped, so that no more is copied than dropped.
        """
        first = self.accepted + 1
        if oldest is not None:
            first = int(self._whole(np.array([oldest], np.int32))[0])
        gone = first - self._first
        if gone > len(self) - gone:
            left = self._columns[gone : len(self)].copy()
            self._columns = (
                left if len(left) >= _LEAST else np.zeros((_LEAST, len(POSITION_COLUMNS)), np.int64)
            )
            self._columns[: len(left)] = left
            self._first = first

    def state(self, pending: NDArray[np.int32]) -> tuple[PredictionPositionsState, NDArray[np.int32]]:
        """State from which `restore` continues, and the sorted numbers of these pending predictions."""
        whole = np.sort(self._whole(pending))
        positions = self._columns.take(whole - self._first, axis=0)
        return PredictionPositionsState(self.accepted, pack_columns([whole, *positions.T])), _short(whole)

    def restore(self, state: PredictionPositionsState) -> NDArray[np.int32]:
        """Continue from a state, and return the sorted numbers of pending predictions.

        Raises
        ------
        PackedError
            If it is not what `state` returns.
        """
        packed = unpack_columns(state.columns, 1 + len(POSITION_COLUMNS))
        whole, *positions = (column.astype(np.int64) for column in packed)
        if len(whole):
            least = max(1, state.accepted - NUMBER_BITS)
            if not (least <= whole[0] and (np.diff(whole) > 0).all() and whole[-1] <= state.accepted):
                raise PackedError(f"expected ascending numbers of {state.accepted} predictions, got others")
        self.accepted = state.accepted
        self._first = int(whole[0]) if len(whole) else state.accepted + 1
        self._make_room(len(self))
        self._columns[whole - self._first] = np.stack(positions, axis=1)
        return _short(whole)

    def _whole(self, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        return self.accepted - ((self.accepted - numbers.astype(np.int64)) & NUMBER_BITS)

    def _make_room(self, count: int) -> None:
        if count > len(self._columns):
            longer = np.zeros((max(count, 2 * len(self._columns)), len(POSITION_COLUMNS)), np.int64)
            longer[: len(self._columns)] = self._columns
            self._columns = longer


def _short(whole: NDArray[np.int64]) -> NDArray[np.int32]:
    return (whole & NUMBER_BITS).astype(np.int32)


_COLUMNS: Final = 5
"""Columns packed: model, time, partition, offset and event."""
_WRAP: Final = 2**32
_NOWHERE: Final = np.zeros((0, len(POSITION_COLUMNS)), np.int64)


class PackedPredictions(msgspec.Struct, array_like=True, frozen=True):
    """Accepted predictions of one batch as bytes, in the order of their positions.

    Each time is stored as the difference from the previous one, each offset as that from the previous one of
    its partition.
    """

    columns: bytes = b""
    models: Sequence[Name] = ()
    ranks: Sequence[int] = ()
    """Rank of each partition, by its number in the columns."""
    first_offsets: Sequence[int] = ()
    """First offset of each partition."""
    first_ms: int = 0
    """Time of the first prediction."""

    def unpacked(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Unpack models, shape (n,), and positions, columns `POSITION_COLUMNS` with ranks, (n, 4).

        Raises
        ------
        PackedError
            If the bytes are not packed columns, or a number has no name or partition.
        """
        if not self.columns:
            return np.zeros(0, np.int32), _NOWHERE
        models, times, partitions, offsets, events = (
            column.astype(np.int64) for column in unpack_columns(self.columns, _COLUMNS)
        )
        known = len(self.ranks), len(self.first_offsets)
        for numbers, most in ((models, len(self.models)), (partitions, min(known))):
            if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < most:
                raise PackedError(f"expected numbers below {most} of accepted predictions, got others")
        positions = np.empty((len(models), len(POSITION_COLUMNS)), np.int64)
        positions[:, 0] = self.first_ms + np.cumsum(times)
        positions[:, 1] = np.array(self.ranks, np.int64)[partitions]
        first = np.array(self.first_offsets, np.int64)
        positions[:, 2] = values_within(partitions.astype(np.int32), first, offsets)
        positions[:, 3] = events
        return models.astype(np.int32), positions


class AcceptedPredictions:
    """Accepted predictions of one batch in an id bucket; those of a model bucket are selected from them."""

    def __init__(self) -> None:
        self._names = NameNumbers()
        self._models: list[NDArray[np.int32]] = []
        self._positions: list[NDArray[np.int64]] = []

    @property
    def models(self) -> Sequence[str]:
        """Names of their models."""
        return list(self._names.by_name)

    def add(self, models: NDArray[np.int32], names: Sequence[str], positions: NDArray[np.int64]) -> None:
        """Add predictions, with the numbers of their models in `names`, and their positions, (n, 4)."""
        self._models.append(self._names.of(models, names))
        self._positions.append(positions)

    def of(self, chosen: NDArray[np.bool_], ranks: Sequence[int]) -> PackedPredictions:
        """Pack the predictions of some models; the mask is by index in `models`.

        `ranks` has the rank of each partition, by its number in positions.
        """
        if not self._models:
            return PackedPredictions()
        models = np.concatenate(self._models)
        own = chosen[models]
        if not own.any():
            return PackedPredictions()
        names = NameNumbers()
        numbers = names.of(models[own], self.models).astype(np.int64)
        times, at, offsets, events = np.concatenate(self._positions)[own].T.copy()
        used, partitions = np.unique(at, return_inverse=True)
        first, steps = steps_within(partitions.astype(np.int32), offsets)
        passed = np.diff(times, prepend=times[0])
        packed = pack_columns((numbers, passed, partitions.astype(np.int64), steps, events))
        return PackedPredictions(
            packed,
            list(names.by_name),
            [ranks[number] for number in used.tolist()],
            first.tolist(),
            int(times[0]),
        )


class MadeCounts:
    """Counts of the predictions of each model of a model bucket, up to a position that only advances."""

    def __init__(self) -> None:
        self.by_model: dict[str, int] = {}
        """Number by model before the batch."""
        self.begin((), ())

    def begin(self, parts: Iterable[PackedPredictions], models: Sequence[str]) -> None:
        """Begin a batch with the predictions that id buckets accepted; `models` are those of its outcomes."""
        names = NameNumbers()
        own = np.array([names[model] for model in models], np.int32)
        found = [(each.unpacked(), each.models) for each in parts]
        numbers = [names.of(of, models_there) for (of, _), models_there in found]
        positions = np.concatenate([_NOWHERE, *(at for (_, at), _ in found)])
        models_of = np.concatenate([np.zeros(0, np.int32), *numbers])
        order = np.lexsort(positions.T[::-1])
        self._accepted = np.column_stack([positions, models_of]).take(order, axis=0)
        """Positions of the batch's predictions, ascending, and numbers of their models, (n, 5)."""
        self._at = 0
        self._names = names
        self._own = own
        self._counts = np.array([self.by_model.get(name, 0) for name in names.by_name], np.int64)

    def of(
        self, models: NDArray[np.int32], resolved: NDArray[np.int64], kinds: NDArray[np.int64]
    ) -> NDArray[np.uint32]:
        """Count the predictions accepted up to the next outcomes.

        Parameters
        ----------
        models
            Numbers in the `models` of `begin`, shape (n,); -1 for none.
        resolved, kinds
            Positions of the resolutions, ascending, columns `id_join.RESOLUTION` with ranks, (n, 5); kinds of
            the positions, `DUE` or `RECORD`, (n,).

        Returns
        -------
        numpy.ndarray
            Counts modulo 2³², (n,); 0 without a model.
        """
        made = np.zeros(len(models), np.uint32)
        numbers = np.append(self._own, np.int32(-1))[models]
        self._at = count_up_to(self._counts, self._accepted, self._at, numbers, resolved, kinds, made)
        return made

    def retire(self, models: Sequence[str], clock_ms: int) -> None:
        """Reset the counts of models that are idle at `clock_ms`."""
        stop = int(np.searchsorted(self._accepted[:, 0], clock_ms, "left"))
        self._pass(max(stop, self._at))
        for model in models:
            self.by_model.pop(model, None)
            number = self._names.by_name.get(model)
            if number is not None:
                self._counts[number] = 0

    def end(self) -> None:
        """End the batch: count the rest of its predictions."""
        self._pass(len(self._accepted))
        for name, count in zip(self._names.by_name, self._counts.tolist(), strict=True):
            if count:
                self.by_model[name] = count % _WRAP

    def _pass(self, stop: int) -> None:
        """Count the predictions before index `stop`."""
        np.add.at(self._counts, self._accepted[self._at : stop, -1], 1)
        self._at = stop


@hot
def is_up_to(accepted: Any, at: Any, resolved: Any, kinds: Any, k: Any) -> Any:
    """Return whether a prediction's position is before that of a resolution, or the same."""
    if accepted[at, 0] != resolved[k, 0]:
        return accepted[at, 0] < resolved[k, 0]
    if kinds[k] == DUE:
        return False
    for column in range(1, 4):
        if accepted[at, column] != resolved[k, column]:
            return accepted[at, column] < resolved[k, column]
    return True


@entry
def count_up_to(
    counts: Any, accepted: Any, at: int, models: Any, resolved: Any, kinds: Any, made: Any
) -> int:
    """Count accepted predictions up to each of the next outcomes; return the index after the last counted.

    Parameters
    ----------
    counts
        int64 (models,): predictions of each model so far; changed.
    accepted
        int64 (n, 5): positions of accepted predictions, ascending, and numbers of their models.
    at
        Number of accepted predictions counted already.
    models, resolved, kinds
        int32 (m,), int64 (m, 5), int64 (m,): outcomes in order, see `MadeCounts.of`.
    made
        uint32 (m,), output: predictions of the outcome's model.
    """
    for k in range(models.shape[0]):
        while at < accepted.shape[0] and is_up_to(accepted, at, resolved, kinds, k):
            counts[accepted[at, 4]] += 1
            at += 1
        if models[k] >= 0:
            made[k] = np.uint32(counts[models[k]] & 0xFFFFFFFF)
    return at


def counts_of(state: Mapping[str, int]) -> MadeCounts:
    """Restore the counts of a state, by model."""
    counts = MadeCounts()
    counts.by_model = dict(state)
    return counts
