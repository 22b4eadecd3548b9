"""Labels that models were resolved with, by place: which one was the last when a prediction was accepted."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import msgspec

from streamwatch.core.buckets.places import Place


class LabelHistory(msgspec.Struct, array_like=True):
    """Changes of one model's last label, oldest first."""

    places: list[Place] = []
    labels: list[str] = []
    """Of each, up to the next."""

    def at(self, place: Place) -> str | None:
        """The label resolved last before a place; None without one."""
        found = bisect_left(self.places, place)
        return self.labels[found - 1] if found else None

    def add(self, place: Place, label: str) -> None:
        """Note a label that resolved a prediction, behind all that were noted."""
        if not self.labels or self.labels[-1] != label:
            self.places.append(place)
            self.labels.append(label)

    def forget_before(self, time_ms: int) -> None:
        """Let go of what no prediction accepted at this time or later asks for."""
        unneeded = bisect_left(self.places, (time_ms,)) - 1
        if unneeded > 0:
            del self.places[:unneeded]
            del self.labels[:unneeded]


_ENCODER: Final = msgspec.msgpack.Encoder()
_STATE: Final = msgspec.msgpack.Decoder(dict[str, LabelHistory])


class LabelHistories:
    """Histories of all models, by name.

    What a model was resolved with is only known where its outcomes of all ids are, and predictions are
    accepted elsewhere: so an outcome carries the place of its prediction, and is told here what was known
    then. A history reaches as far back as a prediction may be pending.
    """

    __slots__ = ("_by_model",)

    def __init__(self) -> None:
        self._by_model: dict[str, LabelHistory] = {}

    def at(self, model: str, place: Place) -> str | None:
        """The label that the model was resolved with last before a place; None without one."""
        history = self._by_model.get(model)
        return None if history is None else history.at(place)

    def add(self, model: str, place: Place, label: str) -> None:
        """Note a label that a prediction of the model was resolved with."""
        history = self._by_model.get(model)
        if history is None:
            history = self._by_model[model] = LabelHistory([], [])
        history.add(place, label)

    def retire(self, model: str) -> None:
        """Forget a model."""
        self._by_model.pop(model, None)

    def forget_before(self, time_ms: int) -> None:
        """Let go of what no prediction accepted at this time or later asks for."""
        for history in self._by_model.values():
            history.forget_before(time_ms)

    def state(self) -> bytes:
        """State that `restore` continues from."""
        return _ENCODER.encode(self._by_model)

    def restore(self, state: bytes) -> None:
        """Continue from a `state`; raises msgspec.DecodeError if it is not of this version."""
        self._by_model = _STATE.decode(state)
