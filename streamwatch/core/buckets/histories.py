"""Histories of the labels of models: the last one before a prediction was accepted is looked up here.

The labels of a model are known only where its outcomes of all ids come together, while predictions are
accepted in id buckets. So an outcome carries the position of its prediction. A history reaches back as far as
a prediction may be pending.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.id_join import RESOLUTION
from streamwatch.core.buckets.made import POSITION_COLUMNS, MadeCounts
from streamwatch.core.jit import entry, hot
from streamwatch.core.join.durable.columns import pack_columns, unpack_columns
from streamwatch.core.join.durable.totals import Stream
from streamwatch.core.records.batch import Records
from streamwatch.core.records.events import SEPARATOR, Name, model_of

# Compiled search for the label known at each prediction, in the history of its model's last label.


@hot
def is_before(history: Any, n: int, accepted: Any, k: int) -> Any:
    """Return whether a change's position is before that of a prediction."""
    for column in range(4):
        if history[n, column] != accepted[k, column]:
            return history[n, column] < accepted[k, column]
    return False


@entry
def look_up(history: Any, count: int, accepted: Any, resolved: Any, labels: Any, known: Any) -> int:
    """Find the label known at each prediction, and add each label that resolved one to the history, in order.

    Parameters
    ----------
    history
        int64 (capacity, 6): positions and labels of changes, oldest first; space for one more per outcome.
    count
        Number of changes.
    accepted
        int64 (n, 4): positions of the predictions.
    resolved
        int64 (n, 5): positions of their resolutions, ascending.
    labels
        int64 (n,): labels that resolved them; -1 for assumed outcomes, which change nothing.
    known
        int64 (n,), output: labels known at prediction; -1 if none was known.

    Returns
    -------
    int
        New number of changes.
    """
    low = count
    for k in range(accepted.shape[0]):
        # Predictions are mostly resolved in their order: the search widens from where the last one ended.
        step = 1
        while low > 0 and not is_before(history, low - 1, accepted, k):
            low = max(0, low - step)
            step *= 2
        step = 1
        high = low
        while high < count and is_before(history, high, accepted, k):
            low = high + 1
            high = min(count, high + step)
            step *= 2
        while low < high:  # number of changes before the prediction
            middle = (low + high) // 2
            if is_before(history, middle, accepted, k):
                low = middle + 1
            else:
                high = middle
        known[k] = history[low - 1, 5] if low > 0 else -1
        if labels[k] >= 0 and (count == 0 or history[count - 1, 5] != labels[k]):
            for column in range(5):
                history[count, column] = resolved[k, column]
            history[count, 5] = labels[k]
            count += 1
    return count


_COLUMNS: Final = 6
"""Number of columns: time, rank, offset, event and number of the position, and the label."""
_LEAST: Final = 16
_MIN_NAMES: Final = 65_536


class _State(msgspec.Struct, array_like=True, frozen=True):
    columns: dict[Name, bytes]
    """Packed columns by model."""
    names: list[Name]
    """Labels by their numbers in the columns."""


_ENCODER: Final = msgspec.msgpack.Encoder()
_STATE: Final = msgspec.msgpack.Decoder(_State)


