"""The hot loop over pairs of outcomes: sums under every mechanism, then the step of the verdict.

With x_A and x_B the losses (0 or 1) of champion and challenger on a pair, landmark and sliding sums are exact
integers, and faded ones S ← αS + x at every pair. The lead of the verdict is u(y, ŷ_B) − u(y, ŷ_A).
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.comparisons.state import CHAMPION_WRONG
from streamwatch.core.estimators.forgetting.mechanisms import LIMIT, SHRINK
from streamwatch.core.estimators.verdicts.detector import observe_lead
from streamwatch.core.estimators.verdicts.utility import ALPHA, balanced_weight
from streamwatch.core.jit import entry, hot, inner, without_refcount

GROWTH = 1.0 / ALPHA


@hot
def add(sums, bits, sign):
    """Count a pair in, or (sign −1) out of, sums that are integers."""
    champion, challenger = int(bits & CHAMPION_WRONG), int(bits >> 1)
    both = champion & challenger
    sums.pairs += sign
    sums.champion += sign * champion
    sums.challenger += sign * challenger
    sums.n01 += sign * (champion - both)
    sums.n10 += sign * (challenger - both)


@hot
def fade(sums, alpha, bits):
    """Count a pair in sums that fade."""
    champion, challenger = int(bits & CHAMPION_WRONG), int(bits >> 1)
    differ = champion ^ challenger
    sums.weight = alpha * sums.weight + 1.0
    sums.squares = alpha * alpha * sums.squares + 1.0
    sums.champion = alpha * sums.champion + champion
    sums.challenger = alpha * sums.challenger + challenger
    sums.n01 = alpha * sums.n01 + (differ & champion)
    sums.n10 = alpha * sums.n10 + (differ & challenger)
    sums.variance = alpha * alpha * sums.variance + differ


@inner
def weigh(state, counts, row, true_class):
    """Worth of a right answer by the balanced utility before this label counts; then count it. O(K)."""
    state.classes = max(state.classes, true_class + 1)
    unit = state.unit if state.unit > 0.0 else 1.0
    worth = balanced_weight(counts, 0, state.classes, row, unit, true_class)
    unit *= GROWTH
    counts[true_class, row] += unit
    if unit > LIMIT:
        unit *= SHRINK
        for k in range(counts.shape[0]):
            counts[k, row] *= SHRINK
    state.unit = unit
    return worth


@entry
def observe(
    latest,
    landmark,
    faded,
    windows,
    rings,
    paces,
    verdicts,
    balanced,
    counts,
    alphas,
    sizes,
    parameters,
    rows,
    bits,
    leads,
    true_class,
    event_ms,
):
    """Feed a batch of pairs, in order.

    `faded` (rows, fading mechanisms), `windows` (rows, sliding ones), `rings` (rows, longest size), `counts`
    (classes, rows). Of n pairs, each (n,): `rows`, `bits`, `leads` by accuracy or costs, `true_class` for the
    balanced utility alone, `event_ms`.
    """
    latest, landmark = without_refcount(latest), without_refcount(landmark)
    faded, windows = without_refcount(faded), without_refcount(windows)
    rings, paces, verdicts = without_refcount(rings), without_refcount(paces), without_refcount(verdicts)
    p = without_refcount(parameters)[0]
    for i in range(rows.shape[0]):
        row = rows[i]
        last = latest[row]
        seen = bits[i]
        lead = leads[i]
        ring = rings[row]
        for j in range(sizes.shape[0]):
            window = windows[row, j]
            if window.pairs == sizes[j]:
                gone = last.head - sizes[j]
                add(window, ring[gone if gone >= 0 else gone + ring.shape[0]], -1)
            add(window, seen, 1)
        ring[last.head] = seen
        last.head = last.head + 1 if last.head + 1 < ring.shape[0] else 0
        add(landmark[row], seen, 1)
        last.event_ms = event_ms[i]
        for j in range(alphas.shape[0]):
            fade(faded[row, j], alphas[j], seen)
        if balanced[row].counted:
            worth = weigh(balanced[row], counts, row, true_class[i])
            lead = worth * (int(seen & CHAMPION_WRONG) - int(seen >> 1))
        observe_lead(paces[row], verdicts[row], p, lead, landmark[row].pairs, event_ms[i])
