"""Shares of outcomes labelled by each age, from the buckets of prediction time that are settled.

A bucket settles when its newest prediction is one horizon old. Then, per kind and age, the number of its
outcomes E_b with a delay up to the age, of all outcomes T_b, and the products E_b², E_b·T_b, T_b² are added
to sums that fade by 15/16 per bucket, or by 1 − n/200 if that is more, n the outcomes of the bucket, so that
at least the last 200 are remembered. The share labelled by an age is G = E/T with the error

    s² = max(G(1 − G)/T, (EE − 2G·ET + G²·TT)/T²)

where the second term is the variance between buckets. A kind with fewer than 30 settled outcomes has the
share of its pooled kind, and cohorts wait for the horizon where such kinds matter. A bucket with more
outcomes than are counted is left out. Instead of fading every sum, the unit in which sums are counted grows;
the age is chosen when a cohort opens.

Where labels come in a rhythm (none at night, or on two days a week), an age shorter than the rhythm would
have a share G that depends on when a prediction was made. So it is at least three times the second longest
gap between labels of the last horizon. The longest is left out, as an outage is no rhythm. A gap counts if
at least 16 labels were to be expected in it. Labels that come in batches need no such age, as a cohort
begins and ends with a batch: if the gaps take 8/9 of the horizon, none counts.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from math import sqrt

import numpy as np

from streamwatch.core.estimators.forgetting.mechanisms import LIMIT, SHRINK
from streamwatch.core.estimators.registers.cohorts.state import (
    AGES,
    CLASSES,
    HITS,
    LIVE,
    MISSES,
    MOST_COUNTED,
    OPPONENTS,
    SETTLED_RULE,
    SIDES,
    SLOTS,
    WHOLE,
    WIDTHS,
)
from streamwatch.core.estimators.verdicts.state import BETTER, STAKES
from streamwatch.core.jit import hot, inner, lanes, lanes_of, log_lanes, put_lanes

FADING = 15.0 / 16.0
LEAST_REMEMBERED = 200.0
LEAST_SETTLED = 100.0
"""Settled hits, and misses, from which an age below the horizon is possible."""
LEAST_OWN = 30.0
"""Settled outcomes of a kind from which its own share is used."""
LEAST_SHARE = 0.15
"""Share that must be labelled by the age in every kind …"""
LEAST_COMMON_SHARE = 1.0 / 3.0
"""… and in those with more than 5 % of the outcomes or less than 100, if an age holds many predictions …"""
LEAST_SCARCE_SHARE = 3.0 / 4.0
"""… or if it holds few: then labels that are waited for are worth more than an early look."""
MANY = 2_000.0
"""Number of outcomes of predictions made within an age from which the age holds many predictions."""
COMMON = 0.05
ERRORS = 2.5
"""Number of standard errors s by which G may be wrong …"""
LEAST_ERROR = 0.05
"""… or this part of G, if that is more."""
LOWEST = 0.05
LEAST_EXPECTED = 16.0
"""Labels expected in a gap from which it counts, by the share of predictions labelled so far."""
GAPS = 3
"""Least length of an age, in gaps between labels."""
SHARED = 0.05
"""Most settled outcomes that have the share of others, as a part of the hits or the misses, the fewer.

By costs, sizes of leads take the place of outcomes.
"""


@inner
def settle(m, b, kinds, row, p):
    """Settle the buckets that are due at the model's clock; the first one must be due."""
    due = (m.clock_ms - p.horizon_ms - m.bucket_ms) // p.width_ms
    for number in range(min(due, LIVE)):  # all later ones are empty
        slot = m.bucket_slot + number
        slot -= LIVE if slot >= LIVE else 0
        outcomes = m.bucket_outcomes[slot]
        if outcomes >= MOST_COUNTED:
            empty_bucket(m, kinds, row, slot)
            m.left_out += 1
        elif outcomes > 0:
            factor = max(FADING, 1.0 - outcomes / LEAST_REMEMBERED)
            m.settled_unit /= factor
            if m.settled_unit > LIMIT:
                shrink_sums(m, kinds, row)
            add_bucket(m, kinds, row, slot)
            m.settled_number = factor * m.settled_number + 1.0
        m.bucket_outcomes[slot] = 0
        m.gaps_ms[slot] = 0
        m.settled_buckets += int(outcomes > 0 or m.settled_buckets > 0)
    if m.settled_buckets > 0:
        m.settled_buckets += max(due - LIVE, 0)
    begin_buckets(m, p, m.bucket_ms + due * p.width_ms, m.bucket_slot + due)
    m.is_stale = 1
    if m.settled_buckets <= WIDTHS:  # an age is kept while few buckets are settled
        choose_age(m, b, kinds, row, p)


