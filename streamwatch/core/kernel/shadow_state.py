"""What a model's shadow classifiers know, as plain values, wherever and however large their block is."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.kernel.pools import Pools
from streamwatch.core.kernel.shadow import shadow_words

State: TypeAlias = tuple[float, bytes, bytes]
"""Unit, rows that say something, their counts and leaders."""


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
    """What `resume_shadow` continues from; None once they stopped."""
    shadow, classes = model["shadow"][0], int(model["classes"])
    if shadow["stopped"]:
        return None
    if not classes:
        return float(shadow["unit"]), b"", b""
    block, rows = _rows(pools, shadow, classes)
    counts = block[rows, :classes]
    leaders = block[rows, int(shadow["span"])]
    said = np.flatnonzero((counts != 0.0).any(axis=1) | (leaders != _first_leaders(classes)))
    body = np.column_stack([counts[said], leaders[said]])
    return float(shadow["unit"]), said.astype(np.int32).tobytes(), body.tobytes()


def resume_shadow(pools: Pools, model: Any, most: int, state: State | None) -> None:
    """Continue from a state, in the block already given to the model; without one they start now."""
    shadow, classes = model["shadow"][0], int(model["classes"])
    if classes > most:
        shadow["stopped"] = 1
    elif state is not None and classes:
        unit, said, body = state
        block, rows = _rows(pools, shadow, classes)
        chosen = rows[np.frombuffer(said, np.int32)]
        values = np.frombuffer(body).reshape(-1, classes + 1)
        block[chosen, :classes] = values[:, :classes]
        block[chosen, int(shadow["span"])] = values[:, classes]
        shadow["unit"] = unit
