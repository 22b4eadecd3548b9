"""Folds in the compiled join: models of their own that share the labels of the model they belong to.

`core.records.events.fold_name` names the folds. Every model number has an owner: that of a fold is its model,
that of any other model is itself. Where folds test some ids only, the previous label of a fold's outcome is
that of its model (`durable.totals.Stream`).
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import hot, inner
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.totals import Stream
from streamwatch.core.join.layout import ADMITTED, STREAM, Arrays
from streamwatch.core.join.names import JoinNames
from streamwatch.core.records.events import model_of

_LEAST_ROOM: Final = 16
_DIGEST: Final = 16
_HALF: Final = 8


@hot
def owner_of(t, model):
    """Return the number of the model that a fold belongs to, or of the model itself if it is no fold."""
    return np.int64(t.owners[model]) if t.limits[0].folds else np.int64(model)


@inner
def share_stream(t, x, true_class):
    """Set the previous label of the outcome written last to that of its model's stream.

    Does nothing if the outcome's entry x is not a fold's.
    """
    e = t.entries[x]
    owner = t.owners[e.model]
    if owner == e.model:
        return
    s = t.streams[owner]
    if s.label < 0:
        s.before = -1
    elif s.low != e.low or s.high != e.high:
        s.before = s.label
    s.low = e.low
    s.high = e.high
    s.label = true_class
    t.outcomes[t.totals[0].outcomes - 1].label_at_prediction = s.before


class Owners:
    """Updates the owner of every model number; a model gets a number as soon as a fold of it has one.

    Parameters
    ----------
    folds
        Whether models may predict in folds.
    """

    __slots__ = ("_folds", "_known", "_version")

    def __init__(self, *, folds: bool) -> None:
        self._folds = folds
        self._known = 0
        self._version = -1

    def refreshed(self, arrays: Arrays, names: JoinNames) -> Arrays:
        """Return arrays in which every model number has an owner; the same ones if nothing changed."""
        models = names.models
        if not self._folds or (self._version == models.version and self._known == len(models.assigned)):
            return arrays
        fresh = models.assigned_since(self._version, self._known)
        owned = [models[model_of(models.names[number])] for number in fresh]
        owners, streams = arrays.owners, arrays.streams
        if len(owners) < len(models.names):
            room = max(len(models.names), 2 * len(owners), _LEAST_ROOM)
            owners, streams = np.zeros(room, np.int32), new_streams(room)
            owners[: len(arrays.owners)] = arrays.owners
            streams[: len(arrays.streams)] = arrays.streams
        owners[fresh] = owned
        owners[owned] = owned  # some of them were numbered now
        self._version, self._known = models.version, len(models.assigned)
        return arrays._replace(owners=owners, streams=streams)


def new_streams(room: int) -> NDArray[np.void]:
    """Build the streams of `room` models, none of which has begun."""
    streams = np.zeros(room, STREAM)
    streams["label"] = streams["before"] = -1
    return streams


def end_streams(arrays: Arrays) -> None:
    """End the streams of models of which no fold is admitted."""
    folds = np.flatnonzero(arrays.activity["admission"][: len(arrays.owners)] == ADMITTED)
    owners = arrays.owners[folds]
    ended = np.ones(len(arrays.streams), np.bool_)
    ended[owners[owners != folds]] = False
    arrays.streams["label"][ended] = arrays.streams["before"][ended] = -1


def streams_state(arrays: Arrays, names: JoinNames) -> dict[str, Stream]:
    """Return the state of the streams that have begun, by model; ids are digests."""
    found: dict[str, Stream] = {}
    classes = names.classes.names
    for number in np.flatnonzero(arrays.streams["label"] >= 0).tolist():
        low, high, label, before = arrays.streams[number].tolist()
        digest = (high.to_bytes(_HALF, "big") + low.to_bytes(_HALF, "big")).decode("latin-1")
        known = None if before < 0 else classes[before]
        found[names.models.names[number]] = Stream(digest, classes[label], known)
    return dict(sorted(found.items()))


def restore_streams(
    arrays: Arrays, names: JoinNames, owners: Owners, state: Mapping[str, Stream], *, folds: bool
) -> Arrays:
    """Continue from the streams of a state, after its entries were restored.

    Raises
    ------
    PackedError
        If an id is no digest.
    """
    if not folds:
        return arrays
    numbers = {model: names.models[model] for model in state}
    arrays = owners.refreshed(arrays, names)
    for model, stream in state.items():
        digest = stream.id.encode("latin-1", "replace")
        if len(digest) != _DIGEST:
            raise PackedError(f"expected the digest of an id in the stream of {model}, got {stream.id!r}")
        before = -1 if stream.before is None else names.classes[stream.before]
        halves = int.from_bytes(digest[_HALF:], "big"), int.from_bytes(digest[:_HALF], "big")
        arrays.streams[numbers[model]] = (*halves, names.classes[stream.label], before)
    return arrays