@hot
def begin_buckets(m, p, start_ms, slot):
    """Set the first bucket that is not settled, by its start and slot."""
    m.bucket_ms = start_ms
    m.settles_ms = start_ms + p.width_ms + p.horizon_ms
    m.bucket_slot = slot % LIVE


@hot
def slot_of(m, p, time_ms):
    """Slot of the bucket of a time up to the clock; −1 if it is settled."""
    since = time_ms - m.bucket_ms
    if since < 0:
        return -1
    number = np.int64(since * p.inverse_width)  # may be off by one
    rest = since - number * p.width_ms
    slot = m.bucket_slot + number + (rest >= p.width_ms) - (rest < 0)
    return slot - LIVE if slot >= LIVE else slot


@inner
def note_gap(m, p, gap_ms, made):
    """Note a gap between two labels, the later one at the clock, in which so many predictions were made."""
    if float(made) * min(m.observed - 1, m.made) < LEAST_EXPECTED * m.made:
        return
    slot = slot_of(m, p, m.clock_ms)
    if gap_ms > m.gaps_ms[slot]:
        m.gaps_ms[slot] = gap_ms
        m.is_stale = 1


@inner
def least_age_ms(m, p):
    """Least age by the gaps that are noted, one of each bucket that is not settled."""
    longest = second = total = np.int64(0)
    for slot in range(LIVE):
        gap_ms = m.gaps_ms[slot]
        second = max(second, min(longest, gap_ms))
        longest = max(longest, gap_ms)
        total += gap_ms
    return GAPS * second if 9 * total < 8 * p.horizon_ms else np.int64(0)


@inner
def shrink_sums(m, kinds, row):
    """Scale all settled sums back so that their unit is about 1."""
    m.settled_unit *= SHRINK
    shrink_kinds(m.pooled)
    for c in range(classes_of(m)):
        u = kinds[c, row]
        shrink_kinds(u.sums)
        for side in range(SIDES):
            u.lead_sizes[side] *= SHRINK


@inner
def shrink_kinds(sums):
    """Scale settled sums of two kinds back."""
    for side in range(SIDES):
        sums.totals[side] *= SHRINK
        sums.totals_squared[side] *= SHRINK
        for k in range(AGES):
            sums.early[side, k] *= SHRINK
            sums.early_squared[side, k] *= SHRINK
            sums.early_totals[side, k] *= SHRINK


@inner
def classes_of(m):
    """Number of records of classes that are in use."""
    return min(m.classes, CLASSES)


@hot
def add_bucket(m, kinds, row, slot):
    """Add the counts of a bucket to the settled ones, and empty it.

    Counts are cumulated in place first; those of all classes are then summed in the slot of one of them.
    """
    for side in range(SIDES):
        first = -1
        for c in range(classes_of(m)):
            u = kinds[c, row]
            early = np.uint32(0)
            for k in range(AGES):
                early += u.counts[slot, side, k]
                u.counts[slot, side, k] = early
            if early > 0:
                add_counts(u.sums, side, u.counts, slot, m.settled_unit)
                if first < 0:
                    first = c
                else:
                    for k in range(AGES):
                        kinds[first, row].counts[slot, side, k] += u.counts[slot, side, k]
                        u.counts[slot, side, k] = 0
        if first >= 0:
            u = kinds[first, row]
            add_counts(m.pooled, side, u.counts, slot, m.settled_unit)
            for k in range(AGES):
                u.counts[slot, side, k] = 0


@inner
def empty_bucket(m, kinds, row, slot):
    """Drop the counts of a bucket."""
    for c in range(classes_of(m)):
        u = kinds[c, row]
        for side in range(SIDES):
            for k in range(AGES):
                u.counts[slot, side, k] = 0


@hot
def add_counts(sums, side, counts, slot, unit):
    """Add outcomes of a bucket, by their delay up to each age, to the sums of a kind."""
    total = float(counts[slot, side, WHOLE])
    for k in range(AGES):
        early = float(counts[slot, side, k])
        sums.early[side, k] += unit * early
        sums.early_squared[side, k] += unit * (early * early)
        sums.early_totals[side, k] += unit * (early * total)
    sums.totals[side] += unit * total
    sums.totals_squared[side] += unit * (total * total)


@inner
def has_settled(m, sums, side, least):
    """Tell whether a kind has at least so many settled outcomes."""
    return sums.totals[side] >= least * m.settled_unit


