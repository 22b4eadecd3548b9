"""Latest change of the error by prediction time, that is, since when predictions have more or fewer errors.

Labels come late, so an alarm tells when the *labels* changed. Here the buckets of predictions are partitioned
to maximise the binomial likelihood minus a penalty per boundary; the last boundary is the change. Errors and
hits have the weights of `accuracy`, so that the youngest buckets, of which only quick labels have arrived, do
not look like a change. If errors are correlated, the penalty and the interval grow with the dispersion of the
buckets within their segments (`dispersion`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from streamwatch.core.estimators.registers.late_labels.accuracy import Floats
from streamwatch.core.estimators.registers.late_labels.dispersion import dispersion
from streamwatch.core.estimators.registers.late_labels.geometry import Geometry, Integers
from streamwatch.core.estimators.registers.late_labels.partition import last_boundary
from streamwatch.core.events import ErrorChange

PRICE: Final = 6.0
"""Penalty of a boundary: log likelihood, divided by the dispersion, that it must gain.

Of streams without a change, less than 2 in 100 get a boundary.
"""
CRITICAL: Final = 7.352
"""Twice the log likelihood, by the dispersion, that a boundary in the interval of 95 % may lose.

-2 ln(1 - √.95), the quantile of the supremum that this loss has where changes are small (Yao 1987; Hansen
2000, table 1).
"""
ROUNDS: Final = 10
"""Largest number of times the dispersion is estimated if the partition keeps changing."""


def weighted_errors(counts: Integers, weights: Floats) -> tuple[Floats, Floats]:
    """Equivalent unweighted errors and outcomes by bucket, (n,) each; the outcomes are each bucket's n_eff.

    Parameters
    ----------
    counts
        Errors and hits by bucket, (n, 2).
    weights
        Weights of errors and hits, (n, 2); 0 where too few labels have arrived.
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
    """Locate the latest change; None if no boundary is worth its penalty.

    Correlated errors vary more than binomially, so likelihoods are divided by the dispersion
    (quasi-likelihood, Wedderburn 1974). It is first estimated from the buckets without a boundary, then from
    the best partition at the resulting penalty, until the partition no longer changes.

    Parameters
    ----------
    errors, outcomes
        Weighted errors and outcomes by bucket, (n,).
    first_bucket
        Number of the first of these buckets.
    geometry
        Widths of buckets and bins.
    """
    wrong = np.concatenate(([0.0], np.cumsum(errors)))
    weight = np.concatenate(([0.0], np.cumsum(outcomes)))
    spread = dispersion(wrong, weight, (0, len(errors)), blocks=(1,)) or 1.0
    partition = _partition(wrong, weight, spread)
    for _ in range(ROUNDS):
        if partition.split == 0:
            return None
        spread = dispersion(wrong, weight, partition.edges) or spread
        before, partition = partition, _partition(wrong, weight, spread)
        if partition.edges == before.edges:
            break
    if partition.split == 0:
        return None
    start, split = partition.start, partition.split
    accepted = np.flatnonzero(partition.lost <= CRITICAL * spread)
    width = geometry.width_ms
    return ErrorChange(
        since_ms=(first_bucket + split) * width,
        # A change within a bucket may be attributed to either end of the bucket.
        earliest_ms=(first_bucket + int(accepted[0]) - 1) * width,
        latest_ms=(first_bucket + int(accepted[-1]) + 1) * width,
        before=float((wrong[split] - wrong[start]) / (weight[split] - weight[start])),
        after=float((wrong[-1] - wrong[split]) / (weight[-1] - weight[split])),
    )


class _Partition(NamedTuple):
    """Last two boundaries, twice the likelihood that each other last boundary would lose, and all edges."""

    start: int
    split: int
    lost: Floats
    edges: tuple[int, ...]


def _partition(wrong: Floats, weight: Floats, spread: float) -> _Partition:
    """Find the best partition at the penalty for this dispersion."""
    before = np.zeros(len(wrong), np.int64)
    lost = np.full(len(wrong), np.inf)
    start, split = last_boundary(wrong, weight, PRICE * spread, np.empty(len(wrong)), before, lost)
    edges = [len(wrong) - 1]
    while edges[-1] > 0:
        edges.append(int(before[edges[-1]]))
    return _Partition(int(start), int(split), lost, tuple(reversed(edges)))
