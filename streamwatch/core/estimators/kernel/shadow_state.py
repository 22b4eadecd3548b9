"""What a model's shadow classifiers know, as plain values, wherever and however large their block is."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.pools import Pools
from streamwatch.core.estimators.kernel.shadow import shadow_words

First: TypeAlias = tuple[float, int, int]
State: TypeAlias = tuple[float, First, bytes, bytes]
"""Unit, the first outcome's count and classes, rows that say something, their counts and leaders."""


def _rows(pools: Pools, shadow: Any, classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A model's block, one row of counts and their leader each; the rows of its first `classes` classes."""
    span, start = int(shadow["span"]), int(shadow["start"])
    block = pools.shadows[start : start + shadow_words(span)].reshape(-1, span + 1)
    k = np.arange(classes)
    pairs = 1 + span + (k[:, None] * span + k[None, :]).ravel()
    return block, np.concatenate([[0], 1 + k, pairs])


def _first_leaders(classes: int) -> NDArray[np.int64]:
    """Leaders of rows without counts: none, the previous label, the prediction."""
    k = np.arange(classes)
    return np.concatenate([[0], k, np.repeat(k, classes)])


def shadow_state(pools: Pools, model: Any) -> State | None:
    """State that `resume_shadow` continues from; None once they stopped."""
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
    """Continue from a state, in the block already given to the model; without one they start now."""
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
    """Faded counts of (true, predicted) of the model in a row, in units of outcomes; None without counts.

    Shape (K, K) with K the classes the model has shown, by local index. An outcome of age a counts .999^a.
    None before the first outcome, without shadow classifiers and once they stopped.
    """
    model = pools.models[row]
    classes = int(model["classes"])
    if not classes or not len(model["shadow"]) or model["shadow"][0]["stopped"]:
        return None
    shadow = model["shadow"][0]
    block, rows = _rows(pools, shadow, classes)
    cube = block[rows[1 + classes :], :classes].reshape(
        classes, classes, classes
    )  # predicted, previous, true
    counts = np.ascontiguousarray(cube.sum(axis=1).T)
    counts[int(shadow["first_truth"]), int(shadow["first_predicted"])] += shadow["first"]
    return counts / shadow["unit"]
