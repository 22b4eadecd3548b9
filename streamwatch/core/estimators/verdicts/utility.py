"""Utility of an answer, in [0, 1]: by accuracy, balanced over the classes, or by a cost table.

    accuracy    u = 1[answer = y]
    balanced    u = 1[answer = y]·min_k s_k/s_y over the classes present and y, with
                s_k = max((c_k + 1)/(Σc + K), .005), c the counts of earlier labels faded by .9999, K classes
    costs       u = (Cmax − C[y, answer])/(Cmax − Cmin)

All are fixed before the label counts, so the guarantee of a verdict holds for each of them.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.jit import inner

ACCURACY, BALANCED, COSTS = 0, 1, 2
"""Numbers of utilities; cost tables are numbered upward from `COSTS`."""

ALPHA = 0.9999
PRESENT = 0.05
"""Weight, in outcomes, from which a class is present."""
LEAST_SHARE = 0.005


@inner
def balanced_weight(counts, first, classes, column, unit, true_class):
    """Utility of a right answer, min_k s_k/s_y ∈ (0, 1].

    `counts[first + k, column]` is c_k times `unit`, for k below `classes`. Both shares have the denominator
    Σc + K, which cancels. O(K).
    """
    present = PRESENT * unit
    total, number = 0.0, 0
    own = counts[first + true_class, column]
    fewest = own
    for k in range(classes):
        c = counts[first + k, column]
        if c >= present or k == true_class:
            total += c
            number += 1
            fewest = min(fewest, c)
    least = LEAST_SHARE * (total + number * unit)
    return max(fewest + unit, least) / max(own + unit, least)
