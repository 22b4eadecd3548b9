"""Deferred steps of the e-detectors: the leads of up to 64 outcomes are noted, then their steps are taken.

Loading M and C of a verdict from memory costs more than a step. So a model keeps one byte for each of its
latest outcomes, with a bit for every opponent over which its lead was not 0, and the time of the outcome.
Then the steps of all these outcomes are taken at once, opponent by opponent (see `steps`). The resulting
records do not depend on when steps are taken.

Deferring delays no result. Steps are taken at the latest where a block of 64 steps ends, at an outcome at
which evidence starts or a verdict opens, at the first at which a verdict could be claimed, and where other
opponents answer than before.

Steps are not deferred for models with folds, whose verdict depends on all folds, and for models judged by
costs, whose leads differ in size between opponents.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.verdicts.changes import append_change
from streamwatch.core.estimators.verdicts.leads import balanced_lead
from streamwatch.core.estimators.verdicts.opponents import answering_kinds, right_kinds
from streamwatch.core.estimators.verdicts.steps import (
    LONGEST,
    notes_until_check,
    outcomes_until_check,
    take_steps,
)
from streamwatch.core.estimators.verdicts.utility import BALANCED
from streamwatch.core.jit import bytes_with, hot, inner

WAITING = np.dtype(
    [
        ("settled", "i8"),  # number of outcomes whose steps are taken
        ("due", "i8"),  # number of the outcome at which the next are taken, however few leads are not 0
        ("noted", "i4"),  # number of outcomes since `settled` in which some lead was not 0
        ("full", "i4"),  # number of them at which steps are taken
        ("answering", "i8"),  # one bit per kind of opponent: it answers these outcomes
    ]
)
"""Deferred outcomes of a model; what was noted of them is in `leads`, `noted_ms` and `magnitudes`."""

HIT = 7
"""Bit of a byte of `leads` that is set if the model was right; those below are of kinds of opponents."""


@hot
def note_leads(
    models,
    class_counts,
    p,
    true_class,
    predicted_class,
    flags,
    event_ms,
    position,
    row,
    alarms,
    count,
):
    """Note the leads at the outcome with these flags, and take steps if they are due.

    Return the number of alarms.
    """
    m = models[row]
    w = m.waiting[0]
    outcome = m.outcomes + 1
    hit = int(predicted_class == true_class)
    answering = answering_kinds(m, flags) & p.kinds
    if answering != w.answering:
        count = settle_verdicts(models, p, row, outcome - 1, event_ms, position, alarms, count)
        w.answering = answering
        schedule(m, p)
    right = right_kinds(m, flags, true_class)
    differing = answering & (right ^ -hit)  # a lead is not 0 where the opponent is wrong and the model not
    at = outcome - w.settled - 1
    m.leads[at] = differing | (hit << HIT)
    m.noted_ms[at] = event_ms
    if m.utility == BALANCED and differing != 0:
        m.magnitudes[at] = balanced_lead(m, class_counts, true_class, predicted_class)
    w.noted += int(differing != 0)
    if w.noted >= w.full or outcome >= w.due:
        count = settle_verdicts(models, p, row, outcome, event_ms, position, alarms, count)
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
                        count = append_change(
                            m.pace[j],
                            m.verdicts[j],
                            p.verdict[0],
                            p.opponents[j].notifies - 1,
                            position,
                            row,
                            outcome,
                            before,
                            alarms,
                            count,
                        )
        w.settled = outcome
        w.noted = 0
        schedule(m, p)
    return count


@inner
def schedule(m, p):
    """Set when the steps of a model are taken next."""
    w = m.waiting[0]
    outcomes, notes = LONGEST, LONGEST
    for j in range(len(m.verdicts)):
        if (w.answering >> p.opponents[j].kind) & 1:
            outcomes = min(outcomes, outcomes_until_check(m.pace[j]))
            notes = min(notes, notes_until_check(m.pace[j], m.verdicts[j], p.verdict[0]))
    w.due = w.settled + outcomes
    w.full = notes
