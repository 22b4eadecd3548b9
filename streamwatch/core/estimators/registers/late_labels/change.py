"""When predictions began to err more, or less: the latest change of the error by prediction time.

Labels come late, so an alarm tells when the *labels* changed. Here buckets of predictions are split at
boundaries such that the binomial likelihood is largest, each split at a price; the last split is the change.
Errors and hits count by their weights (`accuracy`), so that the youngest buckets, where only quick labels are
in, do not look like a change.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamwatch.core.estimators.registers.late_labels.accuracy import Floats
from streamwatch.core.estimators.registers.late_labels.geometry import Geometry, Integers
from streamwatch.core.estimators.registers.late_labels.partition import last_boundary
from streamwatch.core.events import ErrorChange

PRICE: Final = 6.0
"""Log likelihood that a split must gain. Of streams without a change less than 2 in 100 are split then."""
CRITICAL: Final = 7.352
"""Twice the log likelihood that a boundary may lose to be in the interval of 95 %.

-2 ln(1 - √.95), the quantile of the supremum that this loss has where changes are small (Yao 1987; Hansen
2000, table 1).
"""


def weighted_errors(counts: Integers, weights: Floats) -> tuple[Floats, Floats]:
    """Errors and outcomes by bucket, (n,) each, as many as those that n_eff of the bucket says.

    Parameters
    ----------
    counts
        Errors and hits by bucket, (n, 2).
    weights
        Of errors and hits, (n, 2); 0 where too few labels have come.
    """
    weighted = counts * weights
    total = weighted.sum(axis=1)
    squares = (weighted * weights).sum(axis=1)
    there = squares > 0
    n_eff = np.divide(total * total, squares, out=np.zeros(len(total)), where=there)
    share = np.divide(weighted[:, 0], total, out=np.zeros(len(total)), where=there)
    return n_eff * share, n_eff


def latest_change(
    errors: Floats, outcomes: Floats, first_bucket: int, geometry: Geometry
) -> ErrorChange | None:
    """Locate the latest change; None where no split is worth its price.

    Parameters
    ----------
    errors, outcomes
        Weighted errors and outcomes by bucket, (n,).
    first_bucket
        Number of the first of these buckets.
    geometry
        Widths.
    """
    wrong = np.concatenate(([0.0], np.cumsum(errors)))
    weight = np.concatenate(([0.0], np.cumsum(outcomes)))
    lost = np.full(len(wrong), np.inf)
    start, split = last_boundary(
        wrong, weight, PRICE, np.empty(len(wrong)), np.zeros(len(wrong), np.int64), lost
    )
    if not split:
        return None
    accepted = np.flatnonzero(lost <= CRITICAL)
    width = geometry.width_ms
    return ErrorChange(
        since_ms=(first_bucket + split) * width,
        # A change within a bucket is nearest to either of its ends.
        earliest_ms=(first_bucket + int(accepted[0]) - 1) * width,
        latest_ms=(first_bucket + int(accepted[-1]) + 1) * width,
        before=float((wrong[split] - wrong[start]) / (weight[split] - weight[start])),
        after=float((wrong[-1] - wrong[split]) / (weight[-1] - weight[split])),
    )
