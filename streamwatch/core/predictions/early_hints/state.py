"""State of one model's predictions as they arrive.

Predictions are counted in blocks of `BLOCK`, which go in turn to a *reference* queue and to *now*. A block of
now is compared once (a *round*) with the reference block that came `LAG` blocks of that queue earlier, so
each prediction is used in only one comparison.
"""

from __future__ import annotations

from typing import Final

import numpy as np

VERSION: Final = 1
"""Incremented when the meaning of the state changes."""
BLOCK: Final = 32
"""Number of predictions in a block."""
LAG: Final = 64
"""Length of the queue: a block of now is compared with predictions 2·LAG·BLOCK earlier."""
ROUND: Final = 2 * BLOCK
"""Number of predictions from one comparison to the next."""
REACH: Final = LAG * ROUND
"""Distance of reference and now in compared predictions: 4,096."""
CLASSES: Final = 8
"""Number of classes with features of their own, those predicted first; this is the index of all others."""
SCORE: Final = CLASSES + 1
"""Index of the score of the predicted class, after those of classes."""
FEATURES: Final = CLASSES + 2
SCORE_UNITS: Final = 255
"""Number of units per 1 in which scores are stored as integers."""
BETS: Final = (0.3, 0.9)
"""Shares of the capital put on each side of each feature."""
SIDES: Final = 2
"""Sides of a bet: increase and decrease."""
MIXED: Final = FEATURES * SIDES * len(BETS)
"""Number of bets over which capital is spread evenly, however many classes the model has."""
BINS: Final = 10
"""Number of bins of the predicted class's score, as in the reliability diagram."""
ALPHA: Final = 0.999
"""Fading factor of these bins, per prediction and per outcome with scores."""
BUCKETS: Final = 64
"""Number of stretches of prediction time kept."""
PREDICTED, LABELLED, HITS = range(3)
"""Counts in a stretch by bin of the score: predictions, those with a label, and the hits among these."""
RECENT: Final = 0.9
"""Fading factor of the shares of now, per block."""

EARLY: Final = np.dtype(
    [
        ("seen", "i8"),  # number of predictions
        ("first_ms", "i8"),  # own time of the first
        ("last_ms", "i8"),  # record time of the latest
        ("filled", "i4"),  # number of predictions in the open block
        ("scored", "i4"),  # number of these with scores
        ("is_now", "i4"),  # whether the open block is one of now
        ("waiting", "i4"),  # number of reference blocks in the queue
        ("head", "i4"),  # position of the next block in the queue
        ("rounds", "i4"),  # number of comparisons since the last hint, or the start
        ("block", "i2", (FEATURES,)),  # counts by class, and sum of scores, of the open block
        ("queue", "i2", (LAG, FEATURES)),  # sum of scores is −1 for a block without them
        ("capital", "f8", (FEATURES, SIDES, len(BETS))),
        ("gap", "f8"),  # Σ |difference of sums of scores|, faded by RECENT per round
        ("gaps", "f8"),  # its weight
        ("now", "f8", (FEATURES,)),  # counts of the blocks of now, faded by RECENT
        ("now_weight", "f8"),
        ("now_scored", "f8"),
        ("hints", "i8"),
        ("hint_feature", "i4"),  # feature of the latest hint; −1 before the first
        ("hint_side", "i4"),  # side of the latest hint: 0 more, 1 less
        ("hint_ms", "i8"),  # record time of the latest hint
        ("hint_seen", "i8"),  # number of predictions up to the latest hint
        ("predicted", "f8", (BINS,)),  # faded weight of predictions by bin of the score
        ("labelled", "f8", (BINS, 2)),  # faded weight and hits of outcomes by bin of the score
        ("labelled_outcomes", "i8"),
        ("stamp", "i8", (BUCKETS,)),  # 1 + number of the stretch, counted from the epoch; 0 if unused
        ("counts", "i4", (BUCKETS, 3, BINS)),
    ]
)
