"""Previous labels of models whose folds test some ids only.

A fold that sees every tenth outcome and takes its own previous label finds labels less persistent than they
are. So y_{t−1} of an outcome is the label of the previous distinct id that was resolved by any fold of its
model (METRICS §1), and every fold's outcome carries it in the place of the label known at the prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from streamwatch.core.fold_names import SEPARATOR, model_of


class Stream(msgspec.Struct, array_like=True):
    """Latest state of a model's stream of resolved ids."""

    id: str
    """The id resolved last."""
    label: str
    """Its label."""
    before: str | None
    """The label of the previous distinct id; None at the stream's beginning."""


class FoldStreams:
    """The streams of all models that predict in folds, by name."""

    __slots__ = ("_streams",)

    def __init__(self) -> None:
        self._streams: dict[str, Stream] = {}

    def previous_label(self, name: str, event_id: str, label: str) -> str | None:
        """Add a fold's outcome to its model's stream, and return the label before it; None for the first."""
        model = model_of(name)
        stream = self._streams.get(model)
        if stream is None:
            self._streams[model] = Stream(event_id, label, None)
            return None
        if stream.id != event_id:
            stream.before = stream.label
            stream.id = event_id
        stream.label = label
        return stream.before

    def keep(self, names: Sequence[str]) -> None:
        """Drop the streams of models with no fold among these names."""
        alive = {model_of(name) for name in names if SEPARATOR in name}
        for model in self._streams.keys() - alive:
            del self._streams[model]

    def state(self) -> dict[str, Stream]:
        """State that `restore` continues from."""
        return dict(sorted(self._streams.items()))

    def restore(self, state: Mapping[str, Stream]) -> None:
        """Continue from a `state`."""
        self._streams = dict(state)
