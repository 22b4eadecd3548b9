"""Histories of the labels of models, in columns; equivalent to `label_history.LabelHistories`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.columns.lookup import look_up
from streamwatch.core.join.compiled.durable.packed import pack_columns, unpack_columns

_COLUMNS: Final = 6
"""Number of columns: time, rank, offset, event and number of the place, and the label."""
_LEAST: Final = 16
_MIN_NAMES: Final = 65_536


class _State(msgspec.Struct, array_like=True, frozen=True):
    columns: dict[str, bytes]
    """Packed columns by model."""
    names: list[str]
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
            Places of the predictions: time, rank, offset and event, shape (n, 4).
        resolved
            Places of their resolution, in this order: the same and the number of the event's outcome, (n, 5).
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
        """Remove labels that are in no history, if there are many; numbers given before are invalid then."""
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
        """Drop what predictions accepted at this time or later do not need, if it is more than half."""
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
