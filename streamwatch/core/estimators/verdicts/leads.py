"""Lead of a model over its opponents at one outcome, noted and taken in steps."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.forgetting.mechanisms import LIMIT, SHRINK
from streamwatch.core.estimators.memory import (
    CORRECTED,
    FLAGS,
    LABEL_AT_PREDICTION_PAIR,
    LABEL_AT_PREDICTION_REPEAT,
    SCORED,
    SHADOWED,
)
from streamwatch.core.estimators.memory import TRANSITION as TRANSITION_RIGHT
from streamwatch.core.estimators.verdicts.detector import (
    ACCURACY,
    BALANCED,
    COSTS,
    LONGEST,
    balanced_weight,
    leads_until_check,
    outcomes_until_check,
    take_steps,
)
from streamwatch.core.estimators.verdicts.detector import ALPHA as BALANCED_FADING
from streamwatch.core.estimators.verdicts.state import append_change
from streamwatch.core.jit import bytes_with, either, hot, inner
from streamwatch.core.specs import OPPONENTS

# Opponents that a model is judged against, and their answers.
#
# Every answer is fixed before the label counts:
#
#     persistent                 the previous label of the model's stream (the No-Change classifier)
#     persistent_at_prediction   the last label that was known when the prediction was made
#     majority                   the most frequent label, counts faded by .999; the leading class keeps ties
#     transition                 the most frequent successor of the previous label (see `kernel.shadow`)
#     temporal_correction        the model's scores corrected by the previous label (see `kernel.shadow`)
#
# At an outcome that an opponent does not answer, it takes no step. Besides the counts of agreement, the
# pool of class rows has three columns for verdicts: labels faded for the majority, labels faded for the
# balanced utility, and the index of the class in a cost table.


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
        ("most", "f8"),  # count of the leader
    ]
)
"""What is counted of a model's labels, beside the counts by class."""
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


def _kinds_by_flags() -> NDArray[np.uint16]:
    """By an outcome's flags: the kinds of opponents that answer it, then those whose answer is right."""
    of_flags = (
        (LABEL_AT_PREDICTION_PAIR, PERSISTENT_KNOWN),
        (SHADOWED, TRANSITION),
        (SCORED, TEMPORAL_CORRECTION),
        (LABEL_AT_PREDICTION_REPEAT, _RIGHT + PERSISTENT_KNOWN),
        (TRANSITION_RIGHT, _RIGHT + TRANSITION),
        (CORRECTED, _RIGHT + TEMPORAL_CORRECTION),
    )
    return np.array(
        [sum(((flags >> flag) & 1) << kind for flag, kind in of_flags) for flags in range(1 << FLAGS)],
        np.uint16,
    )


_RIGHT = 8
_KINDS_BY_FLAGS = _kinds_by_flags()


@hot
def kinds_of(m, flags, true_class):
    """Return the kinds of opponents that answer the outcome with these flags, and those that are right.

    One bit per kind; of those that do not answer, the second is not defined.
    """
    kinds = np.int64(_KINDS_BY_FLAGS[flags])
    answering = (kinds & ((1 << _RIGHT) - 1)) | int(m.outcomes > 0) << PERSISTENT
    right = (kinds >> _RIGHT) | int(m.last == true_class) << PERSISTENT
    for k in range(len(m.labels)):
        answering |= int(m.labels[k].leader > 0) << MAJORITY
        right |= int(m.labels[k].leader - 1 == true_class) << MAJORITY
    return answering, right


@hot
def answer_of_stream(kind, previous, m):
    """Answer of an opponent to the current outcome of a fold that tests only some ids; −1 for none.

    `previous` is the previous label of the model's whole stream. It comes in place of the label known at the
    prediction, so the opponent `persistent_at_prediction` has no answer. Nor have those that learn from
    successive labels, since the fold does not get every label. The majority is that of the fold's labels.
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
        leads = counted > s.most  # a leader's own count is larger, too: labels decide, which none foresees
        s.leader = either(leads, np.int64(true_class + 1), s.leader)
        s.most = either(leads, counted, s.most)
        if unit > LIMIT:
            s.majority_unit = unit * SHRINK
            s.most *= SHRINK
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


# Lead of a model over an opponent at the current outcome, under the model's utility.


@inner
def cost_class(m, class_counts, k, classes):
    """Index of a class in the cost table; 0 (any other class) for one that the model has not shown."""
    return int(class_counts[m.class_counts + k, majority_column(class_counts) + 2]) if k < classes else 0


@inner
def balanced_lead(m, class_counts, true_class, predicted_class):
    """Size of a non-zero lead under the balanced utility."""
    classes = max(m.classes, true_class + 1, predicted_class + 1)
    unit = m.labels[0].balanced_unit
    return balanced_weight(
        class_counts, m.class_counts, classes, majority_column(class_counts) + 1, unit, true_class
    )


@inner
def lead_by_costs(m, class_counts, utilities, true_class, predicted_class, answer):
    """Lead over another answer under a cost table."""
    classes = max(m.classes, true_class + 1, predicted_class + 1)
    table = m.utility - COSTS
    row = cost_class(m, class_counts, true_class, classes)
    own = utilities[table, row, cost_class(m, class_counts, predicted_class, classes)]
    return own - utilities[table, row, cost_class(m, class_counts, answer, classes)]


@inner
def lead_of(m, class_counts, utilities, true_class, predicted_class, answer):
    """Lead over another answer under the model's utility."""
    if m.utility >= COSTS:
        return lead_by_costs(m, class_counts, utilities, true_class, predicted_class, answer)
    sign = 1.0 if predicted_class == true_class else -1.0 if answer == true_class else 0.0
    if m.utility == ACCURACY or sign == 0.0:
        return sign
    return sign * balanced_lead(m, class_counts, true_class, predicted_class)


