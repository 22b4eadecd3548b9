"""Compiled loop over outcomes of one model that predicts with scores.

The scores s of an outcome are divided by their sum. From them: log loss −ln max(s_y, 10⁻¹⁵), Brier score Σ_k
(s_k − 1[y=k])² (twice that of scikit-learn for two classes), and the score of ŷ for the reliability diagram.
Scores that are negative, above 1 or not finite are invalid; so are scores that sum to 0. An outcome whose
label has no score is left out. From a model's first outcome with scores on, every outcome takes part in
forgetting; one without usable scores has weight 0.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.dependence import DEPENDENCE, count_loss, dispersion_of
from streamwatch.core.estimators.forgetting.adwin import (
    GRACE,
    PER_ROW,
    ROWS,
    leave_empty_rows,
    must_cut,
    put_merged,
    put_newest,
    remove_oldest,
)
from streamwatch.core.estimators.forgetting.mechanisms import LIMIT, SHRINK
from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.jit import entry, inner

# State of one model that predicts with scores: records of scalars, sums, and rings of the latest scores.


VERSION: Final = 2
"""Incremented when the meaning of the state changes."""

Floats: TypeAlias = NDArray[np.float64]

BINS: Final = 10
"""Bins of the reliability diagram: [j/10, (j+1)/10), the last closed."""
THRESHOLDS: Final = 100
"""Number of thresholds j/100 from which a class would be predicted; also the bins of the threshold curve."""
ALPHA: Final = 0.999
"""Fading factor of reliability and threshold curves, per outcome with usable scores."""

WEIGHT, LOG_LOSS, BRIER = range(3)
"""Columns of sums: number of outcomes with usable scores, and their losses."""
SUMS: Final = 3
SQUARES: Final = 3
"""Column of Σw², in sums that fade."""

MEAN_SCORE, HITS = 1, 2
"""Columns of the reliability diagram after `WEIGHT`: sum of scores, number of hits."""
NEGATIVES, POSITIVES = range(2)
"""Columns of the threshold curve: labels of other classes, labels of the class itself."""

STATE: Final = np.dtype(
    [
        ("begun", "i8"),  # whether an outcome with scores has occurred
        ("scored", "i8"),  # outcomes with usable scores
        ("invalid", "i8"),  # outcomes whose scores are no probabilities
        ("label_absent", "i8"),  # outcomes whose label has no score
        ("prediction_absent", "i8"),  # outcomes with usable scores, but none for the predicted class
        ("unnormalised", "i8"),  # outcomes whose scores did not sum to 1
        ("head", "i8"),  # position of the next losses in the ring
        ("held", "i8"),  # number of losses in the ring
        ("auc_head", "i8"),  # position of the next scores in their ring
        ("auc_held", "i8"),
        ("classes", "i8"),  # number of classes with an area and a curve
        ("unit", "f8"),  # amount that the newest outcome counts in what fades by ALPHA
        ("total", "f8"),  # faded weight of all outcomes, in that unit
    ]
)

WINDOW: Final = np.dtype(
    [
        ("n", "i8"),  # outcomes in the window
        ("errors", "i8"),
        ("unchecked", "i8"),  # outcomes since the last check for a cut
        ("dependence", DEPENDENCE, (1,)),  # of the losses, where it is followed
        ("rows", "i8"),  # number of rows in use
        ("buckets", "i4", (ROWS + 1,)),  # number of buckets per row
        ("losses", "i4", (ROWS, PER_ROW + 1)),  # 0/1 losses per bucket, oldest first
        ("sums", "f8", (ROWS, PER_ROW + 1, SUMS)),
    ]
)
"""ADWIN window over the 0/1 loss, whose buckets carry sums; see `core.estimators.forgetting.adwin`."""


@dataclass(slots=True)
class ModelState:
    """Arrays of one model; `scores` and `curve` have room for the classes shown, doubled when full."""

    state: NDArray[np.void]
    """Shape (1,), dtype `STATE`."""
    landmark: Floats
    """Shape (SUMS,)."""
    fading: Floats
    """Shape (fading mechanisms, SUMS + 1)."""
    windows: NDArray[np.void]
    """Shape (ADWIN mechanisms,), dtype `WINDOW`."""
    ring: Floats
    """Shape (longest sliding window, SUMS): latest outcomes, of weight 0 if without usable scores."""
    labels: NDArray[np.int32]
    """Shape (auc_outcomes,): local index of the label, −1 for a class without an area."""
    scores: Floats
    """Shape (auc_outcomes, classes)."""
    reliability: Floats
    """Shape (BINS, 3), in units."""
    curve: Floats
    """Shape (classes, THRESHOLDS, 2), in units."""

    def make_room(self, classes: int, most: int) -> None:
        """Make room for this many classes, but for no more than `most`."""
        room = self.scores.shape[1]
        more = min(max(classes, 2 * room), most) - room
        if min(classes, most) <= room:
            return
        self.scores = np.hstack([self.scores, np.zeros((len(self.scores), more))])
        self.curve = np.concatenate([self.curve, np.zeros((more, THRESHOLDS, 2))])


def empty(spec: ProbabilitiesSpec) -> ModelState:
    """Build the state before the first outcome."""
    state: NDArray[Any] = np.zeros(1, STATE)
    state["unit"] = 1.0
    room = min(2, spec.max_auc_classes)
    held = max(1, spec.auc_outcomes)  # with 0, room for one outcome, which gives no area
    return ModelState(
        state,
        np.zeros(SUMS),
        np.zeros((len(spec.alphas), SUMS + 1)),
        np.zeros(len(spec.windows), WINDOW),
        np.zeros((max(spec.sizes, default=0), SUMS)),
        np.zeros(held, np.int32),
        np.zeros((held, room)),
        np.zeros((BINS, 3)),
        np.zeros((room, THRESHOLDS, 2)),
    )


LEAST = 1e-15
"""Lower limit of a score in the log loss."""
TOLERANCE = 1e-3
"""Deviation of the sum of scores from 1 above which the outcome is counted as unnormalised."""


@inner
def bin_of(score, bins):
    """Index j of the bin [j/bins, (j+1)/bins) of a score, the last closed, by the same rounded quotients."""
    j = min(int(score * bins), bins - 1)
    if j + 1 < bins and score >= (j + 1) / bins:
        return j + 1
    return j - 1 if score < j / bins else j


@inner
def drop_oldest(w):
    """Drop the oldest bucket of an ADWIN window."""
    r = w.rows - 1
    w.n -= 1 << r
    w.errors -= w.losses[r, 0]
    remove_with_sums(w, r, 1)
    leave_empty_rows(w)


@inner
def remove_with_sums(w, r, number):
    """Remove the `number` oldest buckets from row r, and their sums."""
    for k in range(PER_ROW + 1 - number):
        for c in range(SUMS):
            w.sums[r, k, c] = w.sums[r, k + number, c]
    remove_oldest(w, r, number)


@inner
def slide_adaptively(w, delta, min_subwindow, clock, follows, lost, losses):
    """Add an outcome to an ADWIN window, and check for cuts at every `clock`-th one."""
    dispersion = 1.0
    if follows:
        count_loss(w.dependence[0], lost)
        dispersion = dispersion_of(w.dependence[0])
    slot = put_newest(w, lost)
    for c in range(SUMS):
        w.sums[0, slot, c] = losses[c]
    w.n += 1
    w.errors += lost
    for r in range(ROWS):
        if w.buckets[r] <= PER_ROW:
            break
        if r == ROWS - 1:
            drop_oldest(w)
            break
        slot = put_merged(w, r)
        for c in range(SUMS):
            w.sums[r + 1, slot, c] = w.sums[r, 0, c] + w.sums[r, 1, c]
        remove_with_sums(w, r, 2)
    w.unchecked += 1
    if w.unchecked < clock:
        return
    w.unchecked = 0
    if w.n <= GRACE:
        return
    while w.n > 1 and must_cut(w, float(w.n), float(w.errors), delta, min_subwindow, dispersion):
        drop_oldest(w)


@inner
def judge(s, y, classes, values, first, end):
    """Validate the scores in [first, end); if unusable count the reason and return 0, else their sum."""
    total = 0.0
    found = False
    for k in range(first, end):
        v = values[k]
        if not (isfinite(v) and 0.0 <= v <= 1.0):
            s.invalid += 1
            return 0.0
        total += v
        found |= classes[k] == y
    if total <= 0.0:
        s.invalid += 1
        return 0.0
    s.unnormalised += abs(total - 1.0) > TOLERANCE
    if not found:
        s.label_absent += 1
        return 0.0
    s.scored += 1
    return total


@inner
def grow(s, y, classes, first, end, curve):
    """Start the curves of new classes; the outcomes so far count as having score 0 for them."""
    seen = y + 1
    for k in range(first, end):
        seen = max(seen, classes[k] + 1)
    while s.classes < min(seen, curve.shape[0]):
        curve[s.classes, 0, NEGATIVES] = s.total
        s.classes += 1


@inner
def fade(s, reliability, curve):
    """Fade reliability and curves before an outcome is counted: the unit grows to 1/ALPHA of its size."""
    s.unit /= ALPHA
    if s.unit > LIMIT:
        s.unit *= SHRINK
        s.total *= SHRINK
        for j in range(BINS):
            for c in range(3):
                reliability[j, c] *= SHRINK
        for k in range(s.classes):
            for j in range(THRESHOLDS):
                curve[k, j, NEGATIVES] *= SHRINK
                curve[k, j, POSITIVES] *= SHRINK


@inner
def keep(s, y, y_hat, classes, values, first, end, total, labels, scores, reliability, curve):
    """Count the scores of an outcome in the bins, and store them for the area under the curve."""
    fade(s, reliability, curve)
    grow(s, y, classes, first, end, curve)
    s.total += s.unit
    score = -1.0
    held = scores[s.auc_head]
    held[: s.classes] = 0.0
    for k in range(first, end):
        v = values[k] / total
        if classes[k] == y_hat:
            score = v
        if classes[k] < s.classes:
            held[classes[k]] = v
    for k in range(s.classes):
        curve[k, bin_of(held[k], THRESHOLDS), POSITIVES if k == y else NEGATIVES] += s.unit
    labels[s.auc_head] = y if y < s.classes else -1
    s.auc_head = s.auc_head + 1 if s.auc_head + 1 < scores.shape[0] else 0
    s.auc_held = min(s.auc_held + 1, scores.shape[0])
    if score < 0.0:
        s.prediction_absent += 1
        return
    j = bin_of(score, BINS)
    reliability[j, WEIGHT] += s.unit
    reliability[j, MEAN_SCORE] += s.unit * score
    reliability[j, HITS] += s.unit * (y == y_hat)


@entry
def observe(
    state,
    landmark,
    fading,
    windows,
    ring,
    labels,
    scores,
    reliability,
    curve,
    alphas,
    adwins,
    losses,
    positions,
    true_class,
    predicted_class,
    offsets,
    classes,
    values,
):
    """Evaluate the outcomes at `positions` of a batch, in order, for the model they belong to.

    The first nine arguments are the arrays of `ModelState`. `alphas` has the factor of each fading mechanism,
    and `adwins`, with a row for each ADWIN mechanism, δ, min_subwindow, clock, and 1 where the dependence of
    losses is followed. `losses` (SUMS,) is scratch space. `offsets` (n + 1,), `classes` and `values` are
    `Scores`.
    """
    s = state[0]
    for position in positions:
        y, y_hat = true_class[position], predicted_class[position]
        first, end = offsets[position], offsets[position + 1]
        if s.begun == 0:
            if first == end:
                continue
            s.begun = 1
        losses[:] = 0.0
        total = judge(s, y, classes, values, first, end) if end > first else 0.0
        if total > 0.0:
            losses[WEIGHT] = 1.0
            for k in range(first, end):
                v = values[k] / total
                if classes[k] == y:
                    losses[LOG_LOSS] = -log(max(v, LEAST))
                    losses[BRIER] += (v - 1.0) ** 2
                else:
                    losses[BRIER] += v**2
            keep(s, y, y_hat, classes, values, first, end, total, labels, scores, reliability, curve)
        for c in range(SUMS):
            landmark[c] += losses[c]
        for j in range(alphas.shape[0]):
            for c in range(SUMS):
                fading[j, c] = alphas[j] * fading[j, c] + losses[c]
            fading[j, SQUARES] = alphas[j] * alphas[j] * fading[j, SQUARES] + losses[WEIGHT]
        if ring.shape[0] > 0:
            for c in range(SUMS):
                ring[s.head, c] = losses[c]
            s.head = s.head + 1 if s.head + 1 < ring.shape[0] else 0
            s.held = min(s.held + 1, ring.shape[0])
        for j in range(windows.shape[0]):
            delta, least, clock, follows = (
                adwins[j, 0],
                int(adwins[j, 1]),
                int(adwins[j, 2]),
                adwins[j, 3] > 0.0,
            )
            slide_adaptively(windows[j], delta, least, clock, follows, int(y != y_hat), losses)
