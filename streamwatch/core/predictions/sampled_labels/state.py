"""State of one model's sampled labels: sums by bucket of prediction time; all zero at first.

Buckets are 1/16 horizon wide, by the record time of the prediction. A bucket has the number of its
predictions by bin of the score, and the number, Σ 1/π and Σ 1/π² of its labels by bin and by value of each
estimand. Estimates, their regression on scores, and variances are computed from these sums on each read.
"""

from __future__ import annotations

from typing import Final

import numpy as np

VERSION: Final = 1
"""Incremented when the meaning of the state changes."""
WIDTHS: Final = 16
"""Number of buckets per horizon."""
BUCKETS: Final = 48
"""Number of buckets kept: 17 whose predictions may still be labelled, and 31 that are settled."""
AGES: Final = 9
"""Number of ages by which labels may be complete: the horizon / 2⁸, / 2⁷, …, the horizon."""

LEAST_SCORES: Final = (0.0, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.99)
"""Least score of the predicted class in each bin but the first …"""
EXPECTED_ERRORS: Final = (0.0, 0.8, 0.57, 0.425, 0.275, 0.15, 0.07, 0.025, 0.005)
"""… and f, the expected error near the bin's middle. Bin 0 has the predictions without a score."""
BINS: Final = len(EXPECTED_ERRORS)

LOSS, NO_CHANGE, MAJORITY = range(3)
"""Estimands: the loss, and the lead over either opponent."""
OPPONENTS: Final = ("persistent_at_prediction", "majority")
"""Opponents whose answers are fixed when the prediction is made, as the label `opponent` names them."""
CELLS: Final = ((0, 2), (2, 5), (5, 8))
"""Range of the cells of each estimand, (start, stop): one cell for each value."""
VALUES: Final = (0.0, 1.0, -1.0, 0.0, 1.0, -1.0, 0.0, 1.0)
"""Value of each cell."""
NUMBER, INVERSE, INVERSE_SQUARED = range(3)
"""Sums of a cell: labels, Σ 1/π and Σ 1/π²."""

CLASSES: Final = 64
"""Number of classes of a model that can be the majority, those labelled first."""
NOTES: Final = 33
"""Number of notes of the majority class that are kept; they are at least 1/32 horizon apart."""
LEAST_LABELS: Final = 100
"""Number of labels from which on the majority is noted."""
FADING: Final = 0.999
"""Factor per label by which counts for the majority fade."""

SAMPLED: Final = np.dtype(
    [
        ("seen", "i8"),  # number of predictions with a probability
        ("first_ms", "i8"),  # record time of the first
        ("clock_ms", "i8"),  # latest record time of a prediction or label
        ("without", "i8"),  # predictions without a probability since the first with one
        ("requested", "i8"),  # predictions that state that their label was asked for
        ("expected", "f8"),  # Σπ
        ("least", "f8"),  # smallest π …
        ("most", "f8"),  # … and largest
        ("labels", "i8"),  # labels that count …
        ("unasked", "i8"),  # … and those of predictions that state that theirs was not asked for
        ("observed", "i8"),  # labels counted for the majority
        ("label_ms", "i8"),  # latest time of a label
        ("leader", "i8"),  # 1 + local index of the most frequent class; 0 before the first
        ("unit", "f8"),  # weight of the newest label
        ("weights", "f8", (CLASSES,)),  # Σ 1/π of labels by class, faded
        ("notes", "i8"),
        ("note_ms", "i8", (NOTES,)),
        ("note_class", "i8", (NOTES,)),
        ("stamp", "i8", (BUCKETS,)),  # 1 + number of the bucket, counted from the epoch; 0 if unused
        ("bucket_without", "i8", (BUCKETS,)),
        ("bucket_unstated", "i8", (BUCKETS,)),  # without a statement whether their label was asked for
        ("bucket_requested", "i8", (BUCKETS,)),
        ("bucket_expected", "f8", (BUCKETS,)),  # Σπ
        ("bucket_spread", "f8", (BUCKETS,)),  # Σπ(1 − π)
        ("delays", "i8", (BUCKETS, AGES)),  # labels by the first age that is not below their delay
        ("predictions", "i8", (BINS, BUCKETS)),
        ("sums", "f8", (BINS, BUCKETS, len(VALUES), 3)),
    ]
)
"""Sums of one model; see `observe`."""


def width_of(horizon_ms: int) -> int:
    """Width of a bucket of prediction time, in milliseconds."""
    return -(-horizon_ms // WIDTHS)


def ages_of(horizon_ms: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Ages in milliseconds, each at least 1, not decreasing, shape (AGES,); the last is the horizon."""
    ages = [max(1, horizon_ms >> (AGES - 1 - k)) for k in range(AGES)]
    return np.array([*ages[:-1], horizon_ms], np.int64)
