"""History of the labels of each model, by place: finds the last one when a prediction was accepted."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import msgspec

from streamwatch.core.buckets.places import Place


class LabelHistory(msgspec.Struct, array_like=True):
    """Changes of one model's last label, oldest first."""

    places: list[Place] = []
    labels: list[str] = []
    """Label from each place on, up to the next."""

    def at(self, place: Place) -> str | None:
        """Label resolved last before a place; None if there is none."""
        found = bisect_left(self.places, place)
        return self.labels[found - 1] if found else None

    def add(self, place: Place, label: str) -> None:
        """Add a label that resolved a prediction, at a place after all others."""
        if not self.labels or self.labels[-1] != label:
            self.places.append(place)
            self.labels.append(label)

    def forget_before(self, time_ms: int) -> None:
        """Drop what predictions accepted at this time or later do not need."""
        unneeded = bisect_left(self.places, (time_ms,)) - 1
        if unneeded > 0:
            del self.places[:unneeded]
            del self.labels[:unneeded]


_ENCODER: Final = msgspec.msgpack.Encoder()
_STATE: Final = msgspec.msgpack.Decoder(dict[str, LabelHistory])


class LabelHistories:
    """Histories of all models, by name.

    The labels of a model are known only where its outcomes of all ids come together, while predictions are
    accepted in id buckets. So an outcome carries the place of its prediction, from which the label known at
    that time is looked up here. A history reaches back as far as a prediction may be pending.
    """

    __slots__ = ("_by_model",)

    def __init__(self) -> None:
        self._by_model: dict[str, LabelHistory] = {}

    def at(self, model: str, place: Place) -> str | None:
        """Label with which the model was resolved last before a place; None if there is none."""
        history = self._by_model.get(model)
        return None if history is None else history.at(place)

    def add(self, model: str, place: Place, label: str) -> None:
        """Add a label that resolved a prediction of the model."""
        history = self._by_model.get(model)
        if history is None:
            history = self._by_model[model] = LabelHistory([], [])
        history.add(place, label)

    def retire(self, model: str) -> None:
        """Remove the history of a model."""
        self._by_model.pop(model, None)

    def forget_before(self, time_ms: int) -> None:
        """Drop what predictions accepted at this time or later do not need."""
        for history in self._by_model.values():
            history.forget_before(time_ms)

    def state(self) -> bytes:
        """State from which `restore` continues."""
        return _ENCODER.encode(self._by_model)

    def restore(self, state: bytes) -> None:
        """Continue from a state; raises msgspec.DecodeError if it is not of this version."""
        self._by_model = _STATE.decode(state)
