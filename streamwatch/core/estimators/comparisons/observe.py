"""Hot loop over pairs of outcomes: sums under every mechanism, then one step of the verdict.

x_A and x_B are the losses (0 or 1) of champion and challenger on a pair. Landmark and sliding sums are exact
integers, faded ones S ← αS + x at every pair. The lead for the verdict is u(y, ŷ_B) − u(y, ŷ_A).
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.forgetting.mechanisms import LIMIT, SHRINK
from streamwatch.core.estimators.verdicts.detector import ALPHA, balanced_weight, observe_lead
from streamwatch.core.jit import entry, hot, inner

# State of a comparison of two models: records of scalars, all zero at first.


VERSION = 1
"""Incremented when the meaning of the state changes."""

TALLY = np.dtype(
    [
        ("pairs", "i8"),  # number of pairs of outcomes: all, or those in a window
        ("champion", "i8"),  # of these, pairs with the champion wrong
        ("challenger", "i8"),  # … with the challenger wrong
        ("n01", "i8"),  # … with the champion wrong and the challenger right
        ("n10", "i8"),  # … with the champion right and the challenger wrong
    ]
)
LATEST = np.dtype(
    [
        ("head", "i8"),  # position of the next pair in the ring
        ("event_ms", "i8"),  # event time of the last pair
    ]
)
FADED = np.dtype(
    [
        ("weight", "f8"),  # Σw of the pairs
        ("squares", "f8"),  # Σw²
        ("champion", "f8"),  # S_A ← αS_A + x_A
        ("challenger", "f8"),  # S_B
        ("n01", "f8"),
        ("n10", "f8"),
        ("variance", "f8"),  # V ← α²V + 1[one was wrong and the other right]
    ]
)
BALANCED = np.dtype(
    [
        ("counted", "i8"),  # whether labels are counted, which only the balanced utility needs
        ("classes", "i8"),  # number of classes counted so far, by local index
        ("unit", "f8"),  # amount that the newest label counted; 0 stands for 1
    ]
)
"""Label counts of the balanced utility; the faded counts by class are in a separate array, in this unit."""

CHAMPION_WRONG, CHALLENGER_WRONG = 1, 2
"""Bits of a pair in the ring."""


GROWTH = 1.0 / ALPHA


@hot
def add(sums, bits, sign):
    """Add a pair to integer sums, or subtract it (sign −1)."""
    champion, challenger = int(bits & CHAMPION_WRONG), int(bits >> 1)
    both = champion & challenger
    sums.pairs += sign
    sums.champion += sign * champion
    sums.challenger += sign * challenger
    sums.n01 += sign * (champion - both)
    sums.n10 += sign * (challenger - both)


@hot
def fade(sums, alpha, bits):
    """Add a pair to faded sums."""
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
    """Return the weight of a right answer under the balanced utility, then count this label; O(K)."""
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
def lay_out(records, pairs, codes, row_of, rows, bits, leads, event_ms):
    """Write the row, the errors, the lead by accuracy and the time of each pair.

    Parameters
    ----------
    records
        Outcomes, `core.records.outcomes.OUTCOME`.
    pairs
        `core.records.outcomes.Pairs`, (n, 4).
    codes
        int64 (n,): twice the number of the comparison, plus 1 if the partner is the champion.
    row_of
        int64: row of each comparison, by its number.
    rows, bits, leads, event_ms
        Output, as `observe` takes them.
    """
    for i in range(pairs.shape[0]):
        outcome = records[pairs[i, 0]]
        own_wrong = np.int64(outcome.predicted_class != outcome.true_class)
        partner_wrong = np.int64(pairs[i, 2] != outcome.true_class)
        champion, challenger = own_wrong, partner_wrong
        if codes[i] & 1:
            champion, challenger = partner_wrong, own_wrong
        rows[i] = row_of[codes[i] >> 1]
        bits[i] = CHAMPION_WRONG * champion + CHALLENGER_WRONG * challenger
        leads[i] = champion - challenger
        event_ms[i] = outcome.event_ms


class PairArrays(NamedTuple):
    """State of comparisons by row, and their settings."""

    latest: NDArray[np.void]
    landmark: NDArray[np.void]
    faded: NDArray[np.void]
    """Sums by (row, fading mechanism)."""
    windows: NDArray[np.void]
    """Sums by (row, sliding mechanism)."""
    rings: NDArray[np.uint8]
    """Bits of the latest pairs, (rows, longest window)."""
    paces: NDArray[np.void]
    verdicts: NDArray[np.void]
    balanced: NDArray[np.void]
    counts: NDArray[np.float64]
    """Faded counts of labels, (classes, rows), for the balanced utility."""
    alphas: NDArray[np.float64]
    """Fading factors."""
    sizes: NDArray[np.int64]
    """Sizes of the sliding windows."""
    parameters: NDArray[np.void]
    """Parameters of the verdicts, (1,)."""


@entry
def observe(arrays, rows, bits, leads, true_class, event_ms):
    """Add a batch of pairs, in order.

    Parameters
    ----------
    arrays
        `PairArrays`, changed.
    rows, bits, leads, true_class, event_ms
        Each (n,), one per pair: its row; `CHAMPION_WRONG` and `CHALLENGER_WRONG`; lead by accuracy or costs;
        label, used by the balanced utility only; event time.
    """
    alphas, sizes, p = arrays.alphas, arrays.sizes, arrays.parameters[0]
    for i in range(rows.shape[0]):
        row = rows[i]
        last, landmark, balanced = arrays.latest[row], arrays.landmark[row], arrays.balanced[row]
        seen = bits[i]
        lead = leads[i]
        ring = arrays.rings[row]
        for j in range(sizes.shape[0]):
            window = arrays.windows[row, j]
            if window.pairs == sizes[j]:
                gone = last.head - sizes[j]
                add(window, ring[gone if gone >= 0 else gone + ring.shape[0]], -1)
            add(window, seen, 1)
        ring[last.head] = seen
        last.head = last.head + 1 if last.head + 1 < ring.shape[0] else 0
        add(landmark, seen, 1)
        last.event_ms = event_ms[i]
        for j in range(alphas.shape[0]):
            fade(arrays.faded[row, j], alphas[j], seen)
        if balanced.counted:
            worth = weigh(balanced, arrays.counts, row, true_class[i])
            lead = worth * (int(seen & CHAMPION_WRONG) - int(seen >> 1))
        observe_lead(arrays.paces[row], arrays.verdicts[row], p, lead, landmark.pairs, event_ms[i])
