"""Outcomes as compiled functions take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamwatch.core.kernel.scores import Indices, Scores, checked


class Batch(NamedTuple):
    """Outcomes in the kernel's types, all int32 (n,), and their scores."""

    rows: Indices
    truth: Indices
    predicted: Indices
    known: Indices
    scores: Scores


def batch_of(
    rows: Indices, truth: Indices, predicted: Indices, known: Indices | None, scores: Scores
) -> Batch:
    """Bring outcomes to the kernel's types.

    Raises
    ------
    ValueError
        If columns differ in length, or offsets of scores make no sense.
    """
    if known is None:
        known = np.full(len(rows), -1, np.int32)
    rows, truth = np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(truth, np.int32)
    predicted, known = np.ascontiguousarray(predicted, np.int32), np.ascontiguousarray(known, np.int32)
    if not len(rows) == len(truth) == len(predicted) == len(known):
        lengths = (len(rows), len(truth), len(predicted), len(known))
        raise ValueError(f"rows, truth, predicted and known must be equally long, got {lengths}")
    if len(scores.offsets):
        scores = checked(scores, len(rows))
    return Batch(rows, truth, predicted, known, scores)