@inner
def share_of(sums, side, k):
    """G of a kind with settled outcomes at age k."""
    return sums.early[side, k] / sums.totals[side]


@inner
def band_of(m, sums, side, k, share):
    """Error of a share that its limits allow for."""
    total = sums.totals[side]
    between = sums.early_squared[side, k] - 2.0 * share * sums.early_totals[side, k]
    between += share * share * sums.totals_squared[side]
    squared = m.settled_unit * max(share * (1.0 - share) / total, between / (total * total))
    return max(ERRORS * sqrt(squared), LEAST_ERROR * share)


@inner
def has_both(m):
    """Tell whether hits and misses both have shares."""
    return has_settled(m, m.pooled, HITS, LEAST_SETTLED) and has_settled(m, m.pooled, MISSES, LEAST_SETTLED)


@inner
def lacks_shares(m, b, kinds, row, p, has_others):
    """Tell whether more than `SHARED` of the settled outcomes have no share of their own kind.

    Classes with a common kind count where `has_others` asks for them: they never get shares of their own.

    By costs, leads differ in size: there it is `SHARED` of the sum of their sizes, of labels that came.

    If they are labelled at another speed than those whose share they have, G is wrong for them, and a lead
    that rests on them is one of delays. These are kinds with too few settled outcomes, and classes with a
    common kind: all after the seventh, and all beyond the limit of classes, which count as several even if
    there is only one, as their number is not known. They are compared with the leads of a model that is as
    good as its opponent, on either side; up to this part, the limits of G allow for it. These are as many as
    hits, or misses, at most, and fewer where model and opponent are mostly right or wrong together.
    """
    lacking, hits, misses = 0.0, 0.0, 0.0
    several = has_others and m.classes > p.apart
    for c in range(classes_of(m)):
        u = kinds[c, row]
        has_common = several and c >= min(p.apart, CLASSES - 1)
        sizes = u.lead_sizes if b.table > 0 else u.sums.totals
        hits += sizes[HITS]
        misses += sizes[MISSES]
        for side in range(SIDES):
            if has_common or not has_settled(m, u.sums, side, LEAST_OWN):
                lacking += sizes[side]
    least = min(hits, misses)
    if b.table == 0 and p.opponents > 1:
        for j in range(p.opponents):
            least = min(least, larger_side(m, j) * (hits + misses))
    return lacking > SHARED * least


@inner
def larger_side(m, j):
    """Part of the outcomes since the first cohort in which the model leads over opponent j, or is behind.

    It is the larger of the two; 1 before the first of these outcomes.
    """
    outcomes, leads, squares = 0, 0, 0
    for i in range(m.bounds):
        t = m.stretches[i]
        outcomes += t.outcomes[j]
        leads += t.leads[j]
        squares += t.lead_squares[j]
    return 0.5 * (squares + abs(leads)) / outcomes if outcomes > 0 else 1.0


@inner
def is_allowed(m, kinds, row, p, k):
    """Tell whether enough of every kind is labelled by age k."""
    for side in range(SIDES):
        if share_of(m.pooled, side, k) < LEAST_SHARE:
            return False
    everything = m.pooled.totals[HITS] + m.pooled.totals[MISSES]
    within_age = everything / m.settled_unit / m.settled_number * p.ages_ms[k] / p.width_ms
    common = LEAST_COMMON_SHARE if within_age >= MANY else LEAST_SCARCE_SHARE
    if p.fixed_age >= 0:
        common = LEAST_SHARE
    for c in range(classes_of(m)):
        sums = kinds[c, row].sums
        for side in range(SIDES):
            if has_settled(m, sums, side, LEAST_OWN):
                is_common = sums.totals[side] > COMMON * everything
                is_uncertain = not has_settled(m, sums, side, LEAST_SETTLED)
                least = common if is_common or is_uncertain else LEAST_SHARE
                if share_of(sums, side, k) < least:
                    return False
    return True


