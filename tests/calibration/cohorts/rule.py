"""Verdicts by cohorts, compiled for simulations: accuracy as utility, two opponents, one model at a time.

The rule is that of `tests/core/estimators/registers/cohorts/naive_cohorts.py`, which says what everything
means; a test holds the two equal.
`Variant` changes single points of it, so that what they are worth can be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tests.core.estimators.registers.cohorts.naive_cohorts import DEADLINE_MS, LAMBDAS, ages_of
from tests.core.estimators.registers.cohorts.streams import Outcomes

RATES = np.array(LAMBDAS)
CLAIM, OPENED, CONFIRMED, RETRACTED, AGE_CHANGE, STARTED = range(6)
EVENT = np.dtype(
    [
        ("what", np.int8),
        ("opponent", np.int8),
        ("side", np.int8),
        ("age", np.int8),
        ("complete", np.bool_),
        ("at", np.int64),
        ("since", np.int64),
        ("end", np.int64),
        ("phi", np.float64),
    ]
)


class Variant(NamedTuple):
    """Numbers of the rule that simulations vary."""

    frequent_share: float = 1 / 3
    """Least G of kinds with more than 5 % of the settled outcomes, where an age holds many predictions."""
    few_share: float = 0.75
    """The same, where it holds few."""
    many: float = 2_000.0
    rare_share: float = 0.15
    least_own: float = 30.0
    """Settled outcomes of a kind from which it has a share of its own."""
    shared: float = 0.05
    """Most outcomes of kinds without a share of their own, as a part of the hits or misses, the fewer, or of
    the leads over an opponent, on the side that has more."""
    gap_factor: float = 3.0
    """Least age by the settled rule, in gaps between labels: the second longest of the last horizon."""
    least_expected: float = 16.0
    """Labels expected in such a gap."""
    fixed_age: int = -1
    by_sign: bool = False
    """Kinds by the sign of the lead and the class, of each opponent, instead of hit or miss and the class."""
    counts_missing: bool = True
    """The fast rule pays for the share of predictions without label."""
    lacking_errors: float = 2.5
    lacking_more: float = 3.0
    """What is added to the predictions that lack a label: standard errors, and a number."""
    most_unpaid: float = 4.0
    """Labels that cohorts of the fast rule may lack beyond what they paid for; above it, none bets."""
    least_in_window: int = 256
    """Predictions of a window that the fast rule reads."""
    start_predictions: float = 1_152.0
    start_per_phi: float = 2_000.0
    start_cohorts: int = 40
    least_in_cohort: int = 32
    keeps_share: float = 0.0
    """An age is kept until a frequent kind's G falls below this part of what is asked; 0: no such rule."""
    scales: int = 3
    predictions: float = 100_000.0
    delta: float = 0.05
    relative_band: float = 0.05
    clip: float = 8.0
    fade: float = 0.99


AS_WRITTEN = Variant()


@dataclass(frozen=True)
class Told:
    """What a judge says of a run."""

    events: NDArray[np.void]
    judged: int
    phi: NDArray[np.float64]
    """Of each opponent, at the end."""


@numba.njit(error_model="numpy", cache=True)
def _fewest(hits, misses, leads):
    """Settled hits or misses, or leads over an opponent on the side that has more: the fewest of them."""
    fewest = min(hits, misses)
    for j in range(leads.shape[1]):
        sums = leads[:, j].sum(axis=0)
        if sums[0] > 0.0:
            larger = (sums[2] + abs(sums[1])) / 2.0
            fewest = min(fewest, larger / sums[0] * (hits + misses))
    return fewest


