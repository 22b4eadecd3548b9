"""Compiled loops over predictions and over labels, which update the sums of sampled labels."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Final

import numpy as np

from streamwatch.core.jit import entry, inner

# State of one model's sampled labels: sums by bucket of prediction time; all zero at first.
#
# Buckets are 1/16 horizon wide, by the record time of the prediction. A bucket has the number of its
# predictions by bin of the score, and the number, Σ 1/π and Σ 1/π² of its labels by bin and by value of each
# estimand. Estimates, their regression on scores, and variances are computed from these sums on each read.


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


FIRST_CELL = tuple(first for first, _ in CELLS)
LARGEST_UNIT = 2.0**256
SHRINK = 2.0**-256


@inner
def bin_of(score):
    """Bin of the score of the predicted class; 0 without one."""
    found = 0
    for k in range(len(LEAST_SCORES)):
        found += int(score >= LEAST_SCORES[k])  # false for NaN
    return found


@inner
def slot_of(m, time_ms, width_ms):
    """Slot of the bucket of a prediction's record time; −1 if it is not kept."""
    slot = time_ms // width_ms % BUCKETS
    return slot if m.stamp[slot] == time_ms // width_ms + 1 else -1


@inner
def begin_bucket(m, slot, stamp):
    """Empty a slot for a new bucket."""
    m.stamp[slot] = stamp
    m.bucket_without[slot] = 0
    m.bucket_unstated[slot] = 0
    m.bucket_requested[slot] = 0
    m.bucket_expected[slot] = 0.0
    m.bucket_spread[slot] = 0.0
    for k in range(AGES):
        m.delays[slot, k] = 0
    for b in range(BINS):
        m.predictions[b, slot] = 0
        for cell in range(len(VALUES)):
            for k in range(3):
                m.sums[b, slot, cell, k] = 0.0


@inner
def add(m, b, slot, cell, inverse):
    """Add a label to a cell."""
    m.sums[b, slot, cell, NUMBER] += 1.0
    m.sums[b, slot, cell, INVERSE] += inverse
    m.sums[b, slot, cell, INVERSE_SQUARED] += inverse * inverse


@inner
def majority_at(m, time_ms):
    """Local index of the majority class noted last at or before a time; −1 without a note."""
    number = m.notes
    oldest = max(0, number - NOTES)
    while number > oldest:
        number -= 1
        slot = number % NOTES
        if m.note_ms[slot] <= time_ms:
            return m.note_class[slot]
    return -1


@inner
def note_majority(m, note_ms):
    """Note the majority class of the labels so far, if it differs from the last note.

    Notes begin after `LEAST_LABELS` labels, and are at least `note_ms` apart.
    """
    if m.observed < LEAST_LABELS:
        return
    last = (m.notes - 1) % NOTES
    if m.notes > 0 and (m.note_class[last] == m.leader - 1 or m.label_ms < m.note_ms[last] + note_ms):
        return
    slot = m.notes % NOTES
    m.note_ms[slot] = m.label_ms
    m.note_class[slot] = m.leader - 1
    m.notes += 1


@inner
def count_for_majority(m, true_class, inverse):
    """Count a label with its weight 1/π; a class takes the lead when it weighs more than the leader."""
    m.observed += 1
    m.unit = 1.0 if m.unit == 0.0 else m.unit / FADING
    if true_class < 0:
        return
    m.weights[true_class] += inverse * m.unit
    if m.leader == 0 or m.weights[true_class] > m.weights[m.leader - 1]:
        m.leader = true_class + 1
    if m.unit > LARGEST_UNIT:
        m.unit *= SHRINK
        for k in range(CLASSES):
            m.weights[k] *= SHRINK


