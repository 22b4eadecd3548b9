"""Opponents that a model is judged against, and their answers.

Every answer is fixed before the label counts:

    persistent             the previous label of the model's stream (the No-Change classifier)
    persistent_at_prediction       the last label that was known when the prediction was made
    majority               the most frequent label, counts faded by .999; the leading class keeps ties
    transition             the most frequent successor of the previous label (see `kernel.shadow`)
    temporal_correction    the model's scores corrected by the previous label (see `kernel.shadow`)

At an outcome that an opponent does not answer, it takes no step. Besides the counts of agreement, the pool of
class rows has three columns for verdicts: labels faded for the majority, labels faded for the balanced
utility, and the index of the class in a cost table.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.forgetting.mechanisms import LIMIT, SHRINK
from streamwatch.core.estimators.memory.flags import (
    CORRECTED,
    LABEL_AT_PREDICTION_PAIR,
    LABEL_AT_PREDICTION_REPEAT,
    SCORED,
    SHADOWED,
    bit,
)
from streamwatch.core.estimators.memory.flags import TRANSITION as TRANSITION_RIGHT
from streamwatch.core.estimators.verdicts.utility import ALPHA as BALANCED_FADING
from streamwatch.core.estimators.verdicts.utility import BALANCED
from streamwatch.core.jit import hot, inner
from streamwatch.core.specs import OPPONENTS

PERSISTENT, PERSISTENT_KNOWN, MAJORITY, TRANSITION, TEMPORAL_CORRECTION = range(len(OPPONENTS))
EXTRA_COLUMNS = 3
"""Number of class-row columns after those of agreement: `majority_column` and the two after it."""
MAJORITY_GROWTH = 1.0 / 0.999
BALANCED_GROWTH = 1.0 / BALANCED_FADING
"""Growth of the units of faded counts per label; see `forgetting.mechanisms`."""

LABEL_COUNTS = np.dtype(
    [
        ("leader", "i8"),  # the most frequent class plus 1; 0 before the first label
        ("majority_unit", "f8"),  # amount that the newest label counts for the majority, 1 at first
        ("balanced_unit", "f8"),  # … and for the balanced utility
    ]
)
OPPONENT_PARAMETERS = np.dtype(
    [
        ("kind", "i8"),
        ("notifies", "i8"),  # detector number, plus 1, of its changes among the alarms; 0: not among them
    ]
)


@hot
def majority_column(class_counts):
    """Column of the majority's label counts; next are the balanced utility's and the cost table indices."""
    return class_counts.shape[1] - EXTRA_COLUMNS


@hot
def answer_of(m, kind, known):
    """Answer of an opponent to the current outcome; −1 for none."""
    answer = -1
    if kind == PERSISTENT:
        if m.outcomes > 0:
            answer = m.last
    elif kind == PERSISTENT_KNOWN:
        answer = known
    elif kind == MAJORITY:
        for k in range(len(m.labels)):
            answer = m.labels[k].leader - 1
    elif kind == TRANSITION:
        for k in range(len(m.shadow)):
            answer = m.shadow[k].transition
    else:
        for k in range(len(m.shadow)):
            answer = m.shadow[k].correction
    return answer


@hot
def answering_kinds(m, flags):
    """Tell which kinds of opponents answer the outcome with these flags: one bit per kind."""
    answering = (
        int(m.outcomes > 0) << PERSISTENT
        | bit(flags, LABEL_AT_PREDICTION_PAIR) << PERSISTENT_KNOWN
        | bit(flags, SHADOWED) << TRANSITION
        | bit(flags, SCORED) << TEMPORAL_CORRECTION
    )
    for k in range(len(m.labels)):
        answering |= int(m.labels[k].leader > 0) << MAJORITY
    return answering


@hot
def right_kinds(m, flags, true_class):
    """Tell which of them answer it rightly: one bit per kind."""
    right = (
        int(m.last == true_class) << PERSISTENT
        | bit(flags, LABEL_AT_PREDICTION_REPEAT) << PERSISTENT_KNOWN
        | bit(flags, TRANSITION_RIGHT) << TRANSITION
        | bit(flags, CORRECTED) << TEMPORAL_CORRECTION
    )
    for k in range(len(m.labels)):
        right |= int(m.labels[k].leader - 1 == true_class) << MAJORITY
    return right


@hot
def answer_of_stream(kind, previous, m):
    """Answer to a fold that tests only some ids.

    `previous` is the previous label of the model's whole stream.

    Opponents that learn from successive labels have no answer, since the fold does not see every label.
    """
    answer = -1
    if kind == PERSISTENT:
        answer = previous
    elif kind == MAJORITY:
        answer = answer_of(m, kind, previous)
    return answer


@hot
def count_label(m, s, class_counts, counts_majority, true_class):
    """Count a label for the majority and, if it is the model's utility, for the balanced utility."""
    column = majority_column(class_counts)
    own = m.class_counts + true_class
    if counts_majority:
        unit = s.majority_unit * MAJORITY_GROWTH
        counted = class_counts[own, column] + unit
        s.majority_unit = unit
        class_counts[own, column] = counted
        if s.leader == 0 or counted > class_counts[m.class_counts + s.leader - 1, column]:
            s.leader = true_class + 1
        if unit > LIMIT:
            s.majority_unit = unit * SHRINK
            shrink(m, class_counts, column, true_class)
    if m.utility == BALANCED:
        unit = s.balanced_unit * BALANCED_GROWTH
        s.balanced_unit = unit
        class_counts[own, column + 1] += unit
        if unit > LIMIT:
            s.balanced_unit = unit * SHRINK
            shrink(m, class_counts, column + 1, true_class)


@inner
def shrink(m, class_counts, column, true_class):
    """Scale label counts back so that their unit is about 1."""
    for k in range(max(m.classes, true_class + 1)):
        class_counts[m.class_counts + k, column] *= SHRINK