@inner
def choose_age(m, b, kinds, row, p):
    """Choose the age by the settled rule, and set the share of every kind at it with its error.

    There is none while shares are awaited that more labels will give, but for `WIDTHS` buckets at most: a
    cohort that opened without them would wait for the horizon, and all later ones would wait for it.
    """
    m.is_stale = 0
    both = has_both(m)
    if m.settled_buckets < WIDTHS and (not both or lacks_shares(m, b, kinds, row, p, False)):
        m.settled_age = 0
        return
    age = WHOLE
    both = both and not lacks_shares(m, b, kinds, row, p, True)
    if both and p.fixed_age >= 0:
        if p.fixed_age < WHOLE and is_allowed(m, kinds, row, p, p.fixed_age):
            age = p.fixed_age
    elif both:
        least_ms = least_age_ms(m, p)
        for k in range(WHOLE):
            if p.ages_ms[k] >= least_ms and is_allowed(m, kinds, row, p, k):
                age = k
                break
    m.settled_age = age + 1
    m.settled_scale = 1.0
    if age == WHOLE:
        return
    for side in range(SIDES):
        share = share_of(m.pooled, side, age)
        m.settled_share[side] = share
        m.settled_band[side] = band_of(m, m.pooled, side, age, share)
        m.settled_scale = min(m.settled_scale, lower_limit(share, m.settled_band[side]))
        for c in range(classes_of(m)):
            u = kinds[c, row]
            u.settled_share[side] = m.settled_share[side]
            u.settled_band[side] = m.settled_band[side]
            if has_settled(m, u.sums, side, LEAST_OWN):
                u.settled_share[side] = share_of(u.sums, side, age)
                u.settled_band[side] = band_of(m, u.sums, side, age, u.settled_share[side])
                lower = lower_limit(u.settled_share[side], u.settled_band[side])
                m.settled_scale = min(m.settled_scale, lower)


@inner
def begin_classes(m, kinds, row, classes):
    """Begin the records of classes up to a number, with the shares of the pooled kinds."""
    before = classes_of(m)
    m.classes = classes
    for c in range(before, classes_of(m)):
        u = kinds[c, row]
        for side in range(SIDES):
            u.settled_share[side] = m.settled_share[side]
            u.settled_band[side] = m.settled_band[side]
            for slot in range(SLOTS):
                u.share[slot, side] = m.share[slot, side]
                u.band[slot, side] = m.band[slot, side]


@inner
def lower_limit(share, band):
    """Least that a share may be."""
    return max(share - band, LOWEST)


@inner
def upper_limit(share, band):
    """Most that a share may be."""
    return min(share + band, 1.0)


# Leads of a model that is judged by costs: they differ in size, so bets are multiplied as labels come.
#
# A lead d is the utility of the model's class less that of the opponent's, from −1 to 1 (see
# `verdicts.costs`). Every cohort has, for each opponent, Σ d·w and Σ (d·w)², w = 1/G of the outcome's kind,
# and for either side Σ ln(1 ± λ·d·a/c) by λ: the logarithm of the product of its bets (a and c: see
# `claims`). A, G, a and c are fixed when a cohort opens, so that an outcome is added to these sums and not
# kept, and the result does not depend on when they are read.


LEAD_UNIT = 1 << 24
"""Leads are summed by stretch of prediction time as integers, leads by costs in units of 1/`LEAD_UNIT`."""


@inner
def unit_of(b):
    """Integer that stands for a lead of 1 in the sums of a stretch."""
    return LEAD_UNIT if b.table > 0 else 1


@inner
def lead_by_costs(b, costs, label, own, other):
    """Lead of the answer `own` over the answer `other`; classes are indices in the model's table of costs."""
    of_label = costs[b.table - 1, label]
    return of_label[own] - of_label[other]


@inner
def in_units(value):
    """Convert a lead, or its square, to the integer that is added to a stretch."""
    return np.int64(np.floor(value * LEAD_UNIT + 0.5))


@inner
def empty_bets(b, slot):
    """Set the sums of a new cohort to zero."""
    for j in range(len(OPPONENTS)):
        bets = b.bets[slot * len(OPPONENTS) + j]
        bets.total = 0.0
        bets.squares = 0.0
        for side in range(SIDES):
            put_lanes(bets.logarithms, side, lanes(0.0))


@inner
def count_bet(b, c, u, j, slot, side, lead):
    """Count the lead over opponent j of an outcome of the cohort c, whose kind is a side of the class u."""
    bets = b.bets[slot * len(OPPONENTS) + j]
    share, lower, upper = 1.0, 1.0, 1.0
    if c.rule == SETTLED_RULE:
        share = u.share[slot, side]
        lower = lower_limit(share, u.band[slot, side])
        upper = upper_limit(share, u.band[slot, side])
    weighted = lead / share
    bets.total += weighted
    bets.squares += weighted * weighted
    for claimed in range(SIDES):
        favours = (lead > 0.0) == (claimed == BETTER)
        bet = abs(lead) * c.scale / upper if favours else -abs(lead) * c.scale / lower
        factors = lanes(1.0) + lanes_of(STAKES, 0) * lanes(bet)
        put_lanes(bets.logarithms, claimed, lanes_of(bets.logarithms, claimed) + log_lanes(factors))
