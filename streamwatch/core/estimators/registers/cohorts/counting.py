"""Loop over held outcomes of a model: do what is due at each, and count it."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.registers.cohorts.life import advance, cohort_of
from streamwatch.core.estimators.registers.cohorts.settled import (
    LEAST_EXPECTED,
    begin_buckets,
    begin_classes,
    count_bet,
    in_units,
    lead_by_costs,
    note_gap,
    slot_of,
)
from streamwatch.core.estimators.registers.cohorts.state import (
    AGES,
    ALL,
    BOUNDS,
    CLASSES,
    EARLY,
    HITS,
    MAJORITY,
    MISSES,
    MOST_COUNTED,
    NO_CHANGE,
    OPPONENTS,
    WHOLE,
)
from streamwatch.core.estimators.registers.cohorts.trackers import (
    NEVER,
    UNENDED,
    count_for_leader,
    count_in_windows,
    leader_at,
    note_leader,
    open_window,
    stretch_of,
)
from streamwatch.core.jit import hot, inner

BACKWARD = 2**32 - 2**24
"""Least difference of two values of `made`, modulo 2³², that is a step back."""


@inner
def begin(m, p, clock_ms, made):
    """Set up the record of a model at its first outcome."""
    m.clock_ms = clock_ms
    m.last_made = made
    m.unit = 1.0
    m.settled_unit = 1.0
    begin_buckets(m, p, (clock_ms - p.horizon_ms) // p.width_ms * p.width_ms, 0)
    for k in range(WHOLE):
        open_window(m, p, k)
    for k in range(WHOLE, AGES):
        m.window_opened_ms.flat[k] = UNENDED
    for i in range(BOUNDS):
        m.bounds_ms[i] = NEVER


@inner
def take_in(m, b, kinds, outcomes, number, labels, own_classes, costs, p, row, position, changes, count):
    """Take in the first outcomes of `outcomes` in order; return the new number of changes of verdicts."""
    for i in range(number):
        x = outcomes[i]
        y = np.uint32(x.true_class)  # unsigned indices need no check for negative ones
        waited, at = x.waited_ms, x.at_ms
        predicted = at - waited
        all_made = np.int64(x.made)
        if p.by_prediction == 1:
            all_made = m.observed + 1
        if m.observed == 0:
            begin(m, p, at, all_made)
        m.observed += 1
        gap_ms = max(at - m.clock_ms, 0)
        m.clock_ms = max(m.clock_ms, at)
        more = (all_made - m.last_made) & 0xFFFFFFFF
        if 0 < more < BACKWARD:
            m.made += more
            m.last_made = all_made
        else:
            more = 0
        if m.clock_ms >= m.due_ms or m.made >= m.due_made:
            count = advance(m, b, kinds, p, position, row, changes, count)
        if more >= LEAST_EXPECTED and p.by_prediction == 0:
            note_gap(m, p, gap_ms, more)
        note_leader(m, p)
        if y >= m.classes:
            begin_classes(m, kinds, row, y + 1)
        delay = p.horizon_ms if x.known & 1 and p.by_prediction == 0 else waited
        if delay <= p.horizon_ms:
            u = kinds[np.uint32(min(y, CLASSES - 1)), row]
            if b.table == 0:
                count_outcome(m, u, p, x, predicted, delay)
            elif p.opponents > 1:
                count_by_costs(m, b, u, own_classes, costs, p, x, predicted, delay)
            else:
                count_pair_by_costs(m, b, u, costs, p, x, predicted, delay)
        count_for_leader(m, labels, row, y)
    return count


@hot
def count_outcome(m, u, p, x, predicted_ms, delay_ms):
    """Count an outcome with a delay up to the horizon; u is the record of its class.

    The only branches are those that go the same way for most outcomes of a model.
    """
    y = x.true_class
    is_hit = y == x.predicted_class
    side = np.uint32(HITS if is_hit else MISSES)
    known = (x.known >> 1) - 1
    # A hit leads over an opponent with another class, a miss is behind an opponent that is right.
    first = (known >= 0) & ((known != y) if is_hit else (known == y))
    if p.by_prediction == 0:
        k = count_in_windows(m, p, predicted_ms, delay_ms)
        bucket = slot_of(m, p, predicted_ms)
        # Of a pair of models, labels may come sooner where both are right than where one is.
        if bucket >= 0 and (first or p.opponents > 1):
            count_in_bucket(m, u, np.uint32(bucket), side, np.uint32(k))
    leading = leader_at(m, predicted_ms)
    second = (leading >= 0) & ((leading != y) if is_hit else (leading == y))
    sign = 1 if is_hit else -1
    stretch = stretch_of(m.bounds_ms, predicted_ms)
    if stretch >= 0:
        t = m.stretches[np.uint32(stretch)]
        t.outcomes[NO_CHANGE] += known >= 0
        t.outcomes[MAJORITY] += leading >= 0
        t.leads[NO_CHANGE] += sign * first
        t.leads[MAJORITY] += sign * second
        t.lead_squares[NO_CHANGE] += first
        t.lead_squares[MAJORITY] += second
        slot, counts = cohort_of(m, stretch, predicted_ms, delay_ms)
        slot = np.uint32(slot)
        u.labelled[slot, side, NO_CHANGE] += counts & first
        u.labelled[slot, side, MAJORITY] += counts & second
        u.labelled[slot, side, ALL] += counts
    if m.claims > 0:
        count_claimed(m.opponents[NO_CHANGE], predicted_ms, known >= 0, sign * first)
        count_claimed(m.opponents[MAJORITY], predicted_ms, leading >= 0, sign * second)


@hot
def count_in_bucket(m, u, bucket, side, k):
    """Count an outcome of a kind with a delay in bin k, unless the bucket is full and will be left out."""
    if m.bucket_outcomes[bucket] < MOST_COUNTED:
        u.counts[bucket, side, k] += 1
        m.bucket_outcomes[bucket] += 1


@inner
def count_by_costs(m, b, u, own_classes, costs, p, x, predicted_ms, delay_ms):
    """Count an outcome of a model that is judged by costs; as `count_outcome` otherwise."""
    y = x.true_class
    side = np.uint32(HITS if y == x.predicted_class else MISSES)
    known, leading = (x.known >> 1) - 1, leader_at(m, predicted_ms)
    if p.by_prediction == 0:
        k = count_in_windows(m, p, predicted_ms, delay_ms)
        bucket = slot_of(m, p, predicted_ms)
        if bucket >= 0:
            count_in_bucket(m, u, np.uint32(bucket), side, np.uint32(k))
    stretch = stretch_of(m.bounds_ms, predicted_ms)
    answers, size = (known, leading), 0.0
    for j in range(len(OPPONENTS)):
        lead = 0.0
        if answers[j] >= 0:
            own, other = own_classes[x.predicted_class], own_classes[answers[j]]
            lead = lead_by_costs(b, costs, own_classes[y], own, other)
        size = max(size, abs(lead))
        count_lead(m, b, u, j, side, stretch, answers[j] >= 0, lead, predicted_ms, delay_ms)
    u.lead_sizes[side] += m.settled_unit * size
    if stretch >= 0:
        slot, counts = cohort_of(m, stretch, predicted_ms, delay_ms)
        u.labelled[np.uint32(slot), side, ALL] += counts


@inner
def count_pair_by_costs(m, b, u, costs, p, x, predicted_ms, delay_ms):
    """Count a pair of two models that are judged by costs; its side is the sign of the lead.

    `predicted_class` is label · (number of indices) + answer, and the label known is the champion's answer,
    all of them indices in the table of costs. From pairs without a lead, nothing is learned about delays.
    """
    label, own = divmod(x.predicted_class, costs.shape[1])
    lead = lead_by_costs(b, costs, label, own, (x.known >> 1) - 1)
    side = np.uint32(HITS if lead > 0.0 else MISSES)
    k = count_in_windows(m, p, predicted_ms, delay_ms)
    bucket = slot_of(m, p, predicted_ms)
    if bucket >= 0 and lead != 0.0:
        count_in_bucket(m, u, np.uint32(bucket), side, np.uint32(k))
    stretch = stretch_of(m.bounds_ms, predicted_ms)
    count_lead(m, b, u, NO_CHANGE, side, stretch, True, lead, predicted_ms, delay_ms)
    u.lead_sizes[side] += m.settled_unit * abs(lead)
    if stretch >= 0:
        slot, counts = cohort_of(m, stretch, predicted_ms, delay_ms)
        u.labelled[np.uint32(slot), side, ALL] += counts


@inner
def count_lead(m, b, u, j, side, stretch, is_answered, lead, predicted_ms, delay_ms):
    """Count the lead by costs of an outcome over opponent j."""
    if stretch >= 0:
        t = m.stretches[np.uint32(stretch)]
        t.outcomes[j] += is_answered
        t.leads[j] += in_units(lead)
        t.lead_squares[j] += in_units(lead * lead)
        slot, counts = cohort_of(m, stretch, predicted_ms, delay_ms)
        if counts and lead != 0.0:
            count_bet(b, m.cohorts[np.uint32(slot)], u, j, np.uint32(slot), side, lead)
    if m.claims > 0:
        count_claimed(m.opponents[j], predicted_ms, is_answered, lead)


@inner
def count_claimed(o, predicted_ms, is_answered, lead):
    """Count an outcome for an early verdict about predictions of its time."""
    if o.status == EARLY and is_answered and o.from_ms <= predicted_ms < o.to_ms:
        o.claim_outcomes += 1.0
        o.claim_total += lead
        o.claim_squares += lead * lead
