"""Evidence of judged cohorts, and the verdicts it claims, confirms, retracts and ends.

With Π_λ the product of 1 ± λ·d·a/c over the labelled predictions of a cohort of n predictions, and φ the
dispersion as known when it is judged (Shiryaev-Roberts form: Shin, Ramdas, Rinaldo 2022)

    M_λ ← (M_λ + n)·Π_λ^(1/φ)
    if C_λ ≤ 1: start_λ ← opening of the cohort, C_λ ← 1;  C_λ ← C_λ·Π_λ^(1/φ)

In Π_λ, d is the lead, a = 1/(upper limit of G) if the lead favours the side, else 1/(lower limit of G), and c
is the largest 1/(lower limit of G) of all kinds; a = c = 1 unless the cohort's age is from settled outcomes.

Better is claimed when mean_λ M_λ ≥ 2N/δ, worse when it is ≥ 4N/δ (2N/δ if there is one opponent); then
M = C = 0 of the side. So a model that is not worse than any of the two opponents is judged worse than one of
them within N predictions with probability δ/2 at most, and one that is not better than both is judged better
than both with δ/2 at most.

No evidence is kept until more than 40 cohorts are judged with at least 2,000·φ predictions: before, φ rests
on too few, and M would grow on the dependence of the losses alone. A cohort whose age is from all
predictions, not from settled outcomes, pays for the share not labelled by that age: Π_λ is divided by
(1 + λ·missing)^n. If the cohorts so far lack more labels than they paid for, by more than 4, it does not bet:
M and C stay. Otherwise a class that is labelled later than that age, and becomes frequent, would make false
claims.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from math import sqrt

import numpy as np

from streamwatch.core.estimators.registers.cohorts.settled import (
    classes_of,
    lower_limit,
    unit_of,
    upper_limit,
)
from streamwatch.core.estimators.registers.cohorts.state import (
    ALL,
    CLAIMED,
    CONFIRMED,
    CONFIRMS,
    EARLY,
    EXPIRED,
    FAST_RULE,
    HITS,
    LENGTHS,
    MOST_REMEMBERED,
    MOST_UNPAID,
    OPEN,
    OPPONENTS,
    RETRACTED,
    SETTLED_RULE,
    SIDES,
)
from streamwatch.core.estimators.registers.cohorts.trackers import take_claimed, take_leads
from streamwatch.core.estimators.verdicts.state import BETTER, STAKES, WORSE
from streamwatch.core.jit import (
    bits_at_most,
    exp_lanes,
    inner,
    lanes,
    lanes_of,
    larger,
    log_lanes,
    put_lanes,
    sum_in_pairs,
    where_at_most,
)

# Interval of the prediction time since which a verdict holds.
#
# Let n, m and v be the predictions, the sum of weighted leads and the sum of their squares in the judged
# cohorts of a stretch of prediction time, of which k is one. If the mean lead, counted for the side of the
# verdict, is at most 0 before stretch k and at least 0 from it on, the logarithm of the likelihood of normal
# leads, less that of a lead of 0, is at most
#
#     ℓ_k = [max(Σ_after m, 0)²/Σ_after n + min(Σ_before m, 0)²/Σ_before n] / (2φ·Σv/Σn)
#
# The interval holds the beginnings of all stretches with ℓ_k ≥ max ℓ − 2.25, and *since* itself. It is
# widened on both sides by half of the stretch that lies there, as the change is somewhere within one. The
# limit is that of a change between two known means in many small steps: from the true beginning, ℓ falls to
# either side as a Brownian motion whose largest value is exponential with mean 1, so that max ℓ exceeds ℓ at
# the true beginning by less than x with the probability (1 − e^−x)², .80 for x = 2.25 (Hinkley 1970 has the
# distribution of the maximum).
#
# There is no earliest time if the first stretch is among them: the verdict may hold since before anything
# was judged.


MOST_BELOW = 2.25
"""Largest distance of a beginning's ℓ from the largest ℓ: −ln(1 − √.8), rounded."""


