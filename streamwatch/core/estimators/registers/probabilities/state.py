"""State of one model that predicts with scores: records of scalars, sums, and rings of the latest scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.forgetting.adwin import PER_ROW, ROWS
from streamwatch.core.estimators.registers.probabilities.spec import ProbabilitiesSpec

VERSION: Final = 1
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
    """Shape (mechanisms, SUMS + 1)."""
    windows: NDArray[np.void]
    """Shape (mechanisms,), dtype `WINDOW`."""
    ring: Floats
    """Shape (longest size, SUMS): latest outcomes, with weight 0 for those without usable scores."""
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
