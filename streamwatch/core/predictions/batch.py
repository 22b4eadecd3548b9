"""Predictions as columns, in the order in which the join accepted them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Prediction

PREDICTED: Final = np.dtype(
    [
        ("record_ms", np.int64),
        ("event_ms", np.int64),
        ("score", np.float64),
        ("model", np.int32),
        ("class", np.int32),
    ],
    align=True,
)
"""A prediction: the clock when it came, its own time (that of the record where it has none), the score of the
predicted class (NaN without one), and the numbers of its model and class."""


@dataclass(frozen=True, slots=True)
class PredictionBatch:
    """Accepted predictions in order: no duplicates, no conflicts, none over a limit."""

    records: NDArray[np.void]
    """Of `PREDICTED`, shape (n,)."""
    models: Sequence[str]
    """Names by number; another object as soon as a number stands for another name."""
    classes: Sequence[str]
    """Likewise."""

    def __len__(self) -> int:
        return len(self.records)


def batch_of(events: Sequence[Prediction]) -> PredictionBatch:
    """Put predictions into columns, names numbered as they come."""
    models: dict[str, int] = {}
    classes: dict[str, int] = {}
    records = np.zeros(len(events), PREDICTED)
    records["model"] = [models.setdefault(event.model, len(models)) for event in events]
    records["class"] = [classes.setdefault(event.predicted_class, len(classes)) for event in events]
    records["score"] = [score_of(event.predicted_class, event.scores) for event in events]
    records["record_ms"] = [event.record_ms for event in events]
    records["event_ms"] = [
        event.record_ms if event.timestamp_ms is None else event.timestamp_ms for event in events
    ]
    return PredictionBatch(records, list(models), list(classes))


def score_of(predicted_class: str, scores: Mapping[str, float] | None) -> float:
    """Score of the predicted class divided by the sum of all; NaN without it, or where a score is invalid.

    Scores that are negative or not finite, and those whose sum is 0, are invalid (METRICS §12).
    """
    score = None if not scores else scores.get(predicted_class)
    if scores is None or score is None:
        return math.nan
    total = sum(scores.values())
    if not 0.0 < total < math.inf or min(scores.values()) < 0.0:  # a NaN among them makes the sum one
        return math.nan
    return min(1.0, score / total)
