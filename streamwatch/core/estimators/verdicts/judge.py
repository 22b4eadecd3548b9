"""Verdicts on one model at one outcome: leads over its opponents, steps, and changes to report."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.verdicts.deferred import HALF, LONGEST, NOTES, due_of, room_of, take_all
from streamwatch.core.estimators.verdicts.detector import observe_lead
from streamwatch.core.estimators.verdicts.folds import CHANGED, UNCHANGED, observe_fold
from streamwatch.core.estimators.verdicts.opponents import (
    answer_of,
    answer_of_stream,
    count_label,
    majority_column,
)
from streamwatch.core.estimators.verdicts.utility import ACCURACY, BALANCED, COSTS, balanced_weight
from streamwatch.core.jit import hot, inner


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


@inner
def append_change(pace, v, p, detector, position, row, outcome, before, alarms, count):
    """Write a change of the verdict to row `count` of `alarms`; return the new number of rows."""
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
    """Judge the current outcome against every opponent, then count its label; return the number of alarms.

    Called before the model learns from the outcome. `known` is the label known at prediction, −1 for none.
    """
    m = models[row]
    if len(m.marks) > 0:
        if next_fold[row] >= 0 or m.utility >= COSTS:
            count = judge_at_once(
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
            )
        else:
            count = note(
                models,
                class_counts,
                p,
                true_class,
                predicted_class,
                known,
                event_ms,
                position,
                row,
                alarms,
                count,
            )
    for j in range(len(m.labels)):
        count_label(m, m.labels[j], class_counts, p.counts_majority, true_class)
    return count


@hot
def note(
    models,
    class_counts,
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
    """Note the lead over every opponent at the current outcome, take steps if due.

    Return number of alarms.
    """
    m = models[row]
    w = m.waiting[0]
    outcome = m.outcomes + 1
    hit = predicted_class == true_class
    answering, better, worse = 0, 0, 0
    for j in range(len(m.marks)):
        answer = answer_of(m, p.opponents[j].kind, known)
        answers = int(answer >= 0)
        right = int(answer == true_class)
        answering |= answers << j
        better |= (answers & int(hit) & (1 - right)) << j
        worse |= (right & (1 - int(hit))) << j
    if answering != w.answering:
        count = settle_verdicts(models, p, row, outcome - 1, event_ms, position, alarms, count)
        w.answering = answering
    slot = w.noted
    for j in range(len(m.marks)):
        m.marks[j].steps |= (((better >> j) & 1) | (((worse >> j) & 1) << HALF)) << slot
    differs = (better | worse) != 0
    if differs and m.utility == BALANCED:
        m.notes[slot].magnitude = balanced_lead(m, class_counts, true_class, predicted_class)
    m.notes[slot].outcome = outcome
    m.notes[slot].event_ms = event_ms
    w.noted = slot + int(differs)
    if w.noted >= w.full or outcome >= w.due:
        everything = outcome >= w.due or w.noted == NOTES
        count = take_due(models, p, row, outcome, event_ms, position, alarms, count, everything)
    return count


@inner
def settle_verdicts(models, p, row, outcome, event_ms, position, alarms, count):
    """Take all deferred steps of a model, up to `outcome` at `event_ms`; return the number of alarms."""
    for k in range(len(models[row].waiting)):
        if models[row].waiting[k].answering != 0:
            count = take_due(models, p, row, outcome, event_ms, position, alarms, count, True)
        else:
            for j in range(len(models[row].marks)):
                models[row].marks[j].settled = outcome
    return count


@inner
def take_due(models, p, row, outcome, event_ms, position, alarms, count, everything):
    """Take deferred steps up to `outcome`, of all opponents or of those due; return the number of alarms."""
    m = models[row]
    w = m.waiting[0]
    if everything:
        w.due = outcome + LONGEST
    full = NOTES
    for j in range(len(m.marks)):
        marks, pace, v = m.marks[j], m.pace[j], m.verdicts[j]
        if everything or w.noted >= marks.full:
            if (w.answering >> j) & 1:
                if marks.settled < outcome:
                    before = v.verdict
                    if take_all(m, j, p.verdict[0], outcome, event_ms) and p.opponents[j].notifies:
                        detector = p.opponents[j].notifies - 1
                        count = append_change(
                            pace, v, p.verdict[0], detector, position, row, outcome, before, alarms, count
                        )
            else:
                marks.settled = outcome
            marks.full = room_of(pace, v, p.verdict[0]) + (0 if everything else w.noted)
            w.due = min(w.due, outcome + due_of(pace))
        full = min(full, marks.full)
    if everything:
        w.noted = 0
    w.full = full
    return count


@inner
def judge_at_once(
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
    """Take the steps of the current outcome without deferring them; return the number of alarms."""
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
            lead = lead_of(m, class_counts, utilities, true_class, predicted_class, answer)
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
    return count
