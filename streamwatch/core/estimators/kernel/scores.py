"""Class scores of a batch in the kernel's form: ragged arrays, as most outcomes may have none."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Indices: TypeAlias = NDArray[np.int32]


class Scores(NamedTuple):
    """Scores of n outcomes: i has `values[offsets[i]:offsets[i + 1]]`, of the `classes` at the same places.

    If no outcome of a batch has scores, `offsets` is empty.
    """

    offsets: NDArray[np.int64]
    """Shape (n + 1,), ascending from 0; or empty."""
    classes: Indices
    """Local class indices, distinct within an outcome."""
    values: NDArray[np.float64]
    """P(class|X), at least 0; they need not sum to 1."""


NO_SCORES = Scores(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float64))


def checked(scores: Scores, outcomes: int) -> Scores:
    """Convert the scores of `outcomes` outcomes to the kernel's types.

    Raises
    ------
    ValueError
        If the offsets do not ascend from 0 to the number of values, one more than there are outcomes.
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