@entry
def count(models, rows, predictions, probabilities, requests, width_ms):
    """Count n predictions, in order.

    Parameters
    ----------
    models
        Records `SAMPLED`, changed.
    rows
        int32 (n,): row of the model; −1 for one that is not kept.
    predictions
        Records `PREDICTED` (see `predictions.kind`), (n,).
    probabilities, requests
        float64 and int8 (n,): π, 0 without; whether the label was asked for (`requests_of`).
    width_ms
        Width of a bucket.
    """
    for i in range(rows.shape[0]):
        if rows[i] < 0:
            continue
        m = models[rows[i]]
        p = predictions[i]
        probability = probabilities[i]
        if m.seen == 0:
            if probability == 0.0:
                continue
            m.first_ms = p.record_ms
        m.clock_ms = max(m.clock_ms, p.record_ms)
        slot = p.record_ms // width_ms % BUCKETS
        stamp = p.record_ms // width_ms + 1
        if m.stamp[slot] != stamp:
            begin_bucket(m, slot, stamp)
        if probability == 0.0:
            m.without += 1
            m.bucket_without[slot] += 1
            continue
        m.least = probability if m.seen == 0 else min(m.least, probability)
        m.most = max(m.most, probability)
        m.seen += 1
        m.expected += probability
        m.predictions[bin_of(p.score), slot] += 1
        m.bucket_expected[slot] += probability
        m.bucket_spread[slot] += probability * (1.0 - probability)
        if requests[i] < 0:
            m.bucket_unstated[slot] += 1
        elif requests[i] > 0:
            m.requested += 1
            m.bucket_requested[slot] += 1


@entry
def learn(
    models,
    rows,
    true_class,
    predicted_class,
    is_hit,
    known,
    scores,
    probabilities,
    requests,
    resolved_ms,
    waited_ms,
    width_ms,
    note_ms,
    ages_ms,
):
    """Count the labels of n predictions with a probability, in order.

    Parameters
    ----------
    models
        Records `SAMPLED`, changed.
    rows
        int32 (n,): row of the model; −1 for one that is not kept.
    true_class, predicted_class
        int32 (n,): local indices of the classes; −1 for one beyond the limit.
    is_hit
        bool (n,).
    known
        int8 (n,): the last label known at prediction: −1 none, 1 equal to the prediction, 2 equal to the
        label and not the prediction, 0 another.
    scores
        float64 (n,): score of the predicted class, NaN without one.
    probabilities, requests
        As for `count`.
    resolved_ms, waited_ms
        int64 (n,): when label and prediction met, and how long the prediction had waited.
    width_ms, note_ms, ages_ms
        Width of a bucket, least distance of two notes of the majority, and ages (AGES,).
    """
    for i in range(rows.shape[0]):
        if rows[i] < 0:
            continue
        m = models[rows[i]]
        made_ms = resolved_ms[i] - max(waited_ms[i], 0)
        if m.seen == 0 or made_ms < m.first_ms:
            continue
        m.clock_ms = max(m.clock_ms, resolved_ms[i])
        if requests[i] == 0:
            m.unasked += 1
            continue
        m.label_ms = max(m.label_ms, resolved_ms[i])
        inverse = 1.0 / probabilities[i]
        note_majority(m, note_ms)
        m.labels += 1
        slot = slot_of(m, made_ms, width_ms)
        if slot >= 0:  # later predictions that were counted before may have emptied it
            k = 0
            while k < AGES - 1 and ages_ms[k] < waited_ms[i]:
                k += 1
            m.delays[slot, k] += 1
            b = bin_of(scores[i])
            hit = is_hit[i]
            add(m, b, slot, FIRST_CELL[LOSS] + (0 if hit else 1), inverse)
            if known[i] >= 0:
                lead = 0
                if known[i] != 1:
                    lead = 1 if hit else -1 if known[i] == 2 else 0
                add(m, b, slot, FIRST_CELL[NO_CHANGE] + 1 + lead, inverse)
            majority = majority_at(m, made_ms)
            if majority >= 0:
                lead = 0
                if predicted_class[i] != majority:
                    lead = 1 if hit else -1 if true_class[i] == majority else 0
                add(m, b, slot, FIRST_CELL[MAJORITY] + 1 + lead, inverse)
        count_for_majority(m, true_class[i], inverse)
