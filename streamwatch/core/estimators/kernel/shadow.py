"""Shadow classifiers: gain from using the previous label (Žliobaitė et al. 2015, §3 and §4.1).

Four classifiers run beside the model; they use predictions, labels and, if present, class scores. Each
predicts y_t before y_t is counted, from counts faded by `FADING_FACTOR`; j is the previous label y_{t−1}:

    prequential majority   argmax_i n(i)                               (Bifet et al. 2015, §5.3)
    transition             argmax_i n(i | j)                           (§4.1)
    temporally augmented   argmax_i n(i | ŷ_t, j)                      (§3.2, surrogate of a retrained one)
    temporal correction    argmax_i s_i · (n(i | j) + 1)/(n(i) + 1)    (§3.1: s_i = P(i|X), add-one smoothed)

The denominators of P(i|j) and P(i) are the same for all i and left out. In a tie of the first three, the
class that led before stays in the lead; before any count the answer is j, j, or ŷ_t. So each row of counts
stores its leader, and a prediction costs O(1): fading all counts alike changes no order, and only the class
just counted can take the lead. Ties of temporal correction go to ŷ_t, then to the lowest class index. The
model's first outcome has no previous label and is not predicted.

A model's block consists of 1 + K + K² rows of K counts and a leader: n(i), n(i|j), n(i|ŷ,j). The sum of the
last over j is the confusion matrix except for the first outcome, which is stored separately. The shadow
classifiers of a model stop for good when it shows more than `shadow_max_classes` classes.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.forgetting.mechanisms import LIMIT, SHRINK
from streamwatch.core.estimators.memory import (
    AUGMENTED,
    CORRECTED,
    MAJORITY,
    SCORED,
    SHADOWED,
    TRANSITION,
)
from streamwatch.core.jit import hot, inner

VERSION = 2
"""Incremented when the meaning of the state changes."""
FADING_FACTOR = 0.999
MAX_CLASSES = 64
"""Largest number of classes that may be configured for shadow classifiers: a block of 2 MB."""
SHADOW_ROOM = MAX_CLASSES + 2
NO_MORE = np.int32(2**31 - 1)
"""Entry in `shadow_spans` of a model that needs no block, however many classes it shows."""

SHADOW = np.dtype(
    [
        ("unit", "f8"),  # amount that the newest outcome counted
        ("start", "i8"),  # index in `shadows` at which the block starts
        ("span", "i4"),  # number of classes K the block has room for, 0 without a block
        ("stopped", "i4"),
        ("transition", "i4"),  # answers to the current outcome, −1 for none; not part of the state
        ("correction", "i4"),
        ("first", "f8"),  # count of the model's first outcome, which has no previous label
        ("first_truth", "i4"),
        ("first_predicted", "i4"),
    ]
)


@hot
def prior_row(s):
    """Index at which the counts of y start."""
    return s.start


@hot
def transition_row(s, previous):
    """Index at which the counts of y after a previous label start."""
    return s.start + (1 + previous) * (s.span + 1)


@hot
def augmented_row(s, previous, predicted_class):
    """Index at which the counts of y given previous label and prediction start."""
    return s.start + (1 + s.span + predicted_class * s.span + previous) * (s.span + 1)


@hot
def count(shadows, row, span, true_class, unit):
    """Count a label in a row; it may take the lead."""
    shadows[row + true_class] += unit
    if shadows[row + true_class] > shadows[row + int(shadows[row + span])]:
        shadows[row + span] = true_class


@hot
def majority(s, shadows, previous):
    """Class with the largest count, or the previous label before anything was counted."""
    row = prior_row(s)
    leader = int(shadows[row + s.span])
    return leader if shadows[row + leader] > 0.0 else previous


@inner
def corrected(s, shadows, previous, predicted_class, classes, values, first, end):
    """Class chosen by Temporal Correction from the scores in [first, end)."""
    prior = prior_row(s)
    transition = transition_row(s, previous)
    best = 0.0
    choice = predicted_class
    for k in range(first, end):
        c = classes[k]
        v = values[k] * (shadows[transition + c] + s.unit) / (shadows[prior + c] + s.unit)
        tie = v == best and (c == predicted_class or (choice != predicted_class and c < choice))
        if v > best or tie:
            best = v
            choice = c
    return choice


@inner
def stop(s, shadows, allocator):
    """Stop the shadow classifiers of a model with too many classes, and free its block."""
    if s.span > 0:
        free_shadow(shadows, allocator, s.start, s.span)
    s.span = 0
    s.stopped = 1


@inner
def renormalise(s, shadows):
    """Scale the unit back to about 1, and with it all counts."""
    s.unit *= SHRINK
    s.first *= SHRINK
    for row in range(1 + s.span + s.span * s.span):
        for k in range(s.span):
            shadows[s.start + row * (s.span + 1) + k] *= SHRINK


@hot
def predict_and_learn(pools, m, s, most, batch, i):
    """Let the shadow classifiers of a model predict outcome i, then learn its label; return their flags."""
    shadows, true_class, predicted_class = pools.shadows, batch.true_class[i], batch.predicted_class[i]
    offsets, classes, values = batch.scores
    s.transition = -1
    s.correction = -1
    if s.stopped:
        return 0
    m.classes = max(m.classes, true_class + 1, predicted_class + 1)
    scored = offsets.shape[0] > 0 and offsets[i + 1] > offsets[i]
    if scored:
        for k in range(offsets[i], offsets[i + 1]):
            m.classes = max(m.classes, classes[k] + 1)
    if m.classes > most:
        stop(s, shadows, pools.shadow_allocator)
        return 0
    flags = 0
    unit = s.unit / FADING_FACTOR
    if m.outcomes > 0:
        transition = transition_row(s, m.last)
        augmented = augmented_row(s, m.last, predicted_class)
        s.transition = int(shadows[transition + s.span])
        flags = (
            1 << SHADOWED
            | (s.transition == true_class) << TRANSITION
            | (int(shadows[augmented + s.span]) == true_class) << AUGMENTED
            | (majority(s, shadows, m.last) == true_class) << MAJORITY
        )
        if scored:
            choice = corrected(
                s, shadows, m.last, predicted_class, classes, values, offsets[i], offsets[i + 1]
            )
            s.correction = choice
            flags |= 1 << SCORED | (choice == true_class) << CORRECTED
        count(shadows, transition, s.span, true_class, unit)
        count(shadows, augmented, s.span, true_class, unit)
    else:
        s.first = unit
        s.first_truth = true_class
        s.first_predicted = predicted_class
    count(shadows, prior_row(s), s.span, true_class, unit)
    s.unit = unit
    if unit > LIMIT:
        renormalise(s, shadows)
    return flags


@inner
def words(span):
    """Number of words of a block for this many classes."""
    return (1 + span + span * span) * (span + 1)


def shadow_words(span: int) -> int:
    """Number of words of a block for this many classes, for callers that are not compiled."""
    return (1 + span + span * span) * (span + 1)


@inner
def allocate_shadow(shadows, allocator, span):
    """Allocate an empty block and return its start; -1 when the pool is full.

    `allocator` works as for spans of class rows, with one free list per `span`.
    """
    head = allocator[1 + span]
    if head > 0:
        start = head - 1
        allocator[1 + span] = int(shadows[start])
    else:
        start = allocator[0]
        if start + words(span) > shadows.shape[0]:
            return -1
        allocator[0] = start + words(span)
    for k in range(start, start + words(span)):
        shadows[k] = 0.0
    for j in range(span):
        shadows[start + (1 + j) * (span + 1) + span] = j
        for predicted_class in range(span):
            shadows[start + (1 + span + predicted_class * span + j) * (span + 1) + span] = predicted_class
    return start


@inner
def free_shadow(shadows, allocator, start, span):
    """Put a block back on its free list."""
    shadows[start] = float(allocator[1 + span])
    allocator[1 + span] = start + 1


@inner
def copy_row(shadows, source, source_span, target, target_span):
    """Copy counts and leader of a row to a longer row."""
    for k in range(source_span):
        shadows[target + k] = shadows[source + k]
    shadows[target + target_span] = shadows[source + source_span]


@inner
def grow_shadow(pools, row, classes):
    """Move a model's block to one for this many classes, if it may have one.

    Return whether there was room.
    """
    m, shadows, allocator = pools.models[row], pools.shadows, pools.shadow_allocator
    most = pools.parameters[0].shadow_classes
    if classes > most:
        pools.shadow_spans[row] = NO_MORE
        return True
    span = min(classes + classes % 2, most)
    start = allocate_shadow(shadows, allocator, span)
    if start < 0:
        return False
    for j in range(len(m.shadow)):
        s = m.shadow[j]
        old = s.span
        old_start = s.start
        if old > 0:
            copy_row(shadows, old_start, old, start, span)
        for previous in range(old):
            source = old_start + (1 + previous) * (old + 1)
            copy_row(shadows, source, old, start + (1 + previous) * (span + 1), span)
            for predicted_class in range(old):
                source = old_start + (1 + old + predicted_class * old + previous) * (old + 1)
                target = start + (1 + span + predicted_class * span + previous) * (span + 1)
                copy_row(shadows, source, old, target, span)
        if old > 0:
            free_shadow(shadows, allocator, old_start, old)
        s.start = start
        s.span = span
    pools.shadow_spans[row] = span
    return True
