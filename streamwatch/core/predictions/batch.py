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
"""Prediction: record time, own time, score, model, class.

`event_ms`: its own time, or that of the record if it has none. `score`: score of the predicted class, NaN
without one. `model`, `class`: numbers of the names.
"""


@dataclass(frozen=True, slots=True)
class PredictionBatch:
    """Accepted predictions in order: no duplicates, no conflicts, none over a limit."""

    records: NDArray[np.void]
    """Of `PREDICTED`, shape (n,)."""
    models: Sequence[str]
    """Names of models by number; another list as soon as a number stands for another name."""
    classes: Sequence[str]
    """Names of classes by number; another list as soon as a number stands for another name."""

    def __len__(self) -> int:
        return len(self.records)


def batch_of(events: Sequence[Prediction]) -> PredictionBatch:
    """Put predictions into columns; names are numbered in order of occurrence."""
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
    """Score of the predicted class divided by the sum of all; NaN without one, or if a score is invalid.

    Scores that are negative or not finite, and those with sum 0, are invalid.
    """
    score = None if not scores else scores.get(predicted_class)
    if scores is None or score is None:
        return math.nan
    total = sum(scores.values())
    if not 0.0 < total < math.inf or min(scores.values()) < 0.0:  # a NaN makes the sum NaN
        return math.nan
    return min(1.0, score / total)