@numba.njit(error_model="numpy", cache=True)
def _judge(at_, delay_, made_, label_, predicted_, last_, horizon, ages, v, rates, events):  # noqa: PLR0917
    n_ages = ages.size
    last_age = n_ages - 1
    cells = 18  # 8 hits, 8 misses, pooled hits, pooled misses
    opponents = 2
    kinds = 2 if v.by_sign else 1
    width = int(np.ceil(horizon / 16))
    several = False  # classes with a common kind
    ring = np.zeros((17, kinds, cells, n_ages))
    ring_all = np.zeros(17)
    ring_gap = np.zeros(17)
    total = np.zeros((kinds, cells))
    total2 = np.zeros((kinds, cells))
    early = np.zeros((kinds, cells, n_ages))
    early2 = np.zeros((kinds, cells, n_ages))
    cross = np.zeros((kinds, cells, n_ages))
    next_bucket = -1
    settled_buckets = 0
    settled_outcomes = 0.0
    settled_number = 0.0
    t_opened = np.full(last_age, -1, np.int64)
    t_made = np.zeros(last_age, np.int64)
    t_end = np.full(last_age, -1, np.int64)
    t_end_made = np.zeros(last_age, np.int64)
    t_due = np.zeros(last_age, np.int64)
    t_labelled = np.zeros(last_age)
    t_share = np.zeros(last_age)
    t_total = np.zeros(last_age)
    counts = np.zeros(64)
    leader = -1
    note_at = np.zeros(33, np.int64)
    note_class = np.zeros(33, np.int64)
    notes = 0
    most = 40
    slots = most
    c_opened = np.zeros(slots, np.int64)
    c_end = np.zeros(slots, np.int64)
    c_made = np.zeros(slots, np.int64)
    c_n = np.zeros(slots, np.int64)
    c_age = np.zeros(slots, np.int64)
    c_width = np.zeros(slots)
    c_missing = np.zeros(slots)
    c_fast = np.zeros(slots, np.bool_)
    c_share = np.ones((slots, kinds, cells))
    c_lower = np.ones((slots, kinds, cells))
    c_upper = np.ones((slots, kinds, cells))
    c_counts = np.zeros((slots, opponents, 16, 2))
    c_labels = np.zeros(slots)
    unpaid = 0.0
    first_slot = 0
    closed = 0
    is_open = False
    recent = 0.0
    opened_once = False
    opening_at = 0
    opening_made = 0
    current_age = -1
    judged = 0
    judged_predictions = 0.0
    m_ = np.zeros((opponents, 2, 8))
    c_ = np.zeros((opponents, 2, 8))
    start_ = np.zeros((opponents, 2, 8), np.int64)
    phi = np.ones(opponents)
    started = np.zeros(opponents, np.bool_)
    verdict = np.zeros(opponents, np.int64)
    since_claim = np.zeros(opponents)
    waiting = np.full((opponents, 2), -1, np.int64)
    n_scales = 5
    scale_size = np.array([1, 4, 16, 64, 256])
    scale_fade = np.full(n_scales, v.fade)
    s_sum = np.zeros((opponents, n_scales))
    s_var = np.zeros((opponents, n_scales))
    s_in = np.zeros(n_scales, np.int64)
    s_prev = np.zeros((opponents, n_scales))
    s_prev_var = np.zeros((opponents, n_scales))
    s_has = np.zeros(n_scales, np.bool_)
    s_num = np.zeros((opponents, n_scales))
    s_den = np.zeros((opponents, n_scales))
    s_count = np.zeros((opponents, n_scales))
    s_diffs = np.zeros((opponents, n_scales), np.int64)
    starts = np.zeros(64, np.int64)
    n_starts = 0
    k_sum = np.zeros((64, opponents, 3))
    w_sum = np.zeros((opponents, 3))
    lead = np.zeros(opponents)
    answers = np.zeros(opponents, np.bool_)
    found = 0
    for i in range(at_.size):
        at = at_[i]
        made = made_[i]
        delay = delay_[i]
        s = at - delay
        y = label_[i]
        x = predicted_[i]
        # 1 close
        if is_open and closed + 1 < most:
            slot = (first_slot + closed) % slots
            if at >= c_opened[slot] + c_width[slot] and made - c_made[slot] >= v.least_in_cohort:
                c_end[slot] = at
                c_n[slot] = made - c_made[slot]
                closed += 1
                is_open = False
        # 2 settle, trackers, confirmation
        if next_bucket < 0:
            next_bucket = int((at - horizon) // width)
        while next_bucket >= 0 and at >= (next_bucket + 1) * width + horizon:
            r = next_bucket % 17
            n = ring_all[r]
            ring_gap[r] = 0.0
            if n > 0 or settled_buckets > 0:
                settled_buckets += 1
            if n > 0:
                fade = max(1 - 1 / 16, 1 - n / 200)
                settled_outcomes = settled_outcomes * fade + n
                settled_number = settled_number * fade + 1
                for q in range(kinds):
                    for cell in range(cells):
                        t = 0.0
                        for k in range(n_ages):
                            t += ring[r, q, cell, k]
                        total[q, cell] = total[q, cell] * fade + t
                        total2[q, cell] = total2[q, cell] * fade + t * t
                        e = 0.0
                        for k in range(n_ages):
                            e += ring[r, q, cell, k]
                            early[q, cell, k] = early[q, cell, k] * fade + e
                            early2[q, cell, k] = early2[q, cell, k] * fade + e * e
                            cross[q, cell, k] = cross[q, cell, k] * fade + e * t
                ring[r] = 0.0
                ring_all[r] = 0.0
            next_bucket += 1
        for k in range(last_age):
            if at < t_due[k]:
                continue
            if t_opened[k] >= 0 and t_end[k] < 0 and made - t_made[k] >= v.least_in_window:
                t_end[k] = at
                t_end_made[k] = made
                t_due[k] = at + ages[k]
            if t_end[k] >= 0 and at >= t_due[k]:
                t_share[k] += t_labelled[k]
                t_total[k] += t_end_made[k] - t_made[k]
                t_share[k] = min(t_share[k], t_total[k])
                if t_total[k] >= 20000:
                    t_share[k] /= 2
                    t_total[k] /= 2
                t_opened[k] = -1
            if t_opened[k] < 0:
                t_opened[k] = at
                t_made[k] = made
                t_end[k] = -1
                t_labelled[k] = 0
                t_due[k] = at + max(ages[k], 1000)
        for j in range(opponents):
            if waiting[j, 1] >= 0 and at >= waiting[j, 1] + horizon:
                n, a, b = w_sum[j]
                what = RETRACTED
                if n > 0:
                    mean = a / n
                    if mean * verdict[j] > 2.5 * np.sqrt(max(b / n - mean * mean, 0.0) / n * phi[j]):
                        what = CONFIRMED
                if found < events.size:
                    ev = events[found]
                    ev.what = what
                    ev.opponent = j
                    ev.side = verdict[j]
                    ev.at = at
                    found += 1
                waiting[j, 1] = -1
                if what == RETRACTED:
                    verdict[j] = 0
        # 3 judge
        while closed > 0:
            due = c_end[first_slot] + ages[c_age[first_slot]]
            if at < due + (DEADLINE_MS if c_age[first_slot] == last_age else 0):
                break
            o = first_slot
            first_slot = (first_slot + 1) % slots
            closed -= 1
            n = float(c_n[o])
            if n == 0:
                continue
            judged += 1
            judged_predictions += n
            now_n = max(v.predictions, recent)
            bets = True
            if c_fast[o]:
                unpaid += n - c_labels[o] - n * c_missing[o]
                unpaid = min(max(unpaid, 0.0), v.most_unpaid + 1.0)
                bets = unpaid <= v.most_unpaid
            for j in range(opponents):
                q = j if v.by_sign else 0
                since_claim[j] += n
                if not started[j]:
                    least = max(v.start_predictions, v.start_per_phi * phi[j])
                    if judged > v.start_cohorts and judged_predictions - n >= least:
                        started[j] = True
                        if found < events.size:
                            ev = events[found]
                            ev.what = STARTED
                            ev.opponent = j
                            ev.at = at
                            ev.phi = phi[j]
                            found += 1
                if started[j] and bets:
                    c = 1.0
                    for cell in range(cells):
                        c = max(c, 1.0 / c_lower[o, q, cell])
                    best = -1
                    best_mean = 0.0
                    both = 0
                    for side in range(2):  # 0 worse, 1 better
                        sign = -1 if side == 0 else 1
                        mean = 0.0
                        for k in range(8):
                            f = -n * np.log1p(rates[k] * c_missing[o])
                            for cell in range(16):
                                for u in range(2):
                                    count = c_counts[o, j, cell, u]
                                    if count > 0:
                                        d = 1.0 if u == 1 else -1.0
                                        g = c_lower[o, q, cell] if d * sign < 0 else c_upper[o, q, cell]
                                        f += count * np.log1p(sign * rates[k] * d / g / c)
                            f = np.exp(min(f / phi[j], 600.0))
                            m_[j, side, k] = (m_[j, side, k] + n) * f
                            if c_[j, side, k] <= 1:
                                start_[j, side, k] = c_opened[o]
                                c_[j, side, k] = 1.0
                            c_[j, side, k] *= f
                            mean += m_[j, side, k]
                        mean /= 8
                        if mean >= (4 if side == 0 else 2) * now_n / v.delta:
                            both += side + 1
                            if best < 0 or mean > best_mean:
                                best = side
                                best_mean = mean
                    if best >= 0:
                        sign = -1 if best == 0 else 1
                        if verdict[j] != sign:
                            top = 0
                            for k in range(8):
                                if c_[j, best, k] > c_[j, best, top]:
                                    top = k
                            verdict[j] = sign
                            waiting[j, 1] = -1
                            since = start_[j, best, top]
                            if c_age[o] < last_age and not c_fast[o]:
                                waiting[j, 1] = c_end[o]
                                w_sum[j] = 0.0
                                for p in range(n_starts):
                                    if starts[p] <= since:
                                        waiting[j, 0] = starts[p]
                                        w_sum[j] = 0.0
                                    if starts[p] >= c_end[o]:
                                        waiting[j, 1] = starts[p]
                                        break
                                    w_sum[j] += k_sum[p, j]
                            if found < events.size:
                                ev = events[found]
                                ev.what = CLAIM
                                ev.opponent = j
                                ev.side = sign
                                ev.age = c_age[o]
                                ev.complete = c_fast[o] or c_age[o] == last_age
                                ev.at = at
                                ev.since = since
                                ev.end = c_end[o]
                                ev.phi = phi[j]
                                found += 1
                        since_claim[j] = 0
                        for side in range(2):
                            if both & (side + 1):
                                m_[j, side] = 0.0
                                c_[j, side] = 0.0
                if verdict[j] != 0 and since_claim[j] >= now_n:
                    if found < events.size:
                        ev = events[found]
                        ev.what = OPENED
                        ev.opponent = j
                        ev.side = verdict[j]
                        ev.at = at
                        found += 1
                    verdict[j] = 0
                    waiting[j, 1] = -1
                mean_lead = 0.0
                variance = 0.0
                for cell in range(16):
                    g = c_share[o, q, cell]
                    minus = c_counts[o, j, cell, 0]
                    plus = c_counts[o, j, cell, 1]
                    mean_lead += (plus - minus) / g
                    variance += (plus + minus) / (g * g)
                mean_lead /= n
                variance /= n * n
                wanted = 1.0
                for k in range(v.scales):
                    s_sum[j, k] += mean_lead
                    s_var[j, k] += variance
                    if s_in[k] + 1 == scale_size[k]:
                        if s_has[k]:
                            e = s_var[j, k] + s_prev_var[j, k]
                            if e > 0:
                                sq = (s_sum[j, k] - s_prev[j, k]) ** 2
                                sq = min(sq, v.clip * e * phi[j])
                                s_num[j, k] = s_num[j, k] * scale_fade[k] + sq
                                s_den[j, k] = s_den[j, k] * scale_fade[k] + e
                                s_count[j, k] = s_count[j, k] * scale_fade[k] + 1
                                s_diffs[j, k] += 1
                        s_prev[j, k] = s_sum[j, k]
                        s_prev_var[j, k] = s_var[j, k]
                        s_sum[j, k] = 0.0
                        s_var[j, k] = 0.0
                    if s_diffs[j, k] >= 8:
                        ratio = s_num[j, k] / s_den[j, k] * s_count[j, k] / (s_count[j, k] - 3)
                        wanted = max(wanted, ratio)
                phi[j] = wanted
            for k in range(v.scales):
                s_in[k] += 1
                if s_in[k] == scale_size[k]:
                    s_in[k] = 0
                    s_has[k] = True
        # 4 open
        if not is_open and closed < most:
            age = -1
            missing = 0.0
            known = settled_buckets >= 16
            if settled_buckets > 0:
                known_all = True
                for q in range(kinds):
                    for cell in range(16, 18):
                        if total[q, cell] < 100:
                            known_all = False
                    awaited = 0.0
                    for cell in range(16):
                        if total[q, cell] < v.least_own:
                            awaited += total[q, cell]
                    if awaited > v.shared * _fewest(total[q, 16], total[q, 17], k_sum[:n_starts]):
                        known_all = False
                known = known or known_all
            settled_age = False
            if known:
                age = last_age
                lowest = 0
                highest = last_age
                second_gap = np.sort(ring_gap)[-2]
                if 9 * ring_gap.sum() >= 8 * horizon:
                    second_gap = 0.0
                while lowest < last_age and ages[lowest] < v.gap_factor * second_gap:
                    lowest += 1
                if v.fixed_age >= 0:
                    lowest = v.fixed_age
                    highest = min(v.fixed_age + 1, last_age)
                for k in range(lowest, highest):
                    good = True
                    keeps = v.keeps_share > 0 and k == current_age
                    frequent_share = v.few_share
                    if settled_outcomes / settled_number * ages[k] / width >= v.many:
                        frequent_share = v.frequent_share
                    for q in range(kinds):
                        everything = total[q, 16] + total[q, 17]
                        for cell in range(16, 18):
                            if total[q, cell] < 100 or early[q, cell, k] < 0.15 * total[q, cell]:
                                good = False
                        shared = 0.0
                        for cell in range(16):
                            if total[q, cell] < v.least_own or (several and cell % 8 == 7):
                                shared += total[q, cell]
                        if shared > v.shared * _fewest(total[q, 16], total[q, 17], k_sum[:n_starts]):
                            good = False
                        for cell in range(16):
                            if total[q, cell] >= v.least_own:
                                frequent = total[q, cell] > 0.05 * everything or total[q, cell] < 100
                                frequent = frequent and v.fixed_age < 0
                                if frequent:
                                    least_share = v.keeps_share * frequent_share if keeps else frequent_share
                                else:
                                    least_share = 0.8 * v.rare_share if keeps else v.rare_share
                                if early[q, cell, k] < least_share * total[q, cell]:
                                    good = False
                    if good:
                        age = k
                        settled_age = True
                        break
            if v.fixed_age < 0:
                for k in range(last_age):
                    if t_total[k] >= 1000 and t_share[k] >= 0.99 * t_total[k]:
                        if age < 0 or ages[k] <= max(ages[age], horizon / 16):
                            age = k
                            settled_age = False
                            lacking = t_total[k] - t_share[k]
                            missing = lacking + v.lacking_errors * np.sqrt(lacking) + v.lacking_more
                            missing /= t_total[k]
                        break
            if age >= 0:
                if opened_once:
                    recent = recent * np.exp(-(at - opening_at) / 2592000000.0) + (made - opening_made)
                opened_once = True
                opening_at = at
                opening_made = made
                if age != current_age:
                    if found < events.size:
                        ev = events[found]
                        ev.what = AGE_CHANGE
                        ev.age = age
                        ev.at = at
                        found += 1
                    current_age = age
                o = (first_slot + closed) % slots
                oldest = ages[age] + (DEADLINE_MS if age == last_age else 0)
                for k in range(closed):
                    other = c_age[(first_slot + k) % slots]
                    oldest = max(oldest, ages[other] + (DEADLINE_MS if other == last_age else 0))
                c_opened[o] = at
                c_made[o] = made
                c_age[o] = age
                c_width[o] = max(np.ceil(oldest / 16), 1.0)
                c_missing[o] = missing if v.counts_missing else 0.0
                c_fast[o] = age < last_age and not settled_age
                c_counts[o] = 0.0
                c_labels[o] = 0.0
                c_share[o] = 1.0
                c_lower[o] = 1.0
                c_upper[o] = 1.0
                if settled_age:
                    for q in range(kinds):
                        for cell in range(16):
                            src = cell if total[q, cell] >= v.least_own else 16 + cell // 8
                            t = total[q, src]
                            g = early[q, src, age] / t
                            by_bucket = (
                                early2[q, src, age] - 2 * g * cross[q, src, age] + g * g * total2[q, src]
                            )
                            band = max(
                                2.5 * np.sqrt(max(g * (1 - g) / t, by_bucket / t**2)), v.relative_band * g
                            )
                            c_share[o, q, cell] = g
                            c_lower[o, q, cell] = max(g - band, 0.05)
                            c_upper[o, q, cell] = min(g + band, 1.0)
                        for half in range(2):  # the pooled ones, for c
                            t = total[q, 16 + half]
                            g = early[q, 16 + half, age] / t
                            by_bucket = (
                                early2[q, 16 + half, age]
                                - 2 * g * cross[q, 16 + half, age]
                                + g * g * total2[q, 16 + half]
                            )
                            band = max(
                                2.5 * np.sqrt(max(g * (1 - g) / t, by_bucket / t**2)), v.relative_band * g
                            )
                            c_lower[o, q, 16 + half] = max(g - band, 0.05)
                is_open = True
                if n_starts == 64:
                    for p in range(16):
                        starts[p] = starts[2 * p]
                        k_sum[p] = k_sum[2 * p] + k_sum[2 * p + 1]
                    for p in range(32):
                        starts[16 + p] = starts[32 + p]
                        k_sum[16 + p] = k_sum[32 + p]
                    n_starts = 48
                starts[n_starts] = at
                k_sum[n_starts] = 0.0
                n_starts += 1
        # 5 count
        if i > 0 and made > made_[i - 1]:
            expected = (made - made_[i - 1]) * min(i / (made - made_[0]), 1.0)
            if expected >= v.least_expected - 1e-9:
                r = int(at // width) % 17
                ring_gap[r] = max(ring_gap[r], at - at_[i - 1])
        if i >= 100:
            last_note = (notes - 1) % 33
            if notes == 0 or (note_class[last_note] != leader and at >= note_at[last_note] + horizon / 32):
                note_at[notes % 33] = at
                note_class[notes % 33] = leader
                notes += 1
        if delay <= horizon:
            bin_ = 0
            while delay > ages[bin_]:
                bin_ += 1
            for k in range(bin_, last_age):
                if s >= t_opened[k] and (t_end[k] < 0 or s < t_end[k]):
                    t_labelled[k] += 1
            hit = y == x
            right = 1.0 if hit else 0.0
            answers[0] = last_[i] >= 0
            lead[0] = right - (1.0 if last_[i] == y else 0.0)
            answers[1] = False
            for k in range(min(notes, 33)):
                p = (notes - 1 - k) % 33
                if note_at[p] <= s:
                    answers[1] = True
                    lead[1] = right - (1.0 if note_class[p] == y else 0.0)
                    break
            bucket = int(s // width)
            r = bucket % 17
            local = min(y, 7)
            several = several or y > 7
            ring_all[r] += 1
            cell = local + (0 if hit else 8)
            if v.by_sign:
                for j in range(opponents):
                    if answers[j] and lead[j] != 0:
                        signed = local + (0 if lead[j] > 0 else 8)
                        ring[r, j, signed, bin_] += 1
                        ring[r, j, 16 + signed // 8, bin_] += 1
            else:
                ring[r, 0, cell, bin_] += 1
                ring[r, 0, 16 + cell // 8, bin_] += 1
            p = n_starts - 1
            while p >= 0 and starts[p] > s:
                p -= 1
            for j in range(opponents):
                if answers[j]:
                    if p >= 0:
                        k_sum[p, j, 0] += 1
                        k_sum[p, j, 1] += lead[j]
                        k_sum[p, j, 2] += lead[j] ** 2
                    if waiting[j, 1] >= 0 and waiting[j, 0] <= s < waiting[j, 1]:
                        w_sum[j, 0] += 1
                        w_sum[j, 1] += lead[j]
                        w_sum[j, 2] += lead[j] ** 2
            existing = closed + (1 if is_open else 0)
            for k in range(existing):
                o = (first_slot + existing - 1 - k) % slots
                if s >= c_opened[o]:
                    inside = (k == 0 and is_open) or s < c_end[o]
                    if inside and delay <= ages[c_age[o]]:
                        c_labels[o] += 1
                        for j in range(opponents):
                            if answers[j] and lead[j] != 0:
                                where = local + (0 if lead[j] > 0 else 8) if v.by_sign else cell
                                c_counts[o, j, where, 1 if lead[j] > 0 else 0] += 1
                    break
        counts *= 0.999
        counts[y] += 1
        if leader < 0 or counts[y] > counts[leader]:
            leader = y
    return found, judged, phi


def judge(outcomes: Outcomes, horizon_ms: int, variant: Variant = AS_WRITTEN) -> Told:
    """Run the rule over a model's outcomes."""
    events = np.zeros(4_096, EVENT)
    ages = np.array(ages_of(horizon_ms))
    found, judged, phi = _judge(*outcomes, horizon_ms, ages, variant, RATES, events)
    return Told(events[:found], judged, phi)
