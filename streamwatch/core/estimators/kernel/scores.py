"""Class scores of a batch of outcomes, as the kernel takes them: ragged, none for most outcomes."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Indices: TypeAlias = NDArray[np.int32]


class Scores(NamedTuple):
    """Scores of n outcomes: i has `values[offsets[i]:offsets[i + 1]]`, of the `classes` at the same places.

    Empty `offsets` stand for a batch in which no outcome has scores.
    """

    offsets: NDArray[np.int64]
    """(n + 1,), from 0 upwards; or empty."""
    classes: Indices
    """Local class indices; all of one outcome differ."""
    values: NDArray[np.float64]
    """P(class|X), 0 or more; need not sum to 1."""


NO_SCORES = Scores(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float64))


def checked(scores: Scores, outcomes: int) -> Scores:
    """Scores of so many outcomes in the kernel's types, once their offsets make sense.

    Raises ValueError otherwise.
    """
    offsets = np.ascontiguousarray(scores.offsets, np.int64)
    classes = np.ascontiguousarray(scores.classes, np.int32)
    values = np.ascontiguousarray(scores.values, np.float64)
    if not (
        len(offsets) == outcomes + 1
        and offsets[0] == 0
        and (np.diff(offsets) >= 0).all()
        and offsets[-1] == len(classes) == len(values)
    ):
        raise ValueError(f"scores must have {outcomes + 1} ascending offsets from 0 to the number of values")
    return Scores(offsets, classes, values)
