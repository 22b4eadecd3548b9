"""Interval of the prediction time since which a verdict holds.

Let n, m and v be the predictions, the sum of weighted leads and the sum of their squares in the judged
cohorts of a stretch of prediction time, of which k is one. If the mean lead, counted for the side of the
verdict, is at most 0 before stretch k and at least 0 from it on, the logarithm of the likelihood of normal
leads, less that of a lead of 0, is at most

    ℓ_k = [max(Σ_after m, 0)²/Σ_after n + min(Σ_before m, 0)²/Σ_before n] / (2φ·Σv/Σn)

The interval holds the beginnings of all stretches with ℓ_k ≥ max ℓ − 2.25, and *since* itself. It is widened
on both sides by half of the stretch that lies there, as the change is somewhere within one. The limit is that
of a change between two known means in many small steps: from the true beginning, ℓ falls to either side as a
Brownian motion whose largest value is exponential with mean 1, so that max ℓ exceeds ℓ at the true beginning
by less than x with the probability (1 − e^−x)², .80 for x = 2.25 (Hinkley 1970 has the distribution of the
maximum).

There is no earliest time if the first stretch is among them: the verdict may hold since before anything was
judged.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.verdicts.state import BETTER
from streamwatch.core.jit import inner

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
