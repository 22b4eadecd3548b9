"""Batch of outcomes as the compiled functions take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.scores import Indices, Scores, checked


class Batch(NamedTuple):
    """Outcomes in the kernel's types: int32 (n,), event times int64 (n,), and their class scores."""

    rows: Indices
    true_class: Indices
    predicted_class: Indices
    label_at_prediction: Indices
    event_ms: NDArray[np.int64]
    scores: Scores


def batch_of(
    rows: Indices,
    true_class: Indices,
    predicted_class: Indices,
    label_at_prediction: Indices | None,
    scores: Scores,
    event_ms: NDArray[np.int64] | None,
) -> Batch:
    """Convert outcomes to the kernel's types; event times default to 0, labels at prediction to -1.

    Raises
    ------
    ValueError
        If columns differ in length, or the offsets of scores are inconsistent.
    """
    if label_at_prediction is None:
        label_at_prediction = np.full(len(rows), -1, np.int32)
    rows, true_class = np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(true_class, np.int32)
    predicted_class, label_at_prediction = (
        np.ascontiguousarray(predicted_class, np.int32),
        np.ascontiguousarray(label_at_prediction, np.int32),
    )
    event_ms = np.zeros(len(rows), np.int64) if event_ms is None else np.ascontiguousarray(event_ms, np.int64)
    lengths = tuple(map(len, (rows, true_class, predicted_class, label_at_prediction, event_ms)))
    if len(set(lengths)) > 1:
        raise ValueError(f"rows, truth, predicted, known and event_ms must be equally long, got {lengths}")
    if len(scores.offsets):
        scores = checked(scores, len(rows))
    return Batch(rows, true_class, predicted_class, label_at_prediction, event_ms, scores)
