"""Compiled loop over predictions: compares blocks of them, bets on their differences, and gives hints.

In a round with counts x (reference) and y (now) of a class, u = (y − x)/(1.5·√(x + y)); for sums of scores, u
= (y − x)/(2·their mean absolute difference so far). Both are limited to ±1. If the two blocks come from the
same distribution, either order is as likely, so u is symmetric about 0 given the past, and every bet of a
share b of the capital, M ← (M + 1)(1 ± b·u), has a mean of at most the number of rounds (an e-detector by
Shiryaev–Roberts sums: Shin, Ramdas, Rinaldo 2022; by symmetry as in Ramdas, Grünwald, Vovk, Shafer 2023, §6).
A hint is given when the mean of M over all bets reaches the threshold T/δ. Within T rounds without a change
this happens with probability at most δ. Then all bets start again.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from streamwatch.core.jit import entry, inner

# State of one model's predictions as they arrive.
#
# Predictions are counted in blocks of `BLOCK`, which go in turn to a *reference* queue and to *now*. A
# block of now is compared once (a *round*) with the reference block that came `LAG` blocks of that queue
# earlier, so each prediction is used in only one comparison.


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
        ("queue", "i2", (LAG, FEATURES)),  # sum of scores is −1 unless the whole block has them
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


MOST: Final = 2**31 - 1
"""Largest count in a stretch of prediction time."""
FEWEST_GAPS = 4.0
"""Weight of rounds from which on differences of scores are bet on."""


@inner
def bin_of(score):
    """Index of the bin of a score in [0, 1], the last bin closed."""
    return min(int(score * BINS), BINS - 1)


@inner
def difference(m, feature, x, y):
    """Difference u of a round in [−1, 1]; 0 if there is nothing to compare."""
    if feature < SCORE:
        u = (y - x) / (1.5 * sqrt(x + y)) if x + y > 0 else 0.0
    elif x < 0 or y < 0 or m.gaps < FEWEST_GAPS or m.gap == 0.0:
        u = 0.0
    else:
        u = (y - x) * m.gaps / (2.0 * m.gap)
    return min(1.0, max(-1.0, u))


@inner
def bet(m, oldest, threshold):
    """Compare a block of now with a reference block, and give a hint if the capital reaches the threshold."""
    total = 0.0
    best = -1.0
    feature = leaning = 0
    for f in range(FEATURES):
        u = difference(m, f, m.queue[oldest, f], m.block[f])
        for side in range(SIDES):
            signed = u if side == 0 else -u
            for b in range(len(BETS)):
                capital = (m.capital[f, side, b] + 1.0) * (1.0 + BETS[b] * signed)
                m.capital[f, side, b] = capital
                total += capital
                if capital > best:
                    best = capital
                    feature, leaning = f, side
    x, y = m.queue[oldest, SCORE], m.block[SCORE]
    if x >= 0 and y >= 0:
        m.gap = RECENT * m.gap + abs(y - x)
        m.gaps = RECENT * m.gaps + 1.0
    m.rounds += 1
    if total < MIXED * threshold:
        return
    m.hints += 1
    m.hint_feature, m.hint_side = feature, leaning
    m.hint_ms, m.hint_seen = m.last_ms, m.seen
    m.rounds = 0
    m.capital[:] = 0.0


@inner
def close_block(m, threshold):
    """Use a full block as reference or as now, in turn, and start the next one."""
    if m.scored < BLOCK:
        m.block[SCORE] = -1
    if m.is_now:
        m.now_weight = RECENT * m.now_weight + BLOCK
        m.now_scored = RECENT * m.now_scored + (BLOCK if m.block[SCORE] >= 0 else 0)
        for f in range(FEATURES):
            m.now[f] = RECENT * m.now[f] + max(m.block[f], 0)
        if m.waiting == LAG:
            bet(m, m.head, threshold)
            m.waiting -= 1
    else:
        for f in range(m.block.shape[0]):
            m.queue[m.head, f] = m.block[f]
        m.head = m.head + 1 if m.head + 1 < LAG else 0
        m.waiting += 1
    m.is_now = 1 - m.is_now
    m.block[:] = 0
    m.filled = m.scored = 0


@inner
def slot_of(event_ms, bucket_ms):
    """Ring position of the stretch of a prediction's own time."""
    return event_ms // bucket_ms % BUCKETS


@inner
def claim(m, event_ms, bucket_ms):
    """Ring position of a stretch, begun if it is new; −1 if a later stretch has that position."""
    slot = slot_of(event_ms, bucket_ms)
    stamp = event_ms // bucket_ms + 1
    if m.stamp[slot] < stamp:
        m.stamp[slot] = stamp
        m.counts[slot] = 0
    return slot if m.stamp[slot] == stamp else -1


