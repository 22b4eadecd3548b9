"""State of a model's shadow classifiers as plain values, independent of position and size of their block."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.pools import Pools
from streamwatch.core.estimators.kernel.shadow import shadow_words

First: TypeAlias = tuple[float, int, int]
State: TypeAlias = tuple[float, First, bytes, bytes]
"""Unit; count and classes of the first outcome; indices of rows with counts; their counts and leaders."""


def _rows(pools: Pools, shadow: Any, classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """View a model's block as rows of counts plus leader.

    Also return the rows of its first `classes` classes.
    """
    span, start = int(shadow["span"]), int(shadow["start"])
    block = pools.shadows[start : start + shadow_words(span)].reshape(-1, span + 1)
    k = np.arange(classes)
    pairs = 1 + span + (k[:, None] * span + k[None, :]).ravel()
    return block, np.concatenate([[0], 1 + k, pairs])


def _first_leaders(classes: int) -> NDArray[np.int64]:
    """Leaders of rows without counts: class 0, the previous label, the prediction."""
    k = np.arange(classes)
    return np.concatenate([[0], k, np.repeat(k, classes)])


def shadow_state(pools: Pools, model: Any) -> State | None:
    """State from which `resume_shadow` continues; None if the shadow classifiers have stopped."""
    shadow, classes = model["shadow"][0], int(model["classes"])
    if shadow["stopped"]:
        return None
    first = float(shadow["first"]), int(shadow["first_truth"]), int(shadow["first_predicted"])
    if not classes:
        return float(shadow["unit"]), first, b"", b""
    block, rows = _rows(pools, shadow, classes)
    counts = block[rows, :classes]
    leaders = block[rows, int(shadow["span"])]
    said = np.flatnonzero((counts != 0.0).any(axis=1) | (leaders != _first_leaders(classes)))
    body = np.column_stack([counts[said], leaders[said]])
    return float(shadow["unit"]), first, said.astype(np.int32).tobytes(), body.tobytes()


def resume_shadow(pools: Pools, model: Any, most: int, state: State | None) -> None:
    """Continue from a state, in the block the model already owns; without a state they start empty."""
    shadow, classes = model["shadow"][0], int(model["classes"])
    if classes > most:
        shadow["stopped"] = 1
    elif state is not None and classes:
        unit, first, said, body = state
        block, rows = _rows(pools, shadow, classes)
        chosen = rows[np.frombuffer(said, np.int32)]
        values = np.frombuffer(body).reshape(-1, classes + 1)
        block[chosen, :classes] = values[:, :classes]
        block[chosen, int(shadow["span"])] = values[:, classes]
        shadow["unit"] = unit
        shadow["first"], shadow["first_truth"], shadow["first_predicted"] = first


def confusion(pools: Pools, row: int) -> NDArray[np.float64] | None:
    """Faded counts of (true, predicted) of the model in a row, in units of outcomes.

    Shape (K, K) by local class index, K the number of classes of the model; an outcome of age a counts
    .999^a. None before the first outcome, without shadow classifiers and once they have stopped.
    """
    model = pools.models[row]
    classes = int(model["classes"])
    if not classes or not len(model["shadow"]) or model["shadow"][0]["stopped"]:
        return None
    shadow = model["shadow"][0]
    block, rows = _rows(pools, shadow, classes)
    cube = block[rows[1 + classes :], :classes].reshape(
        classes, classes, classes
    )  # axes: predicted, previous, true
    counts = np.ascontiguousarray(cube.sum(axis=1).T)
    counts[int(shadow["first_truth"]), int(shadow["first_predicted"])] += shadow["first"]
    return counts / shadow["unit"]
