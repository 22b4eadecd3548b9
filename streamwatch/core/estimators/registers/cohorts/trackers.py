"""Counts that cohorts build on: shares labelled by age, the leading class, leads by stretch of time."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from math import sqrt

import numpy as np

from streamwatch.core.estimators.forgetting.mechanisms import LIMIT, SHRINK
from streamwatch.core.estimators.registers.cohorts.settled import classes_of
from streamwatch.core.estimators.registers.cohorts.state import (
    AGES,
    ALL,
    BOUNDS,
    HALVES,
    NOTES,
    OPPONENTS,
    SETTLED_RULE,
    SIDES,
    WHOLE,
)
from streamwatch.core.estimators.verdicts.leads import MAJORITY_GROWTH
from streamwatch.core.jit import (
    bits_at_most,
    hot,
    inner,
    lanes,
    lanes_of,
    put_lanes,
    trailing_zeros,
    where_at_most,
)

# Shares of all predictions labelled by each age, counted from the predictions instead of the labels.
#
# Each age has a tracker of consecutive windows of prediction time. A window opens at an outcome and ends at
# the first outcome that comes at least the age (and at least a second) later and finds 256 predictions in it.
# It is read at the first outcome that comes the age later again: then every prediction of the window is at
# least that old. Nothing is assumed about predictions without a label, so if at least 99 % are labelled by an
# age, cohorts can be judged at that age from the first day on.


NEVER = np.iinfo(np.int64).max
UNENDED = 2.0**62
"""End of a window that has not ended, and opening of a window that does not exist."""
SHORTEST_MS = 1_000
LEAST_IN_WINDOW = 256
"""Least number of predictions in a window."""
LEAST_PREDICTIONS = 1_000.0
"""Predictions in the windows read from which an age may be chosen; that of `state` is for evidence."""
LEAST_LABELLED = 0.99
"""Share of predictions labelled by an age from which the labels count as complete at it."""
ERRORS = 2.5
"""Standard errors that `missing_at` adds."""
LEAST_MISSING = 3.0
"""Upper limit of the expected number of predictions without a label if none was found."""
MOST_PREDICTIONS = 20_000.0
"""Number of predictions from which the counts are halved."""


@inner
def open_window(m, p, k):
    """Open a window of age k at the current outcome."""
    m.window_opened_ms.flat[k] = m.clock_ms
    m.window_ended_ms.flat[k] = UNENDED
    m.window_labels.flat[k] = 0.0
    m.tracker_due_ms[k] = m.clock_ms + max(p.ages_ms[k], SHORTEST_MS)
    m.tracker_made[k] = m.made


@inner
def advance_trackers(m, p):
    """End, read and open the windows that are due, and choose the first age by which labels are complete."""
    is_read = False
    m.tracked_ms = NEVER
    m.tracked_made = NEVER
    for k in range(WHOLE):
        if m.tracker_due_ms[k] <= m.clock_ms:
            if m.window_ended_ms.flat[k] < UNENDED:
                m.tracker_share[k] += m.window_labels.flat[k]
                m.tracker_total[k] += m.tracker_made[k]
                m.tracker_share[k] = min(m.tracker_share[k], m.tracker_total[k])
                if m.tracker_total[k] >= MOST_PREDICTIONS:
                    m.tracker_share[k] *= 0.5
                    m.tracker_total[k] *= 0.5
                open_window(m, p, k)
                is_read = True
            elif m.made - m.tracker_made[k] >= LEAST_IN_WINDOW:
                m.window_ended_ms.flat[k] = m.clock_ms
                m.tracker_due_ms[k] = m.clock_ms + p.ages_ms[k]
                m.tracker_made[k] = m.made - m.tracker_made[k]
            else:
                m.tracked_made = min(m.tracked_made, m.tracker_made[k] + LEAST_IN_WINDOW)
                continue
        m.tracked_ms = min(m.tracked_ms, m.tracker_due_ms[k])
    if is_read:
        choose_fast_age(m)


@inner
def choose_fast_age(m):
    """Set the first age by which labels are as good as complete."""
    m.fast_age = 0
    for k in range(WHOLE):
        total = m.tracker_total[k]
        if total >= LEAST_PREDICTIONS and m.tracker_share[k] >= LEAST_LABELLED * total:
            m.fast_age = k + 1
            break


@inner
def missing_at(m, k):
    """Upper bound of the share of predictions without a label by age k, once a window of it was read."""
    total = m.tracker_total[k]
    missing = total - m.tracker_share[k]
    return (missing + ERRORS * sqrt(missing) + LEAST_MISSING) / total


@hot
def count_in_windows(m, p, predicted_ms, delay_ms):
    """Count a label in the windows of all ages that it came by; return the bin of its delay.

    That is the first age not below the delay, which is at most the horizon. All ages are compared, without a
    branch: the horizon has no window.
    """
    predicted, delay = lanes(float(predicted_ms)), lanes(float(delay_ms))
    one, none = lanes(1.0), lanes(0.0)
    in_time = 0
    for half in range(HALVES):
        ages = lanes_of(p.ages, half)
        has_ended = where_at_most(lanes_of(m.window_ended_ms, half), predicted, one, none)
        has_begun = where_at_most(lanes_of(m.window_opened_ms, half), predicted, one, none)
        counted = where_at_most(delay, ages, has_begun - has_ended, none)
        put_lanes(m.window_labels, half, lanes_of(m.window_labels, half) + counted)
        in_time |= bits_at_most(delay, ages) << (half * (AGES // HALVES))
    return trailing_zeros(np.uint64(in_time))


# The most frequent label, and what it was when a prediction was made.
#
# Labels are counted with a fading of .999, and a class takes the lead when its count is larger than that of
# the leader. From 100 labels on, a new leader is noted with the clock, at most once in a 32nd of the
# horizon, so that the last 33 notes cover the horizon however often the lead changes. If the first label
# were noted, and were of a rare class, that class would be the majority for hours, and nearly every model
# better than it.


LEAST_LABELS = 100
"""Number of labels from which on the leader is noted."""


@hot
def note_leader(m, p):
    """Note the leader of the labels so far, if it differs from the last one noted."""
    # The current outcome counts as observed, but its label is not counted yet.
    if m.leader == m.noted or m.observed <= LEAST_LABELS:
        return
    if m.notes == 0 or m.clock_ms >= m.noted_ms + p.note_ms:
        slot = m.notes % NOTES
        m.note_ms[slot] = m.clock_ms
        m.note_class[slot] = m.leader - 1
        m.noted = m.leader
        m.noted_ms = m.clock_ms
        m.notes += 1


@hot
def leader_at(m, time_ms):
    """Leader as noted at a time up to a horizon ago; −1 before the first note."""
    return m.noted - 1 if m.noted_ms <= time_ms else earlier_leader(m, time_ms)


@inner
def earlier_leader(m, time_ms):
    """Leader as noted before the last note."""
    for number in range(m.notes - 2, max(0, m.notes - NOTES) - 1, -1):
        slot = number % NOTES
        if m.note_ms[slot] <= time_ms:
            return m.note_class[slot]
    return -1


@hot
def count_for_leader(m, labels, row, true_class):
    """Count a label of a model."""
    m.unit *= MAJORITY_GROWTH
    counted = labels[row, true_class] + m.unit
    labels[row, true_class] = counted
    m.classes = max(m.classes, true_class + 1)
    if m.leader == 0 or counted > labels[row, m.leader - 1]:
        m.leader = true_class + 1
    if m.unit > LIMIT:
        shrink(m, labels, row)


@inner
def shrink(m, labels, row):
    """Scale label counts back so that their unit is about 1."""
    m.unit *= SHRINK
    for k in range(m.classes):
        labels[row, k] *= SHRINK


# Leads by stretch of prediction time, from which early verdicts are confirmed, and errors of judged cohorts.
#
# Every cohort that opens begins a stretch. When there are 64, the older 32 are merged in pairs first: the
# newest 32 stretches or more are single cohorts, and older ones are the longer the older they are, so that
# the list reaches back to the first cohort.


MERGED = BOUNDS // 4
"""Number of pairs that are merged."""


@inner
def begin_stretch(m, time_ms):
    """Begin a stretch of prediction time."""
    if m.bounds == BOUNDS:
        merge_stretches(m)
    m.bounds_ms[m.bounds] = time_ms
    m.bounds += 1


@inner
def merge_stretches(m):
    """Merge the older half of the stretches in pairs."""
    for i in range(BOUNDS):
        t, leads = m.stretches[i], m.leads[i]
        if i < MERGED:
            m.bounds_ms[i] = m.bounds_ms[2 * i]
            if i > 0:
                copy_stretch(t, m.stretches[2 * i])
                set_leads(leads, m.leads[2 * i], 0.0)
            add_stretch(t, m.stretches[2 * i + 1])
            set_leads(leads, m.leads[2 * i + 1], 1.0)
        elif i + MERGED < BOUNDS:
            m.bounds_ms[i] = m.bounds_ms[i + MERGED]
            copy_stretch(t, m.stretches[i + MERGED])
            set_leads(leads, m.leads[i + MERGED], 0.0)
        else:
            m.bounds_ms[i] = NEVER
            leads.predictions = 0.0
            for j in range(len(OPPONENTS)):
                leads.totals[j] = 0.0
                leads.squares[j] = 0.0
            for j in range(len(OPPONENTS)):
                t.outcomes[j] = 0
                t.leads[j] = 0
                t.lead_squares[j] = 0
            for side in range(SIDES):
                t.weights[side] = 0.0
                t.weight_squares[side] = 0.0
    m.bounds -= MERGED


@inner
def copy_stretch(t, other):
    """Set the sums of a stretch to those of another."""
    for j in range(len(OPPONENTS)):
        t.outcomes[j] = other.outcomes[j]
        t.leads[j] = other.leads[j]
        t.lead_squares[j] = other.lead_squares[j]
    for side in range(SIDES):
        t.weights[side] = other.weights[side]
        t.weight_squares[side] = other.weight_squares[side]


@inner
def add_stretch(t, other):
    """Add the sums of another stretch."""
    for j in range(len(OPPONENTS)):
        t.outcomes[j] += other.outcomes[j]
        t.leads[j] += other.leads[j]
        t.lead_squares[j] += other.lead_squares[j]
    for side in range(SIDES):
        t.weights[side] += other.weights[side]
        t.weight_squares[side] += other.weight_squares[side]


@inner
def set_leads(leads, other, kept):
    """Set leads to `kept` (0 or 1) times what they are, plus those of another stretch."""
    leads.predictions = kept * leads.predictions + other.predictions
    for j in range(len(OPPONENTS)):
        leads.totals[j] = kept * leads.totals[j] + other.totals[j]
        leads.squares[j] = kept * leads.squares[j] + other.squares[j]


@inner
def take_leads(m, j, predictions, total, squares):
    """Add the leads over opponent j of the cohort judged last (before `first_cohort`) to its stretch."""
    leads = m.leads[m.bounds - m.next_cohort + m.first_cohort - 1]
    if j == 0:
        leads.predictions += predictions
    leads.totals[j] += total
    leads.squares[j] += squares


@inner
def take_errors(m, kinds, row, slot, stretch):
    """Add the hits and misses of a cohort that is judged to its stretch.

    They are weighted by 1/G if its age is by the settled rule, by 1 otherwise.
    """
    t = m.stretches[stretch]
    for k in range(classes_of(m)):
        u = kinds[k, row]
        for side in range(SIDES):
            outcomes = float(u.labelled[slot, side, ALL])
            weight = 1.0 / u.share[slot, side] if m.cohorts[slot].rule == SETTLED_RULE else 1.0
            t.weights[side] += outcomes * weight
            t.weight_squares[side] += outcomes * weight * weight


@hot
def stretch_of(bounds_ms, time_ms):
    """Index of the stretch that contains a time; −1 for one before the first.

    A search without unpredictable branches: starts that are not in use are `NEVER`.
    """
    found = 0
    found += 32 * (bounds_ms[found + 31] <= time_ms)
    found += 16 * (bounds_ms[found + 15] <= time_ms)
    found += 8 * (bounds_ms[found + 7] <= time_ms)
    found += 4 * (bounds_ms[found + 3] <= time_ms)
    found += 2 * (bounds_ms[found + 1] <= time_ms)
    found += 1 * (bounds_ms[found] <= time_ms)
    found += 1 * (bounds_ms[found] <= time_ms)
    return found - 1


@inner
def take_claimed(m, j, unit, since_ms, until_ms):
    """Begin the sums of the predictions that a claim is about, made from one time to another.

    They are of whole stretches, and so may begin earlier and end later: `from_ms` and `to_ms`. `unit` is what
    a lead of 1 counts in the sums of a stretch.
    """
    o = m.opponents[j]
    first = stretch_of(m.bounds_ms, since_ms)
    last = stretch_of(m.bounds_ms, until_ms - 1)
    o.from_ms = m.bounds_ms[first]
    o.to_ms = m.bounds_ms[last + 1] if last + 1 < m.bounds else until_ms
    o.claim_outcomes = 0.0
    o.claim_total = 0.0
    o.claim_squares = 0.0
    for i in range(first, last + 1):
        o.claim_outcomes += m.stretches[i].outcomes[j]
        o.claim_total += m.stretches[i].leads[j] / unit
        o.claim_squares += m.stretches[i].lead_squares[j] / unit
