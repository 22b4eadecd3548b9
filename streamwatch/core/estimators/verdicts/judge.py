"""Verdicts on one model at one outcome, or on one that predicts in folds: leads, steps, changes to report."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.verdicts.detector import (
    COSTS,
    change,
    observe_lead,
    reset_side,
    set_missing_starts,
    total,
)
from streamwatch.core.estimators.verdicts.leads import (
    answer_of,
    answer_of_stream,
    count_label,
    lead_of,
    note_leads,
)
from streamwatch.core.estimators.verdicts.state import BETTER, STAKES, WORSE, append_change
from streamwatch.core.jit import hot, inner

# Verdict on a model that predicts in folds, from the mean of its folds' evidence.
#
# Every fold has its own e-detector (see `detector`), which never claims on its own. With M_f = Σ_λ M_λ/8 of
# fold f, the model is judged by M̄ = Σ_f M_f/k. A mean of e-detectors is an e-detector whatever their
# dependence, so the folds may test the same ids. Folds whose evidence has not started count as M_f = 0; the
# others are in the mean. M̄ is checked when a fold starts, and when one in the mean takes a step with d ≠ 0:
#
#     claim when M̄ ≥ A; then M and C of that side are 0 in every fold in the mean
#
# *Since* is the start of the λ and the fold with the largest C, among folds in the mean, counted in that
# fold's outcomes. The verdict is written to the record of every fold. It opens after N steps, of any one
# fold that was in the mean at the claim, without a new claim of its side.
#
# `next_fold` links the folds of a model in a ring ordered by number; it is −1 for a model without folds.


UNCHANGED, CHANGED = 0, 2
"""Results of a step: nothing changed, or 2 plus the verdict before the change (−1, 0, 1)."""


@inner
def leading_fold(models, next_fold, row, j):
    """Row of the fold with the most changes of the verdict on opponent j, hence not one added later."""
    best = row
    k = next_fold[row]
    while k != row:
        if models[k].verdicts[j].changes > models[best].verdicts[j].changes:
            best = k
        k = next_fold[k]
    return best


@inner
def observe_fold(models, next_fold, row, j, p, lead, outcome, event_ms):
    """Take one step of one fold with the lead at its outcome.

    Returns `UNCHANGED`, or, if the verdict on the model changed, the verdict before plus `CHANGED`.
    """
    pace = models[row].pace[j]
    v = models[row].verdicts[j]
    before = v.verdict
    if observe_lead(pace, v, p.verdict[1], lead, outcome, event_ms):
        open_folds(models, next_fold, row, j, outcome, event_ms)
        return before + CHANGED
    if v.started == 0 or (lead == 0.0 and v.started != pace.steps):
        return UNCHANGED
    better = 0.0
    worse = 0.0
    folds = 0
    k = row
    while folds == 0 or k != row:
        if models[k].verdicts[j].started != 0:
            better += total(models[k].verdicts[j], BETTER)
            worse += total(models[k].verdicts[j], WORSE)
        folds += 1
        k = next_fold[k]
    enough = p.verdict[0].threshold * len(STAKES) * folds
    if max(better, worse) < enough:
        return UNCHANGED
    side = BETTER if better > worse else WORSE
    if lead < 0.0 if side == BETTER else lead > 0.0:
        set_missing_starts(v, side, outcome, event_ms)
    evidence = max(better, worse) / (len(STAKES) * folds)
    before = models[leading_fold(models, next_fold, row, j)].verdicts[j].verdict
    claim_folds(models, next_fold, row, j, side, evidence, p.verdict[0].outcomes)
    k = row
    first = True
    while first or k != row:
        if better >= enough and models[k].verdicts[j].started != 0:
            reset_side(models[k].verdicts[j], BETTER)
        if worse >= enough and models[k].verdicts[j].started != 0:
            reset_side(models[k].verdicts[j], WORSE)
        first = False
        k = next_fold[k]
    return before + CHANGED if before != (1 if side == BETTER else -1) else UNCHANGED


@inner
def open_folds(models, next_fold, row, j, outcome, event_ms):
    """Open the verdict in the records of the other folds, too."""
    k = next_fold[row]
    while k != row:
        if models[k].verdicts[j].started != 0:
            models[k].pace[j].due = 0
        if models[k].verdicts[j].verdict != 0:
            change(models[k].pace[j], models[k].verdicts[j], 0, outcome, event_ms, 0.0)
        k = next_fold[k]


@inner
def claim_folds(models, next_fold, row, j, side, evidence, outcomes):
    """Give a side the verdict for N steps of each fold."""
    verdict = 1 if side == BETTER else -1
    source = row
    best = 0
    k = next_fold[row]
    for i in range(len(STAKES)):
        if models[row].verdicts[j].maxima[side, i] > models[row].verdicts[j].maxima[side, best]:
            best = i
    while k != row:
        if models[k].verdicts[j].started != 0:
            for i in range(len(STAKES)):
                if models[k].verdicts[j].maxima[side, i] > models[source].verdicts[j].maxima[side, best]:
                    source = k
                    best = i
        k = next_fold[k]
    since = models[source].verdicts[j].starts[side, best]
    since_ms = models[source].verdicts[j].start_ms[side, best]
    first = True
    while first or k != row:
        pace = models[k].pace[j]
        if models[k].verdicts[j].started != 0:
            pace.due = pace.steps + outcomes
        if models[k].verdicts[j].verdict != verdict:
            change(pace, models[k].verdicts[j], verdict, since, since_ms, evidence)
        first = False
        k = next_fold[k]


# Verdicts on one model at one outcome: leads over its opponents, steps, and changes to report.


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
