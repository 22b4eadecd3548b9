"""Expected accuracy of each stretch of prediction time by scores, compared with the labels that came later.

The expected accuracy is the mean, over the stretch's predictions, of the share of hits among *earlier*
predictions with like scores. Labels of the stretch itself are not used (but labels of earlier predictions
that came later are). So it is what scores calibrated before the stretch would have predicted. It reflects
predictions moving to scores that are right less often. It cannot reflect a change in how often a given score
is right; the error reported with it measures that. Confidence-based estimation: Garg et al. 2022, §2;
Guillory et al. 2021.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from streamwatch.core.predictions.early_hints.state import BINS, BUCKETS, HITS, LABELLED, PREDICTED

FEWEST: Final = 30
"""Number of labels below which their share of hits is undefined."""
COVERED: Final = 0.95
"""Share of predictions whose bin of the score must have had labels."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Predictions with scores of one stretch of prediction time."""

    start_ms: int
    end_ms: int
    predictions: int
    labelled: int
    expected: float
    """Expected accuracy by scores.

    NaN before 30 labels of earlier stretches, and if more than 5 % of predictions have scores without labels.
    """
    unchanged: float
    """Accuracy by all labels of earlier stretches, expected if nothing changes; NaN before 30 of them."""
    accuracy: float
    """Accuracy by the labels that have come; NaN before 30."""

    @property
    def is_judged(self) -> bool:
        """Tell whether at least half the labels have come, and both accuracies are defined."""
        known = not (math.isnan(self.expected) or math.isnan(self.accuracy))
        return known and 2 * self.labelled >= self.predictions


@dataclass(frozen=True, slots=True)
class ExpectationErrors:
    """Mean absolute differences from the accuracy by labels, over judged stretches weighted by their labels.

    NaN before the first of them.
    """

    expected: float
    """Error of the accuracy expected by scores."""
    unchanged: float
    """Error of the accuracy of earlier labels; scores are informative if their error is smaller."""


def expected_by(predicted: np.ndarray, labelled: np.ndarray, hits: np.ndarray, least: float = 0.05) -> float:
    """Mean over predictions of the share of hits with like scores; all by bin of the score, (10,).

    NaN without predictions, or if less than 95 % of them have scores in bins with labels.
    """
    known = labelled >= least
    total, covered = float(predicted.sum()), float(predicted[known].sum())
    if total == 0.0 or covered < COVERED * total:
        return math.nan
    return float((predicted[known] * (hits[known] / labelled[known])).sum()) / covered


def stretches(m: np.void, bucket_ms: int) -> list[Stretch]:
    """Stretches of a record `EARLY` that are kept, oldest first."""
    stamps = m["stamp"]
    newest = int(stamps.max())
    order = [s for s in np.argsort(stamps, kind="stable").tolist() if stamps[s] > max(0, newest - BUCKETS)]
    labelled, hits = np.zeros(BINS), np.zeros(BINS)
    found: list[Stretch] = []
    for slot in order:
        counts = m["counts"][slot].astype(np.float64)
        before, came = float(labelled.sum()), float(counts[LABELLED].sum())
        start_ms = (int(stamps[slot]) - 1) * bucket_ms
        enough = before >= FEWEST
        found.append(
            Stretch(
                start_ms,
                start_ms + bucket_ms,
                int(counts[PREDICTED].sum()),
                int(came),
                expected_by(counts[PREDICTED], labelled, hits, 1.0) if enough else math.nan,
                float(hits.sum()) / before if enough else math.nan,
                float(counts[HITS].sum()) / came if came >= FEWEST else math.nan,
            )
        )
        labelled += counts[LABELLED]
        hits += counts[HITS]
    return found


def expectation_errors(found: Sequence[Stretch]) -> ExpectationErrors:
    """Compute the errors of the expectations over the judged stretches."""
    judged = [each for each in found if each.is_judged]
    labels = sum(each.labelled for each in judged)
    if not labels:
        return ExpectationErrors(math.nan, math.nan)
    return ExpectationErrors(
        sum(each.labelled * abs(each.expected - each.accuracy) for each in judged) / labels,
        sum(each.labelled * abs(each.unchanged - each.accuracy) for each in judged) / labels,
    )
