"""Compiled loop over predictions: blocks in turn, bets on the differences of each round, capital and hints.

In a round with counts x (reference) and y (now) of a class, u = (y − x)/(1.5·√(x + y)); for sums of scores, u
= (y − x)/(2·their mean absolute difference so far). Both are limited to ±1. If the two blocks come from the
same distribution, either order is as likely, so u is symmetric about 0 given the past, and every bet of a
share b of the capital, M ← (M + 1)(1 ± b·u), has a mean of at most its number of rounds (an e-detector by
Shiryaev–Roberts sums: Shin, Ramdas, Rinaldo 2022; by symmetry as in Ramdas, Grünwald, Vovk, Shafer 2023, §6).
A hint is given when the mean of M over all bets reaches the threshold T/δ. Within T rounds without a change
this happens with probability at most δ. Then all bets start again.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from math import sqrt

from streamwatch.core.jit import entry, inner
from streamwatch.core.predictions.early_hints.state import (
    ALPHA,
    BETS,
    BINS,
    BLOCK,
    BUCKETS,
    CLASSES,
    FEATURES,
    HITS,
    LABELLED,
    LAG,
    MIXED,
    PREDICTED,
    RECENT,
    SCORE,
    SCORE_UNITS,
    SIDES,
)

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
        m.queue[m.head] = m.block
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
def put(m, j, event_ms, bucket_ms):
    """Count a prediction in its stretch; if two stretches need the same position, the later one gets it."""
    slot = slot_of(event_ms, bucket_ms)
    stamp = event_ms // bucket_ms + 1
    if m.stamp[slot] < stamp:
        m.stamp[slot] = stamp
        m.counts[slot] = 0
    if m.stamp[slot] == stamp:
        m.counts[slot, PREDICTED, j] += 1


@entry
def observe(models, places, predictions, stride, bucket_ms, threshold):
    """Count n predictions, in order.

    Parameters
    ----------
    models
        Records `EARLY`, changed.
    places
        int32 (n,): row·(CLASSES + 1) + local index of the class; −1 for a model that is not watched.
    predictions
        Records `PREDICTED` (see `predictions.batch`), (n,).
    stride
        One of this many predictions of a model is compared.
    bucket_ms
        Length of a stretch of prediction time.
    threshold
        Mean capital at which a hint is given.
    """
    for i in range(places.shape[0]):
        if places[i] < 0:
            continue
        m = models[places[i] // (CLASSES + 1)]
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
                put(m, j, p.event_ms, bucket_ms)
        if m.seen % stride != 0:
            continue
        m.block[places[i] % (CLASSES + 1)] += 1
        m.filled += 1
        if scored:
            m.scored += 1
            m.block[SCORE] += int(p.score * SCORE_UNITS + 0.5)
        if m.filled == BLOCK:
            close_block(m, threshold)


@entry
def learn(models, rows, scores, hits, event_ms, bucket_ms):
    """Count outcomes whose predicted class had a score, in order; each (n,).

    `event_ms` are the predictions' own times. Outcomes of predictions earlier than the model's first one
    observed are left out.
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
        slot = slot_of(event_ms[i], bucket_ms)
        if m.stamp[slot] == event_ms[i] // bucket_ms + 1:
            m.counts[slot, LABELLED, j] += 1
            m.counts[slot, HITS, j] += int(hits[i])
