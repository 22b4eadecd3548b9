"""Measures of one model's scores: losses, calibration, area under the curve, threshold curves.

Undefined values are NaN: losses, and errors of bins, below a weight of 0.05 outcomes; an area if the window
does not have a label of the class and one of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from streamwatch.core.estimators.registers.probabilities.observe import (
    BRIER,
    HITS,
    LOG_LOSS,
    MEAN_SCORE,
    NEGATIVES,
    POSITIVES,
    SQUARES,
    SUMS,
    THRESHOLDS,
    WEIGHT,
    Floats,
    ModelState,
)
from streamwatch.core.estimators.registers.probabilities.snapshot import latest
from streamwatch.core.estimators.registers.probabilities.spec import ProbabilitiesSpec

PRESENT: Final = 0.05
"""Least weight in outcomes for a value to be defined."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses under one mechanism."""

    n_eff: float
    """Effective sample size (Σw)²/Σw² of the outcomes whose scores were usable; 0 below a weight of 0.05."""
    log_loss: float
    """Mean of −ln s_y."""
    brier: float
    """Mean of Σ_k (s_k − 1[y=k])²."""


def losses(kept: ModelState, spec: ProbabilitiesSpec) -> list[Losses]:
    """Losses under each mechanism, in the order of `spec.mechanisms`."""
    found = [_losses(kept.landmark, kept.landmark[WEIGHT])] if spec.landmark else []
    found += [_losses(sums, sums[SQUARES]) for sums in kept.fading]
    ring = latest(kept.ring, int(kept.state["head"][0]), int(kept.state["held"][0]))
    for size in spec.sizes:
        sums = ring[-size:].sum(axis=0)
        found.append(_losses(sums, sums[WEIGHT]))
    for window in kept.windows:
        sums = np.zeros(SUMS)
        for r in range(int(window["rows"])):
            sums += window["sums"][r, : int(window["buckets"][r])].sum(axis=0)
        found.append(_losses(sums, sums[WEIGHT]))
    return found


def _losses(sums: Floats, squares: float) -> Losses:
    weight = float(sums[WEIGHT])
    if weight < PRESENT:
        return Losses(0.0, np.nan, np.nan)
    return Losses(weight**2 / float(squares), float(sums[LOG_LOSS]) / weight, float(sums[BRIER]) / weight)


@dataclass(frozen=True, slots=True)
class Reliability:
    """Bins of the reliability diagram, each array (BINS,); faded by `observe.ALPHA`."""

    weight: Floats
    """Number of outcomes whose ŷ had a score in the bin."""
    mean_score: Floats
    hit_share: Floats
    """Share of hits; it and `mean_score` are NaN where the weight is below 0.05."""

    @property
    def error(self) -> float:
        """Expected calibration error, Σ(n_b/n)·|mean score − hit share|; NaN if no bin has enough weight."""
        used = self.weight >= PRESENT
        if not used.any():
            return np.nan
        gaps = np.abs(self.mean_score[used] - self.hit_share[used])
        return float((self.weight[used] * gaps).sum() / self.weight[used].sum())


def reliability(kept: ModelState) -> Reliability:
    """Compare the score of ŷ with the share of hits, binned by that score."""
    bins = kept.reliability / float(kept.state["unit"][0])
    weight = bins[:, WEIGHT]
    used = np.where(weight >= PRESENT, weight, np.nan)
    return Reliability(weight, bins[:, MEAN_SCORE] / used, bins[:, HITS] / used)


def areas(kept: ModelState) -> Floats:
    """Area under the ROC curve of each class against the rest, over the window; ties count half.

    Shape (classes,), by local index; NaN for a class without a label of its own or of another in the window.
    The share of pairs of a label of the class and one of another in which the first has the higher score
    (Mann, Whitney 1947; over a window: Brzezinski, Stefanowski 2017).
    """
    head, held = int(kept.state["auc_head"][0]), int(kept.state["auc_held"][0])
    classes = int(kept.state["classes"][0])
    labels = latest(kept.labels, head, held)
    found = np.full(classes, np.nan)
    if not held:
        return found
    scores = latest(kept.scores, head, held)
    for k in range(classes):
        own = labels == k
        positives, negatives = np.sort(scores[own, k]), np.sort(scores[~own, k])
        if len(positives) and len(negatives):
            below = np.searchsorted(negatives, positives, "left")
            up_to = np.searchsorted(negatives, positives, "right")
            found[k] = int((below + up_to).sum()) / (2 * len(positives) * len(negatives))
    return found


def mean_area(kept: ModelState) -> float:
    """Mean of the defined areas of the classes; NaN if there are none."""
    found = areas(kept)
    return float(found[~np.isnan(found)].mean()) if (~np.isnan(found)).any() else np.nan


@dataclass(frozen=True, slots=True)
class ThresholdCurve:
    """Precision and recall of one class if it were predicted from a given score on.

    Each array (THRESHOLDS,), for the thresholds j/100; faded by `observe.ALPHA`.
    """

    precision: Floats
    """NaN where fewer than 0.05 outcomes have such a score."""
    recall: Floats
    """NaN with fewer than 0.05 labels of the class."""


def threshold_curve(kept: ModelState, k: int) -> ThresholdCurve:
    """Curve of the class with local index k."""
    counts = kept.curve[k] / float(kept.state["unit"][0])
    above = counts[::-1].cumsum(axis=0)[::-1]
    predicted = above[:, NEGATIVES] + above[:, POSITIVES]
    own = float(above[0, POSITIVES])
    precision = np.full(THRESHOLDS, np.nan)
    np.divide(above[:, POSITIVES], predicted, out=precision, where=predicted >= PRESENT)
    recall = above[:, POSITIVES] / own if own >= PRESENT else np.full(THRESHOLDS, np.nan)
    return ThresholdCurve(precision, recall)