@inner
def count(m, slot, which, j):
    """Add 1 to a count of a stretch; if it is `MOST`, halve all of the stretch first, so that shares stay."""
    if m.counts[slot, which, j] == MOST:
        for each in range(3):
            for k in range(BINS):
                m.counts[slot, each, k] -= m.counts[slot, each, k] >> 1
    m.counts[slot, which, j] += 1


@entry
def observe(models, codes, predictions, stride, bucket_ms, threshold):
    """Count n predictions, in order.

    Parameters
    ----------
    models
        Records `EARLY`, changed.
    codes
        int32 (n,): row·(CLASSES + 1) + local index of the class; −1 for a model that is not watched.
    predictions
        Records `PREDICTED` (see `predictions.kind`), (n,).
    stride
        One of this many predictions of a model is compared.
    bucket_ms
        Length of a stretch of prediction time.
    threshold
        Mean capital at which a hint is given.
    """
    for i in range(codes.shape[0]):
        if codes[i] < 0:
            continue
        m = models[codes[i] // (CLASSES + 1)]
        p = predictions[i]
        if m.seen == 0:
            m.first_ms = p.event_ms
        m.seen += 1
        m.last_ms = p.record_ms
        scored = p.score >= 0.0
        if scored:
            j = bin_of(p.score)
            for k in range(BINS):
                m.predicted[k] *= ALPHA
            m.predicted[j] += 1.0
            if 0 <= p.event_ms <= p.record_ms:  # a time in the future would replace the present stretch
                slot = claim(m, p.event_ms, bucket_ms)
                if slot >= 0:
                    count(m, slot, PREDICTED, j)
        if m.seen % stride != 0:
            continue
        m.block[codes[i] % (CLASSES + 1)] += 1
        m.filled += 1
        if scored:
            m.scored += 1
            m.block[SCORE] += int(p.score * SCORE_UNITS + 0.5)
        if m.filled == BLOCK:
            close_block(m, threshold)


@entry
def learn(models, rows, scores, hits, event_ms, resolved_ms, bucket_ms):
    """Count outcomes whose predicted class had a score, in order; each (n,).

    `event_ms` are the predictions' own times, `resolved_ms` the clocks at the outcomes. Outcomes of
    predictions earlier than the model's first one observed are left out. As later predictions may have been
    observed before, or not yet, an outcome begins the stretch of its prediction if that is missing, and
    counts for no stretch if its prediction is dated later than the outcome's clock.
    """
    for i in range(rows.shape[0]):
        m = models[rows[i]]
        if event_ms[i] < m.first_ms:
            continue
        for k in range(BINS):
            m.labelled[k, 0] *= ALPHA
            m.labelled[k, 1] *= ALPHA
        j = bin_of(scores[i])
        m.labelled[j, 0] += 1.0
        m.labelled[j, 1] += hits[i]
        m.labelled_outcomes += 1
        if 0 <= event_ms[i] <= resolved_ms[i]:
            slot = claim(m, event_ms[i], bucket_ms)
            if slot >= 0:
                count(m, slot, LABELLED, j)
                if hits[i]:
                    count(m, slot, HITS, j)


# Parameters.


@dataclass(frozen=True, slots=True)
class EarlyHintsSpec:
    """Parameters of hints from predictions before their labels come.

    Raises
    ------
    ValueError
        If `reach` is below 4,096, or `predictions` below `reach`.
    """

    predictions: int = 100_000
    """Number of predictions of a model within which a false hint has probability at most `delta`."""
    delta: float = 0.05
    """Probability of a false hint within `predictions`, in (0, 1)."""
    reach: int = REACH
    """Distance in predictions between the latest ones and those they are compared with.

    Rounded up to a multiple of 4,096; beyond 4,096 only every second, third, … prediction is compared.
    """
    max_models: int = 100
    """Largest number of models watched, those that predict first."""
    bucket_ms: int = 3_600_000
    """Length of the stretches of prediction time in which expected accuracy is compared with labels.

    64 stretches are kept.
    """

    def __post_init__(self) -> None:
        if self.reach < REACH or self.predictions < self.reach:
            raise ValueError(
                f"early hints need {REACH} ≤ reach ≤ predictions, got {self.reach} and {self.predictions}"
            )

    @property
    def stride(self) -> int:
        """Number of predictions of which one is compared."""
        return -(-self.reach // REACH)

    @property
    def threshold(self) -> float:
        """Mean capital at which a hint is given: rounds within `predictions`, divided by `delta`."""
        return self.predictions / (ROUND * self.stride) / self.delta