# Deferred steps of the e-detectors: the leads of up to 64 outcomes are noted, then their steps are taken.
#
# Loading M and C of a verdict from memory costs more than a step. So a model keeps one byte for each of its
# latest outcomes, with a bit for every opponent over which its lead was not 0, and the time of the outcome.
# Then the steps of all these outcomes are taken at once, opponent by opponent (see `take_steps`). The
# resulting records do not depend on when steps are taken.
#
# Deferring delays no result. Steps are taken at the latest where a block of 64 steps ends, at an outcome at
# which evidence starts or a verdict opens, at the first at which a verdict could be claimed, and where
# other opponents answer than before.
#
# Steps are not deferred for models with folds, whose verdict depends on all folds, and for models judged by
# costs, whose leads differ in size between opponents.


WAITING = np.dtype(
    [
        ("settled", "i8"),  # number of outcomes whose steps are taken
        ("due", "i4"),  # number of outcomes after these at which the next are taken at the latest
        ("answering", "i4"),  # one bit per kind of opponent: it answers these outcomes
        ("noted", "i8", (2,)),  # leads below 0, and above, since `schedule`: a byte for each kind of opponent
    ]
)
"""Deferred outcomes of a model; what was noted of them is in `leads`, `noted_ms` and `magnitudes`.

A byte of `noted` begins at 128 less the number of leads of its sign at which steps are taken, so its highest
bit tells that there are so many.
"""

_KINDS = range(len(OPPONENTS))
ONE_OF = np.array([sum(((kinds >> k) & 1) << (8 * k) for k in _KINDS) for kinds in range(1 << len(_KINDS))])
"""By bits of kinds of opponents: 1 in the byte of each."""
FULL = 128
"""Value of a byte of `noted` at which steps are taken."""
ANY_FULL = FULL * int(ONE_OF[-1])

HIT = 7
"""Bit of a byte of `leads` that is set if the model was right; those below are of kinds of opponents."""


@hot
def note_leads(pools, p, batch, i, flags, alarms, count):
    """Note the leads at outcome i of a batch, which has these flags, and take steps if they are due.

    Return the number of alarms.
    """
    row, true_class, predicted_class = batch.rows[i], batch.true_class[i], batch.predicted_class[i]
    models, event_ms = pools.models, batch.event_ms[i]
    m = models[row]
    w = m.waiting[0]
    outcome = m.outcomes + 1
    hit = int(predicted_class == true_class)
    answering, right = kinds_of(m, flags, true_class)
    answering &= p.kinds
    if answering != w.answering:
        count = settle_verdicts(models, p, row, outcome - 1, event_ms, i, alarms, count)
        w.answering = answering
        schedule(m, p)
    differing = answering & (right ^ -hit)  # a lead is not 0 where only one of the two is right
    at = outcome - w.settled - 1
    m.leads[at] = differing | (hit << HIT)
    m.noted_ms[at] = event_ms
    if m.utility == BALANCED and differing != 0:
        m.magnitudes[at] = balanced_lead(m, pools.class_counts, true_class, predicted_class)
    noted = w.noted[hit] + ONE_OF[differing]
    w.noted[hit] = noted
    if (noted & ANY_FULL) != 0 or at + 1 >= w.due:
        count = settle_verdicts(models, p, row, outcome, event_ms, i, alarms, count)
    return count


@inner
def settle_verdicts(models, p, row, outcome, event_ms, position, alarms, count):
    """Take all deferred steps of a model, up to `outcome` at `event_ms`; return the number of alarms."""
    m = models[row]
    for i in range(len(m.waiting)):
        w = m.waiting[i]
        number = outcome - w.settled
        if w.answering != 0 and number > 0:
            noted = -1 if number == LONGEST else (1 << number) - 1
            hits = bytes_with(m.leads, HIT) & noted
            for j in range(len(m.verdicts)):
                kind = p.opponents[j].kind
                if (w.answering >> kind) & 1:
                    differing = bytes_with(m.leads, kind) & noted
                    before = m.verdicts[j].verdict
                    changed = take_steps(m, j, p.verdict[0], differing, hits, number, outcome, event_ms)
                    if changed and p.opponents[j].notifies:
                        pace, v, detector = m.pace[j], m.verdicts[j], p.opponents[j].notifies - 1
                        count = append_change(
                            pace, v, p.verdict[0], detector, position, row, outcome, before, alarms, count
                        )
        w.settled = outcome
        schedule(m, p)
    return count


@inner
def schedule(m, p):
    """Set when the steps of a model are taken next."""
    w = m.waiting[0]
    due = LONGEST
    above, below = 0, 0
    for j in range(len(m.verdicts)):
        kind = p.opponents[j].kind
        if (w.answering >> kind) & 1:
            due = min(due, outcomes_until_check(m.pace[j]))
            better, worse = leads_until_check(m.pace[j], m.verdicts[j], p.verdict[0])
            above |= (FULL - better) << (8 * kind)
            below |= (FULL - worse) << (8 * kind)
    w.due = due
    w.noted[0] = below
    w.noted[1] = above
