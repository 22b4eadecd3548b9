"""Values of watched models: hints, evidence for a change, shares then and now, expected accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import Family
from streamwatch.core.predictions.early_hints.observe import (
    BINS,
    BLOCK,
    BUCKETS,
    CLASSES,
    HITS,
    LABELLED,
    LAG,
    MIXED,
    PREDICTED,
    REACH,
    SCORE,
    SCORE_UNITS,
    EarlyHintsSpec,
)
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.core.records.events import OTHER

# Expected accuracy of each stretch of prediction time by scores, compared with the labels that came later.
#
# The expected accuracy is the mean, over the stretch's predictions, of the share of hits among *earlier*
# predictions with like scores. Labels of the stretch itself are not used (but labels of earlier predictions
# that came later are). So it is what scores calibrated before the stretch would have predicted. It reflects
# predictions moving to scores that are right less often. It cannot reflect a change in how often a given
# score is right; the error reported with it measures that. Confidence-based estimation: Garg et al. 2022,
# §2; Guillory et al. 2021.


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


OLDEST: Final = 16
"""Number of reference blocks whose shares are reported: the next to be compared."""


def reach_of(spec: EarlyHintsSpec) -> int:
    """Distance in predictions of those that are compared: `reach`, rounded up to a multiple of 4,096."""
    return spec.stride * REACH


@dataclass(frozen=True, slots=True)
class Hint:
    """A hint that the predictions of a model differ from those `reach` earlier."""

    predicted_class: str | None
    """Class whose share differs most significantly; None if it is the score of the predicted class."""
    more: bool
    """Whether the share, or the score, has increased."""
    record_ms: int
    """Record time at which it was given."""


@dataclass(frozen=True, slots=True)
class EarlyView:
    """Values of one model before its labels come."""

    predictions: int
    hints: int
    hint: Hint | None
    """Latest hint, for the `reach` predictions after it."""
    evidence: float
    """Evidence from 0 (none) to 1 (a hint): ln of the capital divided by ln of the threshold."""
    before: Mapping[str, float]
    """Share of each class in the reference: 512 of the compared predictions, up to `reach` ago."""
    now: Mapping[str, float]
    """Share of each class in the latest predictions, faded by 0.9 per 64; empty before the first of them."""
    score_before: float
    """Mean score of the predicted class in the reference; NaN if none has scores."""
    score_now: float
    expected_accuracy: float
    """Mean over the latest predictions (faded by 0.999) of the share of hits of outcomes with like scores.

    NaN without scores, before 30 outcomes with scores, and while less than 95 % of predictions have scores
    for which there are outcomes.
    """
    stretches: Sequence[Stretch]
    """Expected accuracy and accuracy by labels of each stretch of prediction time; empty without any."""
    expectation_errors: ExpectationErrors


def view(m: np.void, classes: Sequence[str], spec: EarlyHintsSpec) -> EarlyView:
    """Compute the view of a record `EARLY` with these classes by local index."""
    named = dict(enumerate(classes)) | {CLASSES: OTHER}
    waiting = int(m["waiting"])
    queue = np.roll(m["queue"], -int(m["head"]), axis=0)[LAG - waiting :][:OLDEST].astype(np.int64)
    then = queue.sum(axis=0) / max(1, len(queue) * BLOCK)
    now = m["now"] / max(float(m["now_weight"]), 1e-300)
    shown = [f for f in named if then[f] > 0 or now[f] > 0]
    scored = queue[queue[:, SCORE] >= 0, SCORE]
    capital = float(m["capital"].sum()) / MIXED
    hint = None
    if m["hints"] and int(m["seen"] - m["hint_seen"]) < reach_of(spec):
        hint = Hint(named.get(int(m["hint_feature"])), not m["hint_side"], int(m["hint_ms"]))
    found = stretches(m, spec.bucket_ms)
    return EarlyView(
        int(m["seen"]),
        int(m["hints"]),
        hint,
        max(0.0, math.log(capital) / math.log(spec.threshold)) if capital > 0 else 0.0,
        {named[f]: float(then[f]) for f in shown if waiting},
        {named[f]: float(now[f]) for f in shown if m["now_weight"] > 0},
        float(scored.mean()) / (BLOCK * SCORE_UNITS) if len(scored) else math.nan,
        float(m["now"][SCORE] / (m["now_scored"] * SCORE_UNITS)) if m["now_scored"] > 0 else math.nan,
        expected_by(m["predicted"], m["labelled"][:, 0], m["labelled"][:, 1])
        if m["labelled_outcomes"] >= FEWEST
        else math.nan,
        found,
        expectation_errors(found),
    )


def active_hint(ordinal: int, hint: Hint, seen: EarlyView) -> ActiveHint:
    """Combine a hint with the share or score that changed; a class that does not occur has share 0."""
    name = hint.predicted_class
    then, now = (
        (seen.score_before, seen.score_now)
        if name is None
        else (seen.before.get(name, 0.0), seen.now.get(name, 0.0))
    )
    return ActiveHint(ordinal, hint.record_ms, name, hint.more, then, now)


def families_of(found: Mapping[str, EarlyView], reach: int) -> list[Family]:
    """Series of watched models; hints and evidence only of models with more than `reach` predictions."""
    compared = {name: each for name, each in found.items() if each.predictions > reach}

    def defined(name: str, values: Mapping[str, float]) -> Family:
        return family(name, [((model,), value) for model, value in values.items() if not math.isnan(value)])

    return [
        family("early_hint", [((name,), float(each.hint is not None)) for name, each in compared.items()]),
        family("early_hints_total", [((name,), each.hints) for name, each in compared.items()]),
        family("early_hint_evidence", [((name,), each.evidence) for name, each in compared.items()]),
        defined("expected_accuracy_ratio", {name: each.expected_accuracy for name, each in found.items()}),
        defined(
            "expected_accuracy_error_ratio",
            {name: each.expectation_errors.expected for name, each in found.items()},
        ),
        defined(
            "unchanged_accuracy_error_ratio",
            {name: each.expectation_errors.unchanged for name, each in found.items()},
        ),
    ]


# JSON document of a model's early hints for the API.


def document(view: EarlyView, spec: EarlyHintsSpec) -> dict[str, object]:
    """Build the document of one model; undefined values are null."""
    hint = None
    if view.hint is not None:
        hint = {
            "class": view.hint.predicted_class,
            "more": view.hint.more,
            "timestamp_seconds": view.hint.record_ms / 1000.0,
        }
    return {
        "predictions": view.predictions,
        "reach": reach_of(spec),
        "hints": view.hints,
        "hint": hint,
        "evidence": view.evidence,
        "shares_before": view.before,
        "shares_now": view.now,
        "score_before": _number(view.score_before),
        "score_now": _number(view.score_now),
        "expected_accuracy": _number(view.expected_accuracy),
        "expected_accuracy_error": _number(view.expectation_errors.expected),
        "unchanged_accuracy_error": _number(view.expectation_errors.unchanged),
        "stretches": [_stretch(each) for each in view.stretches],
    }


def _stretch(each: Stretch) -> dict[str, object]:
    return {
        "start_timestamp_seconds": each.start_ms / 1000.0,
        "end_timestamp_seconds": each.end_ms / 1000.0,
        "predictions": each.predictions,
        "labelled": each.labelled,
        "expected_accuracy": _number(each.expected),
        "accuracy": _number(each.accuracy),
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
