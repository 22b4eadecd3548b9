"""What is kept of the predictions of one model, as they arrive.

Predictions are counted in blocks of `BLOCK`, in turn one of a *reference* queue and one of *now*. A block of
now is compared with the reference block that came `LAG` blocks of that queue earlier, once (a *round*), so
that each prediction is used in one comparison only.
"""

from __future__ import annotations

from typing import Final

import numpy as np

VERSION: Final = 1
"""Raised when the meaning of the state changes."""
BLOCK: Final = 32
"""Predictions in a block."""
LAG: Final = 64
"""Reference blocks that wait: a block of now is compared with predictions 2·LAG·BLOCK earlier."""
ROUND: Final = 2 * BLOCK
"""Predictions from one comparison to the next."""
REACH: Final = LAG * ROUND
"""How many of the predictions looked at came between the reference and now: 4,096."""
CLASSES: Final = 8
"""Classes told apart, those predicted first; all others are one more, at this index."""
SCORE: Final = CLASSES + 1
"""Index, after those of classes, of the score of the predicted class."""
FEATURES: Final = CLASSES + 2
SCORE_UNITS: Final = 255
"""A score is kept in whole parts of so many."""
BETS: Final = (0.3, 0.9)
"""Shares of the capital put on each side of each feature."""
SIDES: Final = 2
"""More of it, and less."""
MIXED: Final = FEATURES * SIDES * len(BETS)
"""Bets over which capital is spread evenly, whether or not the model has so many classes."""
BINS: Final = 10
"""Bins of the score of the predicted class, as in the reliability diagram."""
ALPHA: Final = 0.999
"""Fading factor of what is held by these bins, per prediction and per outcome with scores."""
BUCKETS: Final = 64
"""Stretches of prediction time kept."""
PREDICTED, LABELLED, HITS = range(3)
"""What is counted in a stretch by bin of the score: predictions, those whose label has come, and the right
ones among these."""
RECENT: Final = 0.9
"""Fading factor of the shares of now, per block."""

EARLY: Final = np.dtype(
    [
        ("seen", "i8"),  # predictions
        ("first_ms", "i8"),  # own time of the first
        ("last_ms", "i8"),  # record time of the latest
        ("filled", "i4"),  # predictions in the open block
        ("scored", "i4"),  # of these, with scores
        ("is_now", "i4"),  # whether the open block is one of now
        ("waiting", "i4"),  # reference blocks in the queue
        ("head", "i4"),  # where the next goes
        ("rounds", "i4"),  # comparisons since the last hint, or the start
        ("block", "i2", (FEATURES,)),  # counts by class, and sum of scores, of the open block
        ("queue", "i2", (LAG, FEATURES)),  # −1 for the sum of scores of a block without them
        ("capital", "f8", (FEATURES, SIDES, len(BETS))),
        ("gap", "f8"),  # Σ |difference of sums of scores|, faded by RECENT per round
        ("gaps", "f8"),  # its weight
        ("now", "f8", (FEATURES,)),  # counts of blocks of now, faded by RECENT
        ("now_weight", "f8"),
        ("now_scored", "f8"),
        ("hints", "i8"),
        ("hint_feature", "i4"),  # of the latest hint; −1 before the first
        ("hint_side", "i4"),  # 0 more, 1 less
        ("hint_ms", "i8"),  # its record time
        ("hint_seen", "i8"),  # predictions up to it
        ("predicted", "f8", (BINS,)),  # faded weight of predictions by the score of their class
        ("labelled", "f8", (BINS, 2)),  # faded weight and hits of outcomes likewise
        ("labelled_outcomes", "i8"),
        ("stamp", "i8", (BUCKETS,)),  # 1 + number of the stretch from the epoch on; 0: none
        ("counts", "i4", (BUCKETS, 3, BINS)),
    ]
)
