"""What is kept of one model that predicts with scores: records of scalars, sums, and rings of the latest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.forgetting.adwin import PER_ROW, ROWS
from streamwatch.core.estimators.registers.probabilities.spec import ProbabilitiesSpec

VERSION: Final = 1
"""Raised when the meaning of the state changes."""

Floats: TypeAlias = NDArray[np.float64]

BINS: Final = 10
"""Bins of the reliability diagram: [j/10, (j+1)/10), the last closed."""
THRESHOLDS: Final = 100
"""Bins of the threshold curve: a class is predicted from a score of j/100 on."""
ALPHA: Final = 0.999
"""Fading factor of both, per outcome whose scores can be used."""

WEIGHT, LOG_LOSS, BRIER = range(3)
"""Columns of sums: outcomes whose scores could be used, and their losses."""
SUMS: Final = 3
SQUARES: Final = 3
"""Column of Σw², in sums that fade."""

MEAN_SCORE, HITS = 1, 2
"""Columns of the reliability diagram after its `WEIGHT`: sum of scores and of hits."""
NEGATIVES, POSITIVES = range(2)
"""Columns of the threshold curve: labels of other classes, and of the class itself."""

STATE: Final = np.dtype(
    [
        ("begun", "i8"),  # whether an outcome with scores has come
        ("scored", "i8"),  # outcomes whose scores could be used
        ("invalid", "i8"),  # whose scores are no probabilities
        ("label_absent", "i8"),  # whose label has no score
        ("prediction_absent", "i8"),  # used, but the predicted class has no score
        ("unnormalised", "i8"),  # whose scores did not sum to 1
        ("head", "i8"),  # where the next losses go in the ring
        ("held", "i8"),  # losses in the ring
        ("auc_head", "i8"),  # where the next scores go
        ("auc_held", "i8"),
        ("classes", "i8"),  # classes with an area and a curve
        ("unit", "f8"),  # what the newest outcome counts in what fades by ALPHA
        ("total", "f8"),  # faded weight of all, in that unit
    ]
)

WINDOW: Final = np.dtype(
    [
        ("n", "i8"),  # outcomes in the window
        ("errors", "i8"),
        ("unchecked", "i8"),  # outcomes since the last look for a cut
        ("rows", "i8"),  # rows in use
        ("buckets", "i4", (ROWS + 1,)),  # per row
        ("losses", "i4", (ROWS, PER_ROW + 1)),  # 0/1 losses per bucket, oldest first
        ("sums", "f8", (ROWS, PER_ROW + 1, SUMS)),
    ]
)
"""An ADWIN window over the 0/1 loss, whose buckets carry sums; see `core.estimators.forgetting.adwin`."""


@dataclass(slots=True)
class ModelState:
    """Arrays of one model; `scores`, `curve` have room for so many classes as were met, doubled when full."""

    state: NDArray[np.void]
    """(1,) of `STATE`."""
    landmark: Floats
    """(SUMS,)."""
    fading: Floats
    """(mechanisms, SUMS + 1)."""
    windows: NDArray[np.void]
    """(mechanisms,) of `WINDOW`."""
    ring: Floats
    """(longest size, SUMS): latest outcomes, weight 0 for those whose scores could not be used."""
    labels: NDArray[np.int32]
    """(auc_outcomes,): −1 for a class without an area."""
    scores: Floats
    """(auc_outcomes, classes)."""
    reliability: Floats
    """(BINS, 3), in units."""
    curve: Floats
    """(classes, THRESHOLDS, 2), in units."""

    def make_room(self, classes: int, most: int) -> None:
        """Have room for so many classes, but no more than `most`."""
        room = self.scores.shape[1]
        more = min(max(classes, 2 * room), most) - room
        if min(classes, most) <= room:
            return
        self.scores = np.hstack([self.scores, np.zeros((len(self.scores), more))])
        self.curve = np.concatenate([self.curve, np.zeros((more, THRESHOLDS, 2))])


def empty(spec: ProbabilitiesSpec) -> ModelState:
    """Make the state before the first outcome."""
    state: NDArray[Any] = np.zeros(1, STATE)
    state["unit"] = 1.0
    room = min(2, spec.max_auc_classes)
    held = max(1, spec.auc_outcomes)  # where none is asked for, the outcome at hand: no area comes of one
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