class ColumnHistories:
    """Histories of all models, by name; labels are numbered."""

    __slots__ = ("_by_model", "_counts", "_crowded", "_names", "_numbers")

    def __init__(self) -> None:
        self._crowded = _MIN_NAMES
        self._by_model: dict[str, NDArray[np.int64]] = {}
        self._counts: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def numbers(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Numbers of labels, shape (n,)."""
        return np.array([self._number(name) for name in names], np.int32)

    @property
    def names(self) -> list[str]:
        """Labels by number."""
        return self._names

    def look_up(
        self,
        model: str,
        accepted: NDArray[np.int64],
        resolved: NDArray[np.int64],
        labels: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Find the label known at each of a model's predictions, and add the labels that resolved them.

        Parameters
        ----------
        model
            Name of the model.
        accepted
            Positions of the predictions: time, rank, offset and event, shape (n, 4).
        resolved
            Positions of their resolutions, in this order: the same and the number of the event's outcome,
            shape (n, 5).
        labels
            Numbers of the labels, shape (n,); -1 for assumed ones.

        Returns
        -------
        numpy.ndarray
            Numbers of the labels known at prediction, shape (n,); -1 where none was known.
        """
        count = self._counts.get(model, 0)
        history = self._by_model.get(model, np.zeros((0, _COLUMNS), np.int64))
        if count + len(labels) > len(history):
            longer = np.zeros((max(_LEAST, count + len(labels), 3 * count // 2), _COLUMNS), np.int64)
            longer[:count] = history[:count]
            self._by_model[model] = history = longer
        known = np.empty(len(labels), np.int64)
        self._counts[model] = look_up(history, count, accepted, resolved, labels, known)
        return known

    def release_names(self) -> None:
        """Remove the names of labels in no history, once there are many; earlier numbers become invalid."""
        if len(self._names) <= self._crowded:
            return
        used = [history[: self._counts[model], -1] for model, history in self._by_model.items()]
        kept = np.unique(np.concatenate([np.zeros(0, np.int64), *used]))
        for column in used:
            column[:] = np.searchsorted(kept, column)
        self._names = [self._names[number] for number in kept.tolist()]
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._crowded = max(_MIN_NAMES, 2 * len(self._names))

    def retire(self, model: str) -> None:
        """Remove the history of a model."""
        self._by_model.pop(model, None)
        self._counts.pop(model, None)

    def forget_before(self, time_ms: int) -> None:
        """Drop changes that no prediction accepted at `time_ms` or later needs, if they are the majority."""
        for model, history in self._by_model.items():
            count = self._counts[model]
            unneeded = self._unneeded(history[:count], time_ms)
            if unneeded > max(count - unneeded, _LEAST):
                self._by_model[model] = history[unneeded:count].copy()
                self._counts[model] = count - unneeded

    @staticmethod
    def _unneeded(history: NDArray[np.int64], time_ms: int) -> int:
        return max(0, int(np.searchsorted(history[:, 0], time_ms, "left")) - 1)

    def state(self, time_ms: int) -> bytes:
        """State from which `restore` continues, for predictions accepted at this time or later."""
        needed: dict[str, NDArray[np.int64]] = {}
        for model, history in self._by_model.items():
            known = history[: self._counts[model]]
            needed[model] = known[self._unneeded(known, time_ms) :]
        used = np.unique(np.concatenate([np.zeros(0, np.int64), *(rows[:, -1] for rows in needed.values())]))
        columns = {
            model: pack_columns([*rows[:, :-1].T, np.searchsorted(used, rows[:, -1])])
            for model, rows in needed.items()
        }
        return _ENCODER.encode(_State(columns, [self._names[number] for number in used.tolist()]))

    def restore(self, state: bytes) -> None:
        """Continue from a state.

        Raises
        ------
        msgspec.DecodeError, PackedError
            If it is not of this version.
        """
        self.__init__()
        found = _STATE.decode(state)
        self.numbers(found.names)
        for model, columns in found.columns.items():
            rows = np.stack(unpack_columns(columns, _COLUMNS), axis=1).astype(np.int64)
            self._by_model[model], self._counts[model] = rows, len(rows)

    def _number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number


# Previous labels of models whose folds test some ids only (METRICS §1).
#
# The previous label of a fold's outcome is the label of the previous distinct id that was resolved by any
# fold of its model, and replaces the label known at the prediction.


_HALF: Final = 8
_LATIN: Final = "latin-1"


class ColumnFoldStreams:
    """Streams of the ids that the folds of each model resolved, by name of the model."""

    __slots__ = ("_streams",)

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}

    def previous_labels(self, model: str, records: Records, labels: ColumnHistories) -> NDArray[np.int32]:
        """Add outcomes of a model's folds to its stream, and return the previous label of each.

        Parameters
        ----------
        model
            Name of the model that the folds belong to.
        records
            Dtype `OUTCOME`, (n,), n > 0, in the order in which they were resolved.
        labels
            Numbers of labels.

        Returns
        -------
        numpy.ndarray
            Numbers of labels, (n,); -1 at the beginning of the stream.
        """
        low, high, own = records["low"], records["high"], records["true_class"]
        stream = self._streams.get(model)
        begins = np.concatenate([[True], (low[1:] != low[:-1]) | (high[1:] != high[:-1])])
        before = None if stream is None else stream.label
        if stream is not None and stream.id == _id_of(records[0]):
            before = stream.before
        first = np.full(1, -1, np.int32) if before is None else labels.numbers([before])
        known = np.concatenate([first, own[np.flatnonzero(begins)[1:] - 1]])
        names, last = labels.names, int(known[-1])
        newest = names[int(own[-1])]
        self._streams[model] = Stream(_id_of(records[-1]), newest, None if last < 0 else names[last])
        return known[np.cumsum(begins) - 1]

    def keep(self, names: Sequence[str]) -> None:
        """Drop the streams of models with no fold among these names."""
        alive = {model_of(name) for name in names if SEPARATOR in name}
        for model in self._streams.keys() - alive:
            del self._streams[model]

    def state(self) -> dict[str, Stream]:
        """State from which `restore` continues."""
        return dict(sorted(self._streams.items()))

    def restore(self, state: Mapping[str, Stream]) -> None:
        """Continue from a state."""
        self._streams = dict(state)


def owners_of_folds(names: Sequence[str], models: NDArray[np.int32]) -> dict[str, NDArray[np.intp]]:
    """Map each model that has folds to the indices of its folds' outcomes, ascending.

    `models` are indices in `names`, one for each outcome; negative for an outcome without a model.
    """
    numbers = np.flatnonzero(np.bincount(models + 1, minlength=1)[1:]).tolist()
    folds: dict[str, list[int]] = {}
    for number in numbers:
        if SEPARATOR in names[number]:
            folds.setdefault(model_of(names[number]), []).append(number)
    return {model: np.flatnonzero(np.isin(models, several)) for model, several in folds.items()}


def _id_of(record: np.void) -> str:
    """Digest of an outcome's id, as text of a character for each byte."""
    halves = (int(record[half]).to_bytes(_HALF, "big") for half in ("high", "low"))
    return b"".join(halves).decode(_LATIN)


# Compilation of the functions that only buckets use, or loading them from the cache.


def warm_up_buckets() -> None:
    """Compile or load the functions that only buckets use, by calling each on small inputs."""
    accepted, resolved = (
        np.zeros((1, len(POSITION_COLUMNS)), np.int64),
        np.zeros((1, len(RESOLUTION)), np.int64),
    )
    MadeCounts().of(np.zeros(0, np.int32), resolved[:0], np.zeros(0, np.int64))
    ColumnHistories().look_up("warm-up", accepted, resolved, np.zeros(1, np.int64))
