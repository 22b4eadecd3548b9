"""Life of a cohort, from its opening until it is judged, and the headline that follows from verdicts."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from math import exp

import numpy as np

from streamwatch.core.estimators.registers.cohorts.claims import confirm, pays, take_evidence, threshold_of
from streamwatch.core.estimators.registers.cohorts.settled import choose_age, classes_of, empty_bets, settle
from streamwatch.core.estimators.registers.cohorts.state import (
    ALL,
    CLAIMED,
    DEADLINE_MS,
    EARLY,
    FAST_RULE,
    HEADLINE,
    MAJORITY,
    MOST_COUNTED,
    NO_CHANGE,
    OPEN,
    OPPONENTS,
    SETTLED_RULE,
    SIDES,
    SLOTS,
    WHOLE,
    WHOLE_HORIZON,
    WIDTHS,
)
from streamwatch.core.estimators.registers.cohorts.trackers import (
    NEVER,
    advance_trackers,
    begin_stretch,
    missing_at,
    stretch_of,
    take_errors,
)
from streamwatch.core.estimators.verdicts.state import BETTER, WORSE
from streamwatch.core.jit import entry, hot, inner

# Headline of a model: the worse of its verdicts against no change and against the majority.
#
# Where labels are late, no change (repeating the last label known) is a weak opponent, and a model that is
# better than it may be worse than always answering the most frequent class. So the headline is *worse* if
# the model is worse than either opponent, *better* only if it is better than both, and else *open*.
#
# A model has a headline from the first claim that makes it better or worse, or, without a claim, once
# evidence is kept and twice as many predictions are judged as φ needs. Any earlier, while labels come at
# once, the verdict in the order of labels has more outcomes, and an open headline would take it back for a
# moment. While no change has never had an answer there is none either: a recording of outcomes does not say
# which label was the last one when a prediction was made.
#
# The headline changes with its verdict, with its status (early or confirmed), and, if it is *worse*, with
# the opponent. All that changes at one outcome is one change.


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


# Life of a cohort: it opens with fixed parameters, closes, counts labels up to its age, and is judged.


LEAST_IN_COHORT = 32
"""Least number of predictions of a cohort."""
MOST_AHEAD = 2**24
"""Largest number of predictions that are waited for; a fall of `made` by at most as many is a step back."""
MONTH_MS = 30.0 * 86_400_000.0


@inner
def advance(m, b, kinds, p, position, row, changes, count):
    """Close, settle, confirm, judge and open the cohorts that are due; return the new number of changes."""
    if m.is_open == 1:
        close_if_due(m)
    if p.by_prediction == 0:
        if m.clock_ms >= m.settles_ms:
            settle(m, b, kinds, row, p)
        if m.clock_ms >= m.tracked_ms or m.made >= m.tracked_made:
            advance_trackers(m, p)
    first = count
    before, opponent, status, _ = headline_of(m, p)
    retractions = retractions_of(m, before, opponent)
    if m.claims > 0:
        for j in range(p.opponents):
            count = confirm(m, p, j, position, row, changes, count)
    while m.first_cohort < m.next_cohort - m.is_open:
        slot = m.first_cohort % SLOTS
        if m.clock_ms < judged_at(m, p, slot):
            break
        is_counted = m.cohorts[slot].predictions < MOST_COUNTED
        if is_counted:
            take_errors(m, kinds, row, slot, m.bounds - m.next_cohort + m.first_cohort)
        m.first_cohort += 1
        m.first_slot = m.first_cohort % SLOTS
        if not is_counted:
            m.left_out += 1
            continue
        m.judged += 1
        m.judged_predictions += m.cohorts[slot].predictions
        may_bet = pays(m, kinds, row, slot)
        for j in range(p.opponents):
            count = take_evidence(m, b, kinds, p, j, slot, may_bet, position, row, changes, count)
    count = append_headline_change(
        m, p, before, opponent, status, retractions, first, position, row, changes, count
    )
    if m.is_open == 0:
        open_if_known(m, b, kinds, row, p)
    schedule(m, p)
    return count


@inner
def schedule(m, p):
    """Set the clock and the number of predictions made at which something may be due next."""
    m.due_ms = NEVER
    m.due_made = NEVER
    if m.is_open == 1:
        if m.clock_ms < m.closes_ms:
            m.due_ms = m.closes_ms
        else:
            m.due_made = m.cohorts[(m.next_cohort - 1) % SLOTS].made_opened + LEAST_IN_COHORT
    if p.by_prediction == 0:
        m.due_ms = min(m.due_ms, m.tracked_ms)
        m.due_made = min(m.due_made, m.tracked_made)
        m.due_ms = min(m.due_ms, m.settles_ms)
    if m.first_cohort < m.next_cohort - m.is_open:
        m.due_ms = min(m.due_ms, judged_at(m, p, m.first_cohort % SLOTS))
    m.claims = 0
    for j in range(len(OPPONENTS)):
        if m.opponents[j].status == EARLY:
            m.due_ms = min(m.due_ms, m.opponents[j].to_ms + p.horizon_ms)
            m.claims += 1


@inner
def changes_from(m, p):
    """Clock from which an outcome may change a verdict: a cohort may be judged, or a claim settles."""
    if m.first_cohort < m.next_cohort - m.is_open:
        found = judged_at(m, p, m.first_cohort % SLOTS)
    elif p.by_prediction == 1:
        found = m.closes_ms
    elif m.is_open == 1:
        found = m.closes_ms + m.cohorts[(m.next_cohort - 1) % SLOTS].age_ms
    else:  # a cohort may open at the next outcome
        found = m.clock_ms + p.ages_ms[0]
    for j in range(len(OPPONENTS)):
        if m.opponents[j].status == EARLY:
            found = min(found, m.opponents[j].to_ms + p.horizon_ms)
    return found


@inner
def changes_after(m, p):
    """Number of predictions that must be made before an outcome may change a verdict, at most 2²⁴."""
    is_started = m.opponents[NO_CHANGE].started == 1 or m.opponents[MAJORITY].started == 1
    if is_started or p.by_prediction == 1:
        return 0
    return min(max(np.int64(p.least_predictions) - m.made, 0), MOST_AHEAD)


@inner
def judged_at(m, p, slot):
    """Clock at which a closed cohort is due: outcomes in the order of predictions need not wait."""
    c = m.cohorts[slot]
    return c.ended_ms + (0 if p.by_prediction == 1 else wait_of(p, c.age_ms))


@inner
def wait_of(p, age_ms):
    """Time from the end of a cohort with this age until it is judged.

    At the horizon, labels may be assumed, and deadlines are whole seconds, rounded up. A 16th of the time is
    the least width of the cohorts beside it, so that no more are alive than there are slots. In the order of
    predictions, nothing waits, and the width is a 16th of the age.
    """
    return age_ms + (DEADLINE_MS if age_ms == p.horizon_ms and p.by_prediction == 0 else 0)


@inner
def close_if_due(m):
    """Close the newest cohort if it is wide enough and has enough predictions."""
    c = m.cohorts[(m.next_cohort - 1) % SLOTS]
    made = m.made - c.made_opened
    if m.clock_ms < m.closes_ms or made < LEAST_IN_COHORT:
        return
    c.ended_ms = m.clock_ms
    c.predictions = made
    m.is_open = 0


@inner
def rule_of(m, p):
    """Rule by which the next cohort gets its age; 0 if no age is known yet."""
    if p.by_prediction == 1:
        return WHOLE_HORIZON
    is_fast = m.fast_age > 0 and p.fixed_age < 0
    if m.settled_age == 0:
        return FAST_RULE if is_fast else 0
    settled = m.settled_age - 1
    if is_fast:
        longest = max(float(p.ages_ms[settled]), p.horizon_ms / float(WIDTHS))
        if p.ages_ms[m.fast_age - 1] <= longest:
            return FAST_RULE
    return SETTLED_RULE if settled < WHOLE else WHOLE_HORIZON


@inner
def open_if_known(m, b, kinds, row, p):
    """Open a cohort at the model's clock, unless no age is known yet."""
    if m.is_stale == 1:
        choose_age(m, b, kinds, row, p)
    rule = rule_of(m, p)
    if rule == 0:
        return
    age = WHOLE if rule == WHOLE_HORIZON else m.settled_age - 1 if rule == SETTLED_RULE else m.fast_age - 1
    longest = wait_of(p, p.ages_ms[age])
    for number in range(m.first_cohort, m.next_cohort):
        longest = max(longest, wait_of(p, m.cohorts[number % SLOTS].age_ms))
    slot = m.next_cohort % SLOTS
    c = m.cohorts[slot]
    c.rule = rule
    c.age_ms = p.ages_ms[age]
    c.made_opened = m.made
    c.predictions = 0
    c.opened_ms = m.clock_ms
    c.ended_ms = NEVER
    m.closes_ms = m.clock_ms + (longest + WIDTHS - 1) // WIDTHS
    c.scale = m.settled_scale if rule == SETTLED_RULE else 1.0
    c.missing = missing_at(m, m.fast_age - 1) if rule == FAST_RULE else 0.0
    if b.table > 0:
        empty_bets(b, slot)
    for k in range(classes_of(m)):
        for side in range(SIDES):
            for j in range(ALL + 1):
                kinds[k, row].labelled[slot, side, j] = 0
    if rule == SETTLED_RULE:
        for side in range(SIDES):
            m.share[slot, side] = m.settled_share[side]
            m.band[slot, side] = m.settled_band[side]
            for k in range(classes_of(m)):
                u = kinds[k, row]
                u.share[slot, side] = u.settled_share[side]
                u.band[slot, side] = u.settled_band[side]
    if m.next_cohort > 0:
        faded = m.recent * exp(-(m.clock_ms - m.recent_ms) / MONTH_MS)
        m.recent = faded + (m.made - m.recent_made)
    m.recent_ms = m.clock_ms
    m.recent_made = m.made
    if m.last_age_ms > 0 and c.age_ms != m.last_age_ms:
        m.age_changes += 1
    m.last_age_ms = c.age_ms
    begin_stretch(m, m.clock_ms)
    m.next_cohort += 1
    m.is_open = 1


@hot
def cohort_of(m, stretch, time_ms, delay_ms):
    """Slot of the cohort of predictions made at a time in this stretch, and whether it counts a label.

    The label counts if the cohort is not judged yet and the label came by the cohort's age. Cohorts that are
    not judged are among the newest 32 stretches, which have one cohort each. For a stretch without one, the
    slot is that of another cohort, and the label does not count.
    """
    number = m.next_cohort - m.bounds + stretch - m.first_cohort
    slot = m.first_slot + max(number, 0)
    slot -= SLOTS if slot >= SLOTS else 0
    c = m.cohorts[np.uint32(slot)]
    return slot, (number >= 0) & (time_ms < c.ended_ms) & (delay_ms <= c.age_ms)