@inner
def likelihood_of(before_n, before, after_n, after, scale):
    """ℓ of a beginning: `before` and `after` are sums of leads, positive for the side of the verdict."""
    found = max(after, 0.0) ** 2 / after_n
    if before_n > 0.0:
        found += min(before, 0.0) ** 2 / before_n
    return found * scale


@inner
def limits_of(m, j, side, since_ms, dispersion, ended_ms):
    """Find the interval of *since* of a claim, as earliest and latest prediction time, milliseconds.

    Parameters
    ----------
    m, j, side
        Record of the model, index of the opponent, and the side that is claimed.
    since_ms
        *Since*, as the bets have it.
    dispersion
        φ, at least 1.
    ended_ms
        End of the cohort judged last.

    Returns
    -------
    earliest_ms, latest_ms
        `earliest_ms` is 0 if there is none.
    """
    sign = 1.0 if side == BETTER else -1.0
    judged = m.bounds - m.next_cohort + m.first_cohort
    predictions, total, squares = 0.0, 0.0, 0.0
    for k in range(judged):
        predictions += m.leads[k].predictions
        total += sign * m.leads[k].totals[j]
        squares += m.leads[k].squares[j]
    scale = predictions / (2.0 * dispersion * squares)
    largest = 0.0
    before_n, before = 0.0, 0.0
    for k in range(judged):
        found = likelihood_of(before_n, before, predictions - before_n, total - before, scale)
        largest = max(largest, found)
        before_n += m.leads[k].predictions
        before += sign * m.leads[k].totals[j]
    first, last = -1, -1
    before_n, before = 0.0, 0.0
    for k in range(judged):
        found = likelihood_of(before_n, before, predictions - before_n, total - before, scale)
        if found >= largest - MOST_BELOW:
            first = k if first < 0 else first
            last = k
        before_n += m.leads[k].predictions
        before += sign * m.leads[k].totals[j]
    earliest_ms = 0
    if first > 0:
        earliest_ms = min((m.bounds_ms[first - 1] + m.bounds_ms[first]) // 2, since_ms)
    next_ms = m.bounds_ms[last + 1] if last + 1 < m.bounds else ended_ms
    return earliest_ms, max((m.bounds_ms[last] + next_ms) // 2, since_ms)


# Dispersion φ of a lead: how much more it varies than leads of independent predictions would.
#
# Sums of the mean leads of 1, 4 and 16 judged cohorts are compared with those before them. The square of
# each difference, at most 8·φ times what it is expected to be, is summed beside Σ(d/G)²/n², what
# independent leads would give; both sums fade. With differences of neighbours, instead of deviations from
# the mean, a lasting change of the lead enters once only.


COHORTS = (1, 4, 16)
"""Numbers of judged cohorts in a sum."""
FADING = 0.99
LEAST_TERMS = 8
"""Number of differences from which a ratio counts."""
BOUND = 8.0
"""One difference may be this multiple of φ and of what is expected: a fall of the lead is no dispersion."""
OVERLAP = 3.0
"""Subtracted from the number of differences, so that 1/φ is right on average (see `verdicts.state`)."""
_COHORTS = np.array(COHORTS)


@inner
def compare_cohorts(o, mean, variance):
    """Compare a judged cohort with those before it, and set φ."""
    dispersion = max(o.dispersion, 1.0)
    for k in range(LENGTHS):
        o.means[k] += mean
        o.variances[k] += variance
        o.parts[k] += 1
        if o.parts[k] == _COHORTS[k]:
            count_difference(o, k, dispersion)
    found = 1.0
    for k in range(LENGTHS):
        if o.terms[k] >= LEAST_TERMS:
            ratio = o.spread[k] / o.expected[k] * o.weights[k] / (o.weights[k] - OVERLAP)
            found = max(found, ratio)
    o.dispersion = found


@inner
def count_difference(o, k, dispersion):
    """Count the difference of a complete sum from the one before it; `dispersion` is φ so far."""
    expected = o.variances[k] + o.last_variances[k]
    if o.wholes[k] > 0 and expected > 0.0:
        change = o.means[k] - o.last_means[k]
        x = min(change * change, BOUND * expected * dispersion)
        o.spread[k] = FADING * o.spread[k] + x
        o.expected[k] = FADING * o.expected[k] + expected
        o.weights[k] = FADING * o.weights[k] + 1.0
        o.terms[k] += 1
    o.wholes[k] += 1
    o.last_means[k] = o.means[k]
    o.last_variances[k] = o.variances[k]
    o.means[k] = 0.0
    o.variances[k] = 0.0
    o.parts[k] = 0


LEAST_JUDGED = 40
"""Number of judged cohorts after which evidence may be kept."""
LARGEST = 600.0
"""Bound of |ln Π/φ| of a cohort, so that M stays finite: e^600 is far more than any claim needs."""
MOST_WEALTH = 1e30
"""Bound of L: far more than a list of models needs, and a product with e^600 of it is finite."""
LOGARITHMS = np.log1p(np.stack([STAKES, -STAKES]))
"""ln(1 ± λ): factors of bets on labels that all count once."""
ERRORS = 2.5
"""Number of standard errors by which the lead of settled predictions must exclude 0 to confirm a verdict."""


@inner
def pays(m, kinds, row, slot):
    """Count what a cohort lacks and pays for, if its age is by the fast rule; return whether it may bet."""
    c = m.cohorts[slot]
    if c.rule != FAST_RULE:
        return True
    n = float(c.predictions)
    labelled = 0.0
    for k in range(classes_of(m)):
        for side in range(SIDES):
            labelled += float(kinds[k, row].labelled[slot, side, ALL])
    m.unpaid = min(max(m.unpaid + (n - labelled - n * c.missing), 0.0), MOST_REMEMBERED)
    return m.unpaid <= MOST_UNPAID


@inner
def take_evidence(m, b, kinds, p, j, slot, may_bet, position, row, changes, count):
    """Judge a cohort against opponent j, by bets if it may; return the new number of changes."""
    o, c = m.opponents[j], m.cohorts[slot]
    n = float(c.predictions)
    if b.table > 0:
        bets = b.bets[slot * len(OPPONENTS) + j]
        total, squares = bets.total, bets.squares
    else:
        total, squares = leads_of(c, m, kinds, row, j, slot)
    take_leads(m, j, n, total, squares)
    o.judged += 1
    o.predictions += n
    o.total += total
    o.squares += squares
    o.unrenewed += c.predictions
    dispersion = max(o.dispersion, 1.0)
    if o.started == 0 and m.judged > LEAST_JUDGED:
        before = float(m.judged_predictions - c.predictions)
        if before >= max(p.least_predictions, p.predictions_by_dispersion * dispersion):
            o.started = 1
            put_lanes(o.wealth, 0, lanes(1.0))
    if o.started == 1 and may_bet:
        for side in range(2):
            grown = logarithms(m, b, kinds, row, j, slot, side) * lanes(1.0 / dispersion)
            grown = larger(grown, lanes(-LARGEST))
            factors = exp_lanes(where_at_most(grown, lanes(LARGEST), grown, lanes(LARGEST)))
            maxima = lanes_of(o.maxima, side)
            started = bits_at_most(maxima, lanes(1.0))
            put_lanes(o.maxima, side, larger(maxima, lanes(1.0)) * factors)
            put_lanes(o.sums, side, (lanes_of(o.sums, side) + lanes(n)) * factors)
            if side == WORSE:
                take_wealth(o, min(n / predictions_of(m, p), 1.0), factors)
            for k in range(len(STAKES)):
                if (started >> k) & 1:
                    o.starts_ms[side, k] = c.opened_ms
        better, worse = sum_in_pairs(lanes_of(o.sums, BETTER)), sum_in_pairs(lanes_of(o.sums, WORSE))
        is_better = better >= threshold_of(m, p, BETTER) * len(STAKES)
        is_worse = worse >= threshold_of(m, p, WORSE) * len(STAKES)
        if is_better or is_worse:
            side = BETTER if is_better and not (is_worse and worse >= better) else WORSE
            evidence = (better if side == BETTER else worse) / len(STAKES)
            count = claim(
                m,
                p,
                j,
                unit_of(b),
                c.rule,
                side,
                evidence,
                dispersion,
                c.ended_ms,
                position,
                row,
                changes,
                count,
            )
            if is_better:
                reset_side(o, BETTER)
            if is_worse:
                reset_side(o, WORSE)
    if o.verdict != 0 and o.unrenewed >= predictions_of(m, p):
        count = expire(m, j, position, row, changes, count)
    compare_cohorts(o, total / n, squares / (n * n))
    return count


@inner
def take_wealth(o, share, factors):
    """Bet on a cohort with its share η = n/N of the initial wealth: L ← ((1 − η)·L + η)·Π.

    L is capped at `MOST_WEALTH`; its expectation for a model that is not worse stays at most 1.
    """
    grown = (lanes_of(o.wealth, 0) * lanes(1.0 - share) + lanes(share)) * factors
    put_lanes(o.wealth, 0, where_at_most(grown, lanes(MOST_WEALTH), grown, lanes(MOST_WEALTH)))


@inner
def leads_of(c, m, kinds, row, j, slot):
    """Σ d/G and Σ (d/G)² of a cohort by accuracy: hits lead by 1, misses by −1."""
    total, squares = 0.0, 0.0
    for k in range(classes_of(m)):
        u = kinds[k, row]
        for side in range(SIDES):
            outcomes = float(u.labelled[slot, side, j])
            weight = 1.0 / u.share[slot, side] if c.rule == SETTLED_RULE else 1.0
            total += outcomes * weight * (1.0 if side == HITS else -1.0)
            squares += outcomes * weight * weight
    return total, squares


@inner
def logarithms(m, b, kinds, row, j, slot, side):
    """Σ ln(1 ± λ·d·a/c) of a cohort by λ, less n·ln(1 + λ·missing)."""
    c = m.cohorts[slot]
    if b.table > 0:
        total = lanes_of(b.bets[slot * len(OPPONENTS) + j].logarithms, side)
    else:
        total = logarithms_of_kinds(c, m, kinds, row, j, slot, side)
    if c.missing > 0.0:
        missed = log_lanes(lanes(1.0) + lanes_of(STAKES, 0) * lanes(c.missing))
        total = total - lanes(float(c.predictions)) * missed
    return total


@inner
def logarithms_of_kinds(c, m, kinds, row, j, slot, side):
    """Σ ln(1 ± λ·d·a/c) of a cohort by accuracy.

    Hits lead by 1, misses by −1. Leads against the side are divided by the lower limit of G: they weigh more.
    """
    total = lanes(0.0)
    sums = lanes(0.0)
    for lead in range(SIDES):
        favours = (lead == HITS) == (side == BETTER)
        outcomes = 0.0
        for k in range(classes_of(m)):
            u = kinds[k, row]
            number = float(u.labelled[slot, lead, j])
            if c.rule != SETTLED_RULE:
                outcomes += number
            elif number > 0.0:
                share, band = u.share[slot, lead], u.band[slot, lead]
                limit = upper_limit(share, band) if favours else lower_limit(share, band)
                bet = (1.0 if favours else -1.0) * c.scale / limit
                total = total + lanes(number) * log_lanes(lanes(1.0) + lanes_of(STAKES, 0) * lanes(bet))
        sums = sums + lanes(outcomes) * lanes_of(LOGARITHMS, 0 if favours else 1)
    return total + sums


@inner
def predictions_of(m, p):
    """N: the predictions of the last 30 days (faded with that time constant), at least as many as are set."""
    return max(float(p.outcomes), m.recent)


@inner
def threshold_of(m, p, side):
    """Evidence that a claim needs: 2N/δ for better, 2N/δ times the number of opponents for worse."""
    return (2.0 if side == BETTER else 2.0 * p.opponents) * predictions_of(m, p) / p.delta


@inner
def claim(m, p, j, unit, rule, side, evidence, dispersion, ended_ms, position, row, changes, count):
    """Give a side the verdict for N predictions; return the new number of changes."""
    o = m.opponents[j]
    o.unrenewed = 0
    verdict = 1 if side == BETTER else -1
    if o.verdict == verdict:
        return count
    best = 0
    for k in range(1, len(STAKES)):
        if o.maxima[side, k] > o.maxima[side, best]:
            best = k
    before = o.verdict
    set_verdict(o, verdict, o.starts_ms[side, best])
    o.earliest_ms, o.latest_ms = limits_of(m, j, side, o.since_ms, dispersion, ended_ms)
    o.status = CONFIRMED
    if rule == SETTLED_RULE:
        o.status = EARLY
        take_claimed(m, j, unit, o.since_ms, ended_ms)
    threshold = threshold_of(m, p, side)
    return append_change(m, j, CLAIMED, before, evidence, threshold, position, row, changes, count)


@inner
def set_verdict(o, verdict, since_ms):
    """Set another verdict, with no interval of *since*, and restart the mean lead."""
    o.verdict = verdict
    o.since_ms = since_ms
    o.earliest_ms = 0
    o.latest_ms = 0
    o.changes += 1
    o.judged = 0
    o.predictions = 0.0
    o.total = 0.0
    o.squares = 0.0


@inner
def reset_side(o, side):
    """Reset the evidence of a side."""
    put_lanes(o.sums, side, lanes(0.0))
    put_lanes(o.maxima, side, lanes(0.0))


@inner
def confirm(m, p, j, position, row, changes, count):
    """Confirm or retract an early verdict whose predictions are settled; return the new number of changes."""
    o = m.opponents[j]
    if o.status != EARLY or m.clock_ms < o.to_ms + p.horizon_ms:
        return count
    k = o.claim_outcomes
    holds = False
    bound = 0.0
    if k > 0.0:
        mean = o.claim_total / k
        variance = max(o.claim_squares / k - mean * mean, 0.0)
        bound = o.verdict * mean - ERRORS * sqrt(variance * max(o.dispersion, 1.0) / k)
        holds = bound > 0.0
    if holds:
        o.status = CONFIRMED
        return append_change(m, j, CONFIRMS, o.verdict, bound, 0.0, position, row, changes, count)
    before = o.verdict
    o.retracted += 1
    o.status = OPEN
    set_verdict(o, 0, m.clock_ms)
    return append_change(m, j, RETRACTED, before, bound, 0.0, position, row, changes, count)


@inner
def expire(m, j, position, row, changes, count):
    """Open a verdict that no claim has renewed; return the new number of changes."""
    o = m.opponents[j]
    before = o.verdict
    o.status = OPEN
    set_verdict(o, 0, m.clock_ms)
    return append_change(m, j, EXPIRED, before, 0.0, 0.0, position, row, changes, count)


@inner
def append_change(m, j, kind, before, evidence, threshold, position, row, changes, count):
    """Write a change of a verdict or of its status; return the new number of changes."""
    o, change = m.opponents[j], changes[count]
    change.position = position
    change.row = row
    change.opponent = j
    change.kind = kind
    change.ordinal = o.changes
    change.before = before
    change.after = o.verdict
    change.since_ms = o.since_ms
    change.earliest_ms = o.earliest_ms
    change.latest_ms = o.latest_ms
    change.evidence = evidence
    change.threshold = threshold
    change.judged = m.judged
    change.status = o.status
    change.is_first = 0
    change.is_retracted = 0
    change.predictions = 0
    change.outcomes = 0
    return count + 1
