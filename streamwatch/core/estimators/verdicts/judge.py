"""Verdicts on one model at one outcome: leads over its opponents, steps, and changes to report."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.verdicts.detector import COSTS, observe_lead
from streamwatch.core.estimators.verdicts.folds import CHANGED, UNCHANGED, observe_fold
from streamwatch.core.estimators.verdicts.leads import (
    answer_of,
    answer_of_stream,
    count_label,
    lead_of,
    note_leads,
)
from streamwatch.core.estimators.verdicts.state import append_change
from streamwatch.core.jit import hot, inner


@hot
def judge(pools, p, batch, i, flags, alarms, count):
    """Judge outcome i of a batch against every opponent, then count its label; return the number of alarms.

    Called before the model learns from the outcome, whose `flags` are given.
    """
    row = batch.rows[i]
    m = pools.models[row]
    if len(m.waiting) > 0:
        if pools.next_fold[row] >= 0 or m.utility >= COSTS:
            count = judge_at_once(pools, p, batch, i, alarms, count)
        else:
            count = note_leads(pools, p, batch, i, flags, alarms, count)
    for j in range(len(m.labels)):
        count_label(m, m.labels[j], pools.class_counts, p.counts_majority, batch.true_class[i])
    return count


@inner
def judge_at_once(pools, p, batch, i, alarms, count):
    """Take the steps of outcome i without deferring them; return the number of alarms.

    There is none against an opponent that has no answer to this outcome.
    """
    row, true_class, predicted_class = batch.rows[i], batch.true_class[i], batch.predicted_class[i]
    known, event_ms = batch.label_at_prediction[i], batch.event_ms[i]
    models, next_fold = pools.models, pools.next_fold
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
            lead = lead_of(m, pools.class_counts, pools.utilities, true_class, predicted_class, answer)
        pace = m.pace[j]
        v = m.verdicts[j]
        if folded:
            result = observe_fold(models, next_fold, row, j, p, lead, outcome, event_ms)
            before = result - CHANGED
            changed = result != UNCHANGED
        else:
            before = v.verdict
            changed = observe_lead(pace, v, p.verdict[0], lead, outcome, event_ms)
        if changed and p.opponents[j].notifies:
            detector = p.opponents[j].notifies - 1
            count = append_change(pace, v, p.verdict[0], detector, i, row, outcome, before, alarms, count)
    return count
