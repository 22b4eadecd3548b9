"""Values of watched models: hints, evidence for a change, shares then and now, expected accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from streamwatch.core.metrics import family
from streamwatch.core.predictions.active_hint import ActiveHint
from streamwatch.core.predictions.early_hints.expected_accuracy import (
    FEWEST,
    ExpectationErrors,
    Stretch,
    expectation_errors,
    expected_by,
    stretches,
)
from streamwatch.core.predictions.early_hints.spec import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.state import BLOCK, CLASSES, LAG, MIXED, SCORE, SCORE_UNITS
from streamwatch.core.series import Family

OTHERS: Final = "__other__"
"""Name under which the classes without features of their own are reported."""
OLDEST: Final = 16
"""Number of reference blocks whose shares are reported: those to be compared next."""


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
    named = dict(enumerate(classes)) | {CLASSES: OTHERS}
    waiting = int(m["waiting"])
    queue = np.roll(m["queue"], -int(m["head"]), axis=0)[LAG - waiting :][:OLDEST].astype(np.int64)
    then = queue.sum(axis=0) / max(1, len(queue) * BLOCK)
    now = m["now"] / max(float(m["now_weight"]), 1e-300)
    shown = [f for f in named if then[f] > 0 or now[f] > 0]
    scored = queue[queue[:, SCORE] >= 0, SCORE]
    capital = float(m["capital"].sum()) / MIXED
    hint = None
    if m["hints"] and int(m["seen"] - m["hint_seen"]) < spec.reach:
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
    """Combine a hint with the values it is about; a class missing among them has share 0."""
    name = hint.predicted_class
    then, now = (
        (seen.score_before, seen.score_now)
        if name is None
        else (seen.before.get(name, 0.0), seen.now.get(name, 0.0))
    )
    return ActiveHint(ordinal, hint.record_ms, name, hint.more, then, now)


def families_of(found: Mapping[str, EarlyView], reach: int) -> list[Family]:
    """Series of watched models; without hint and evidence for models that were not compared yet."""
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
