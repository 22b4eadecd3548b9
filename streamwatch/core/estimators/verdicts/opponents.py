"""Whom a model is judged against, what they answer, and the lead over them.

Every answer is fixed before the label counts:

    persistent             the previous label of the model's stream (the No-Change classifier)
    persistent_at_prediction       the last label that was known when the prediction was made
    majority               the most frequent label, counts faded by .999; the leading class keeps ties
    transition             the most frequent successor of the previous label (see `kernel.shadow`)
    temporal_correction    the model's scores corrected by the previous label (see `kernel.shadow`)

An opponent that has no answer takes no step. Beside the counts of agreement, the pool of class rows has three
columns for this: labels faded for the majority, labels faded for the balanced utility, and where the class
stands in a table of costs.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.forgetting.mechanisms import LIMIT, SHRINK
from streamwatch.core.estimators.verdicts.detector import observe_lead
from streamwatch.core.estimators.verdicts.folds import CHANGED, UNCHANGED, observe_fold
from streamwatch.core.estimators.verdicts.utility import ALPHA as BALANCED_FADING
from streamwatch.core.estimators.verdicts.utility import balanced_weight
from streamwatch.core.jit import hot, inner
from streamwatch.core.specs import OPPONENTS

PERSISTENT, PERSISTENT_KNOWN, MAJORITY, TRANSITION, TEMPORAL_CORRECTION = range(len(OPPONENTS))
ACCURACY, BALANCED, COSTS = 0, 1, 2
"""Utility of a model; tables of costs count upward from `COSTS`."""

EXTRA_COLUMNS = 3
"""Columns of class rows after those of agreement: see `majority_column` and the two after it."""
MAJORITY_GROWTH = 1.0 / 0.999
BALANCED_GROWTH = 1.0 / BALANCED_FADING
"""How the units of faded counts grow; see `forgetting.mechanisms`."""

LABEL_COUNTS = np.dtype(
    [
        ("leader", "i8"),  # the most frequent class plus 1; 0 before the first label
        ("majority_unit", "f8"),  # what the newest label counts for the majority, 1 at first
        ("balanced_unit", "f8"),  # … and for the balanced utility
    ]
)
OPPONENT_PARAMETERS = np.dtype(
    [
        ("kind", "i8"),
        ("notifies", "i8"),  # whether its changes are appended to the alarms, and as which detector plus 1
    ]
)


@hot
def majority_column(class_counts):
    """Column of the labels that the majority counts; next to it those of the balanced utility, then costs."""
    return class_counts.shape[1] - EXTRA_COLUMNS


@hot
def answer_of(m, kind, known):
    """The answer of an opponent to the outcome at hand; −1 for none."""
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
def answer_of_stream(kind, previous, m):
    """The answer to a fold that tests some ids only; `previous` is the previous label of its model's stream.

    Opponents that learn from successive labels have none: the fold does not see them all.
    """
    answer = -1
    if kind == PERSISTENT:
        answer = previous
    elif kind == MAJORITY:
        answer = answer_of(m, kind, previous)
    return answer


@inner
def cost_class(m, class_counts, k, classes):
    """Index of a class in the table of costs; one that the model has not shown is any other."""
    return int(class_counts[m.class_counts + k, majority_column(class_counts) + 2]) if k < classes else 0


@inner
def other_lead(m, class_counts, utilities, true_class, predicted_class, answer):
    """Lead by a utility that is not accuracy."""
    classes = max(m.classes, true_class + 1, predicted_class + 1)
    if m.utility >= COSTS:
        table = m.utility - COSTS
        row = cost_class(m, class_counts, true_class, classes)
        own = utilities[table, row, cost_class(m, class_counts, predicted_class, classes)]
        return own - utilities[table, row, cost_class(m, class_counts, answer, classes)]
    sign = 1.0 if predicted_class == true_class else -1.0 if answer == true_class else 0.0
    if sign == 0.0:
        return 0.0
    unit = m.labels[0].balanced_unit
    return sign * balanced_weight(
        class_counts, m.class_counts, classes, majority_column(class_counts) + 1, unit, true_class
    )


@inner
def append_change(pace, v, p, detector, position, row, outcome, before, alarms, count):
    """Write row `count` of `alarms`: the verdict changed; gives the new number of rows."""
    alarm = alarms[count]
    alarm.position = position
    alarm.row = row
    alarm.detector = detector
    alarm.ordinal = v.changes
    alarm.outcome = outcome
    alarm.statistic = v.claimed
    alarm.threshold = p.threshold
    alarm.before = float(before)
    alarm.after = float(v.verdict)
    alarm.n_eff = float(pace.steps)
    alarm.since = v.since
    alarm.since_ms = v.since_ms
    return count + 1


@hot
def judge(
    models,
    next_fold,
    class_counts,
    utilities,
    p,
    true_class,
    predicted_class,
    known,
    event_ms,
    position,
    row,
    alarms,
    count,
):
    """Judge the outcome at hand against every opponent, then count its label; gives the number of alarms.

    Called before the model learns from it. `known` is the label known at the prediction, −1 for none.
    """
    m = models[row]
    outcome = m.outcomes + 1
    folded = next_fold[row] >= 0
    for j in range(len(m.verdicts)):
        kind = p.opponents[j].kind
        answer = answer_of_stream(kind, known, m) if folded and p.folds_share else answer_of(m, kind, known)
        if answer < 0:
            continue
        lead = 0.0
        if answer != predicted_class:
            if m.utility == ACCURACY:
                lead = 1.0 if predicted_class == true_class else -1.0 if answer == true_class else 0.0
            else:
                lead = other_lead(m, class_counts, utilities, true_class, predicted_class, answer)
        pace = m.pace[j]
        v = m.verdicts[j]
        if folded:
            told = observe_fold(models, next_fold, row, j, p, lead, outcome, event_ms)
            before = told - CHANGED
            changed = told != UNCHANGED
        else:
            before = v.verdict
            changed = observe_lead(pace, v, p.verdict[0], lead, outcome, event_ms)
        if changed and p.opponents[j].notifies:
            detector = p.opponents[j].notifies - 1
            count = append_change(
                pace, v, p.verdict[0], detector, position, row, outcome, before, alarms, count
            )
    for j in range(len(m.labels)):
        count_label(m, m.labels[j], class_counts, p.counts_majority, true_class)
    return count


@hot
def count_label(m, s, class_counts, counts_majority, true_class):
    """Count a label for the majority and, if the model's utility asks for it, for the balanced utility."""
    column = majority_column(class_counts)
    if counts_majority:
        s.majority_unit *= MAJORITY_GROWTH
        class_counts[m.class_counts + true_class, column] += s.majority_unit
        if (
            s.leader == 0
            or class_counts[m.class_counts + true_class, column]
            > class_counts[m.class_counts + s.leader - 1, column]
        ):
            s.leader = true_class + 1
        if s.majority_unit > LIMIT:
            s.majority_unit *= SHRINK
            shrink(m, class_counts, column, true_class)
    if m.utility == BALANCED:
        s.balanced_unit *= BALANCED_GROWTH
        class_counts[m.class_counts + true_class, column + 1] += s.balanced_unit
        if s.balanced_unit > LIMIT:
            s.balanced_unit *= SHRINK
            shrink(m, class_counts, column + 1, true_class)


@inner
def shrink(m, class_counts, column, true_class):
    """Bring counts of labels back to where their unit is about 1."""
    for k in range(max(m.classes, true_class + 1)):
        class_counts[m.class_counts + k, column] *= SHRINK
