"""What §12 measures, from a list of outcomes with weights, by scikit-learn and by definition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, precision_score, recall_score, roc_auc_score

Floats = NDArray[np.float64]


class Scored(NamedTuple):
    """An outcome whose scores can be used: true and predicted class, and a score of every class."""

    true_class: str
    predicted_class: str
    scores: dict[str, float]


def usable(true_class: str, predicted_class: str, scores: dict[str, float] | None) -> Scored | None:
    """The outcome with scores that sum to 1; None where they say nothing."""
    if not scores or any(not (math.isfinite(s) and 0 <= s <= 1) for s in scores.values()):
        return None
    total = sum(scores.values())
    if total == 0 or true_class not in scores:
        return None
    return Scored(true_class, predicted_class, {k: s / total for k, s in scores.items()})


def mean_log_loss(outcomes: Sequence[Scored | None], weights: Floats) -> float:
    """scikit-learn's, over the outcomes that have scores; NaN without any."""
    used = [(o, w) for o, w in zip(outcomes, weights, strict=True) if o is not None]
    if not used:
        return math.nan
    classes = sorted({name for o, _ in used for name in o.scores} | {"~"})
    table = np.array([[max(o.scores.get(name, 0.0), 1e-15) for name in classes] for o, _ in used])
    # What absent classes were given is taken from the true class by nobody: rows need not sum to exactly 1.
    return float(
        log_loss(
            [o.true_class for o, _ in used],
            table / table.sum(axis=1, keepdims=True),
            labels=classes,
            sample_weight=[w for _, w in used],
        )
    )


def mean_brier(outcomes: Sequence[Scored | None], weights: Floats) -> float:
    """By definition."""
    used = [(o, w) for o, w in zip(outcomes, weights, strict=True) if o is not None]
    if not used:
        return math.nan
    each = [sum((s - (name == o.true_class)) ** 2 for name, s in o.scores.items()) for o, _ in used]
    return float(np.average(each, weights=[w for _, w in used]))


def effective(outcomes: Sequence[Scored | None], weights: Floats) -> float:
    """(Σw)²/Σw² over those that have scores; 0 without any."""
    used = np.array([w for o, w in zip(outcomes, weights, strict=True) if o is not None])
    return float(used.sum() ** 2 / (used**2).sum()) if len(used) else 0.0


def mean_auc(outcomes: Sequence[Scored], size: int) -> float:
    """scikit-learn's, one against the rest, over the last `size`: mean over classes with both kinds."""
    latest = outcomes[-size:]
    found: list[float] = []
    for name in {name for o in latest for name in (*o.scores, o.true_class)}:
        own = [o.true_class == name for o in latest]
        if any(own) and not all(own):
            found.append(float(roc_auc_score(own, [o.scores.get(name, 0.0) for o in latest])))
    return math.fsum(found) / len(found) if found else math.nan


def calibration_error(outcomes: Sequence[Scored], weights: Floats) -> float:
    """Expected calibration error over ten bins of the predicted class's score, by definition."""
    bins: dict[int, list[tuple[float, float, bool]]] = {}
    for o, w in zip(outcomes, weights.tolist(), strict=True):
        score = o.scores.get(o.predicted_class)
        if score is not None:
            j = max(j for j in range(10) if score >= j / 10)
            bins.setdefault(j, []).append((w, score, o.true_class == o.predicted_class))
    total = gap = 0.0
    for held in bins.values():
        weight = sum(w for w, _, _ in held)
        if weight >= 0.05:
            total += weight
            gap += abs(sum(w * s for w, s, _ in held) - sum(w * hit for w, _, hit in held))
    return gap / total if total else math.nan


def at_threshold(outcomes: Sequence[Scored], weights: Floats, name: str, threshold: float) -> Any:
    """scikit-learn's precision and recall, had a class been predicted from a score on."""
    own = [o.true_class == name for o in outcomes]
    flagged = [o.scores.get(name, 0.0) >= threshold for o in outcomes]
    precision = precision_score(own, flagged, sample_weight=weights, zero_division=np.nan)
    recall = recall_score(own, flagged, sample_weight=weights, zero_division=np.nan)
    return float(precision), float(recall)
