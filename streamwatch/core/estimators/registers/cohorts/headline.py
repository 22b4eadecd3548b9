"""Headline of a model: the worse of its verdicts against no change and against the majority.

Where labels are late, no change (repeating the last label known) is a weak opponent, and a model that is
better than it may be worse than always answering the most frequent class. So the headline is *worse* if the
model is worse than either opponent, *better* only if it is better than both, and else *open*.

A model has a headline from the first claim that makes it better or worse, or, without a claim, once evidence
is kept and twice as many predictions are judged as φ needs. Any earlier, while labels come at once, the
verdict in the order of labels has more outcomes, and an open headline would take it back for a moment. While
no change has never had an answer there is none either: a recording of outcomes does not say which label was
the last one when a prediction was made.

The headline changes with its verdict, with its status (early or confirmed), and, if it is *worse*, with the
opponent. All that changes at one outcome is one change.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.registers.cohorts.claims import threshold_of
from streamwatch.core.estimators.registers.cohorts.state import (
    CLAIMED,
    HEADLINE,
    MAJORITY,
    NO_CHANGE,
    OPEN,
    OPPONENTS,
)
from streamwatch.core.estimators.registers.cohorts.trackers import stretch_of
from streamwatch.core.estimators.verdicts.state import BETTER, WORSE
from streamwatch.core.jit import entry, inner


@inner
def begins(m, p, verdict):
    """Tell whether a model without a headline has one now."""
    answered = 0
    for i in range(m.bounds):
        answered += m.stretches[i].outcomes[NO_CHANGE]
    if p.opponents > 1 and answered == 0:
        return False
    for j in range(p.opponents):
        o = m.opponents[j]
        needed = max(p.least_predictions, p.predictions_by_dispersion * max(o.dispersion, 1.0))
        if o.started == 1 and (verdict != 0 or m.judged_predictions >= 2.0 * needed):
            return True
    return False


@inner
def headline_of(m, p):
    """Find the headline: verdict, index of the opponent, status, and prediction time since which it holds.

    With one opponent, it is the verdict against that. With two:

    *Worse* is against the opponent whose verdict is confirmed, or else the one against which it holds
    longest. *Better* holds since the later of both times, and is early while either verdict is. The time of
    an open headline is 0.
    """
    first, second = m.opponents[NO_CHANGE], m.opponents[MAJORITY]
    if p.opponents == 1:
        return first.verdict, NO_CHANGE, first.status, first.since_ms if first.verdict != 0 else 0
    if first.verdict < 0 or second.verdict < 0:
        j = NO_CHANGE
        if first.verdict >= 0:
            j = MAJORITY
        elif second.verdict < 0 and second.status != first.status:
            j = MAJORITY if second.status > first.status else NO_CHANGE
        elif second.verdict < 0 and second.since_ms < first.since_ms:
            j = MAJORITY
        return -1, j, m.opponents[j].status, m.opponents[j].since_ms
    if first.verdict > 0 and second.verdict > 0:
        j = MAJORITY if second.since_ms > first.since_ms else NO_CHANGE
        return 1, j, min(first.status, second.status), m.opponents[j].since_ms
    return 0, NO_CHANGE, OPEN, 0


@entry
def read_headlines(models, parameters, rows, found):
    """Read the headlines of m models: `HEADLINES` records (m,), written; `rows` are int64 (m,)."""
    p = parameters[0]
    for i in range(len(rows)):
        m, headline = models[rows[i]], found[i]
        headline.is_there = m.headlines > 0
        headline.verdict, headline.opponent, headline.status, headline.since_ms = headline_of(m, p)
        if headline.verdict != 0:
            headline.earliest_ms = m.opponents[headline.opponent].earliest_ms
            headline.latest_ms = m.opponents[headline.opponent].latest_ms


@inner
def retractions_of(m, verdict, opponent):
    """Number of retractions so far that may have ended a headline."""
    if verdict < 0:
        return m.opponents[opponent].retracted
    return m.opponents[NO_CHANGE].retracted + m.opponents[MAJORITY].retracted


@inner
def append_headline_change(m, p, before, opponent, status, retractions, first, position, row, changes, count):
    """Append the change of the headline, if there is one; return the new number of changes.

    Parameters
    ----------
    m, p
        Record of the model, and the parameters.
    before, opponent, status, retractions
        The headline before the outcome.
    first
        Number of changes before the outcome.
    position, row, changes, count
        As in `append_change`.
    """
    verdict, j, status_now, since_ms = headline_of(m, p)
    if m.headlines == 0:
        if not begins(m, p, verdict):
            return count
    elif verdict == before and status_now == status and (verdict >= 0 or j == opponent):
        return count
    m.headlines += 1
    change = changes[count]
    change.evidence = 0.0
    change.threshold = threshold_of(m, p, BETTER if verdict > 0 else WORSE)
    for i in range(first, count):
        is_claim = changes[i].kind == CLAIMED and changes[i].after == verdict and verdict != before
        if is_claim and (verdict > 0 or changes[i].opponent == j):
            change.evidence = changes[i].evidence
            change.threshold = changes[i].threshold
    change.position = position
    change.row = row
    change.opponent = j
    change.kind = HEADLINE
    change.ordinal = m.headlines
    change.before = before
    change.after = verdict
    change.since_ms = since_ms if verdict != 0 else m.clock_ms
    change.earliest_ms = m.opponents[j].earliest_ms if verdict != 0 else 0
    change.latest_ms = m.opponents[j].latest_ms if verdict != 0 else 0
    change.judged = m.judged
    change.status = status_now
    change.is_first = m.headlines == 1
    retracted = before != 0 and verdict == 0 and retractions_of(m, before, opponent) > retractions
    change.is_retracted = retracted
    change.predictions = m.judged_predictions
    change.outcomes = outcomes_since(m, since_ms) if verdict != 0 else 0
    return count + 1


@inner
def outcomes_since(m, since_ms):
    """Number of outcomes whose predictions were made since a time at which a cohort opened."""
    total = 0
    for i in range(max(stretch_of(m.bounds_ms, since_ms), 0), m.bounds):
        most = 0
        for j in range(len(OPPONENTS)):
            most = max(most, m.stretches[i].outcomes[j])
        total += most
    return total
