"""Accuracy of settled and of recent predictions if errors are labelled earlier, or later, than hits.

Labelled outcomes are not a fair sample of the predictions then. *Settled* is the accuracy of predictions at
least one horizon old, which have all the labels they will get. *Corrected* is that of the predictions of the
last half horizon, with every outcome weighted by 1 / F_z(age). F_z is the share of labels of kind z (hit or
error) that have arrived by that age, among those that arrive within the horizon. It is estimated by reverse
hazards, as a chain ladder estimates claims not yet reported (Lagakos, Barraj, De Gruttola 1988; Kalbfleisch,
Lawless 1989).

This assumes that the delay, given the kind, is stable. If outcomes are never labelled, at a rate that depends
on their kind, the resulting bias cannot be detected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.late_labels.observe import (
    BINS,
    BUCKETS,
    ERROR,
    HIT,
    Geometry,
    Integers,
    last_boundary,
)
from streamwatch.core.estimators.registers.late_labels.ring import (
    Counted,
    LabelRing,
    RingView,
    TypicalDelays,
    counted,
    typical_delays,
)
from streamwatch.core.records.events import ErrorChange

Floats: TypeAlias = NDArray[np.float64]

LEAST_OUTCOMES: Final = 30
"""Number of outcomes below which an accuracy is undefined."""
LEAST_SHARE: Final = 0.2
"""Least share of labels of each kind that must have arrived for a bucket to be used."""
_Z: Final = 1.96


@dataclass(frozen=True, slots=True)
class Share:
    """Accuracy of m models with its interval; NaN where it is undefined.

    Attributes
    ----------
    value
        Share of hits, (m,).
    lower, upper
        Wilson's interval of 95 %, (m,).
    n_eff
        (Σw)² / Σw², (m,); 0 without outcomes.
    """

    value: Floats
    lower: Floats
    upper: Floats
    n_eff: Floats


@dataclass(frozen=True, slots=True)
class LateAccuracy:
    """Accuracies of m models by the time of the prediction.

    Attributes
    ----------
    settled
        Accuracy of predictions one to one and a half horizons old.
    corrected
        Accuracy of predictions of the last half horizon, corrected for labels not arrived yet. Undefined
        until 30 outcomes are settled, and while fewer than 30 outcomes of the half horizon can be used.
    naive
        Accuracy of the same predictions, unweighted: (m,), defined where `corrected` is.
    weights
        Weights of errors and hits by bucket, (m, 64, 2): 1 / F_z, 0 where too few labels have arrived. In the
        first horizon after the start, F_z is the share among labels that arrive within the time observed.
    """

    settled: Share
    corrected: Share
    naive: Floats
    weights: Floats
    outcomes: Integers
    """Errors and hits by bucket, (m, 64, 2)."""
    shares: Floats
    """`Counted.shares`, (m, 2, 24)."""

    @property
    def bias(self) -> Floats:
        """Naive minus corrected accuracy, (m,): below 0 the visible accuracy is too low, above 0 too high."""
        return self.naive - self.corrected.value


def late_accuracy(view: RingView, counted: Counted, geometry: Geometry) -> LateAccuracy:
    """Estimate the accuracies of m models, whose counts were added up."""
    outcomes, labelled, newest_age = counted.outcomes, counted.shares, counted.newest_ages_ms
    by_kind = np.ascontiguousarray(np.moveaxis(outcomes, 2, 0))  # (2, m, 64): sums over short axes are slow
    is_settled = newest_age >= geometry.horizon_ms
    settled = _share((by_kind * is_settled).sum(axis=2).T.astype(np.float64), None)
    weights, is_weighted = _weights(view, counted, geometry)
    is_used = (newest_age < geometry.horizon_ms / 2.0) & is_weighted
    recent = by_kind * is_used
    weighted = recent * weights
    totals, squares = weighted.sum(axis=2).T, (weighted * weights).sum(axis=2).sum(axis=0)
    plain = recent.sum(axis=2).T
    all_plain = plain.sum(axis=1)
    is_known = np.isfinite(settled.value) & (all_plain >= LEAST_OUTCOMES)
    corrected = _share(np.where(is_known[:, None], totals, 0.0), squares)
    naive = np.where(is_known, _ratio(plain[:, HIT], all_plain), np.nan)
    return LateAccuracy(settled, corrected, naive, np.moveaxis(weights, 0, 2), outcomes, labelled)


def _weights(view: RingView, counted: Counted, geometry: Geometry) -> tuple[Floats, NDArray[np.bool_]]:
    """Weights of both kinds by bucket, (2, m, 64), and which buckets have any, (m, 64)."""
    edges, width = geometry.edges_ms, geometry.width_ms
    # All predictions of a bucket are taken to have the age of its middle; those of the last bucket were made
    # up to now.
    middle = counted.newest_ages_ms.astype(np.float64) + width / 2.0
    middle[:, -1] = (view.now_ms - view.head * width) / 2.0
    shares = _at(counted.shares, edges.astype(np.float64), middle)
    is_weighted = np.minimum(shares[ERROR], shares[HIT]) >= LEAST_SHARE
    return np.divide(1.0, shares, out=np.zeros(shares.shape), where=is_weighted), is_weighted


def _at(shares: Floats, edges: Floats, age: Floats) -> Floats:
    """Interpolate the shares of both kinds linearly at ages (m, 64); returns (2, m, 64)."""
    within = np.clip(age, 0.0, edges[-1])
    upper = np.clip(np.searchsorted(edges, within), 1, BINS)
    part = (within - edges[upper - 1]) / (edges[upper] - edges[upper - 1])
    models = np.arange(len(shares))[:, None]
    below, above = (np.moveaxis(shares[models, :, edge], 2, 0) for edge in (upper - 1, upper))
    return below * (1.0 - part) + above * part


def _share(totals: Floats, squares: Floats | None) -> Share:
    """Share of hits from weighted totals of errors and hits (m, 2).

    `squares` is Σw², None for weights of 1.
    """
    weight = totals.sum(axis=1)
    n_eff = weight if squares is None else _ratio(weight * weight, squares)
    n_eff = np.where(weight > 0, n_eff, 0.0)
    is_defined = (weight > 0) & (n_eff >= (LEAST_OUTCOMES if squares is None else 0))
    value = np.where(is_defined, _ratio(totals[:, HIT], weight), np.nan)
    lower, upper = wilson(value, n_eff)
    return Share(value, lower, upper, n_eff)


def wilson(share: Floats, n_eff: Floats) -> tuple[Floats, Floats]:
    """Limits of a share at 95 % (Wilson 1927); NaN where the share is."""
    n = np.where(n_eff > 0, n_eff, np.nan)
    middle = share + _Z * _Z / (2.0 * n)
    half = _Z * np.sqrt(share * (1.0 - share) / n + _Z * _Z / (4.0 * n * n))
    below = 1.0 + _Z * _Z / n
    # Rounding may leave [0, 1].
    return np.maximum((middle - half) / below, 0.0), np.minimum((middle + half) / below, 1.0)


def _ratio(above: Floats | Integers, below: Floats | Integers) -> Floats:
    """Quotient; NaN where the denominator is 0."""
    quotient = np.full(above.shape, np.nan)
    return np.divide(above, below, out=quotient, where=below > 0)


# Dispersion of the errors by bucket: their variance relative to that of independent outcomes.
#
# Correlated errors make counts of neighbouring buckets vary more, and together. Pearson's statistic divided
# by its degrees of freedom estimates by how much (McCullagh, Nelder 1989, §4.5). It is computed for single
# buckets and, as the correlation may extend beyond these, for blocks of 2 and 4; the largest of the three
# is used.


BLOCKS: Final = (1, 2, 4)
"""Numbers of buckets that are counted as one."""
LEAST_FREEDOM: Final = 8
"""Degrees of freedom below which blocks of a length are not used."""
_NOTHING: Final = 1e-9


def dispersion(
    wrong: Floats, weight: Floats, edges: Sequence[int], blocks: Sequence[int] = BLOCKS
) -> float | None:
    """Estimate the dispersion of errors around the error rate of their segment; at least 1.

    In each segment, blocks are laid from its end backwards; what is left at its beginning, and segments of
    hits or errors only, are left out. A boundary takes two degrees of freedom: for the error rate and for its
    position.

    Parameters
    ----------
    wrong, weight
        Cumulative sums of errors and of outcomes before each bucket, and of all, (n + 1,).
    edges
        Boundaries of the segments, from 0 to n, ascending.
    blocks
        Lengths of blocks, in buckets.

    Returns
    -------
    float or None
        At least 1; None if no length leaves 8 degrees of freedom.
    """
    found = [
        max(1.0, squares / freedom)
        for squares, freedom in (_pearson(wrong, weight, edges, block) for block in blocks)
        if freedom >= LEAST_FREEDOM
    ]
    return max(found) if found else None


def _pearson(wrong: Floats, weight: Floats, edges: Sequence[int], block: int) -> tuple[float, int]:
    """Pearson's statistic of blocks of one length within their segments, and its degrees of freedom."""
    squares, freedom = 0.0, 2 - len(edges)
    for start, stop in pairwise(edges):
        ends = np.arange(start + (stop - start) % block, stop + 1, block)
        outcomes, errors = np.diff(weight[ends]), np.diff(wrong[ends])
        there = outcomes > _NOTHING
        outcomes, errors = outcomes[there], errors[there]
        n, e = float(outcomes.sum()), float(errors.sum())
        if len(outcomes) < 2 or e <= _NOTHING or n - e <= _NOTHING:
            continue
        error = e / n
        squares += float(((errors - outcomes * error) ** 2 / outcomes).sum()) / (error * (1.0 - error))
        freedom += len(outcomes) - 1
    return squares, freedom


# Latest change of the error by prediction time, that is, since when predictions have more or fewer errors.
#
# Labels come late, so an alarm shows when the *labels* changed. Here the buckets of predictions are
# partitioned to maximise the binomial likelihood minus a penalty per boundary; the last boundary is the
# change. Errors and hits have the weights of `accuracy`, so that the youngest buckets, of which only quick
# labels have arrived, do not look like a change. If errors are correlated, the penalty and the interval
# grow with the dispersion of the buckets within their segments (`dispersion`).


PRICE: Final = 6.0
"""Penalty of a boundary: log likelihood, divided by the dispersion, that it must gain.

Of streams without a change, less than 2 in 100 get a boundary.
"""
CRITICAL: Final = 7.352
"""Largest loss of twice the log likelihood, divided by the dispersion, of a boundary in the 95 % interval.

-2 ln(1 - √.95), the quantile of this loss at the true boundary for small changes (Yao 1987; Hansen 2000,
table 1).
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


# Estimates from the ring of one model at one moment.


class OneShare(NamedTuple):
    """Accuracy of one model with its interval of 95 % (NaN where undefined), and its n_eff."""

    value: float
    lower: float
    upper: float
    n_eff: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """Accuracies of one model by the time of the prediction; fields as in `LateAccuracy`, for one model.

    Attributes
    ----------
    head
        Number of the last bucket; -1 without outcomes.
    now_ms
        Time of the newest outcome.
    outcomes
        Errors and hits by bucket, (64, 2), oldest first.
    weights
        Weights of errors and hits by bucket, (64, 2).
    shares
        Share of the labels of errors and hits that have arrived at each edge of delay, (2, 24).
    moved
        Typical delays of errors and hits before and after, milliseconds; None for a kind that has not moved.
    """

    head: int
    now_ms: int
    settled: OneShare
    corrected: OneShare
    naive: float
    outcomes: Integers
    weights: Floats
    shares: Floats
    moved: tuple[tuple[float, float] | None, ...]

    @property
    def first_bucket(self) -> int:
        """Number of the oldest bucket."""
        return _first(self.head)

    def change(self, geometry: Geometry) -> ErrorChange | None:
        """Locate the latest change of the error by prediction time; None if there is none."""
        errors, outcomes = weighted_errors(self.outcomes, self.weights)
        return latest_change(errors, outcomes, self.first_bucket, geometry)


class Estimates(Sequence[Estimate]):
    """Estimates of m models at one time; each is built when it is looked up.

    Parameters
    ----------
    view
        Outcomes of the models by prediction time.
    late
        Accuracies from these outcomes.
    delays
        Typical delays in two neighbouring halves of a horizon.
    """

    def __init__(self, view: RingView, late: LateAccuracy, delays: TypicalDelays) -> None:
        self._head, self._now_ms = view.head, view.now_ms
        self.late = late
        self._delays = delays

    def __len__(self) -> int:
        return len(self._head)

    @overload
    def __getitem__(self, m: int) -> Estimate: ...
    @overload
    def __getitem__(self, m: slice) -> list[Estimate]: ...
    def __getitem__(self, m: int | slice) -> Estimate | list[Estimate]:
        if isinstance(m, slice):
            return [self[k] for k in range(len(self))[m]]
        late, delays = self.late, self._delays
        return Estimate(
            int(self._head[m]),
            int(self._now_ms[m]),
            _one_of(late.settled, m),
            _one_of(late.corrected, m),
            float(late.naive[m]),
            late.outcomes[m],
            late.weights[m],
            late.shares[m],
            tuple(
                (float(delays.before_ms[m, z]), float(delays.after_ms[m, z])) if delays.moved[m, z] else None
                for z in (ERROR, HIT)
            ),
        )


def estimates_of(ring: LabelRing, rows: Integers) -> Estimates:
    """Estimate several rows at once."""
    view = ring.view(rows)
    added = counted(view, ring.geometry)
    delays = typical_delays(added, ring.geometry)
    return Estimates(view, late_accuracy(view, added, ring.geometry), delays)


def changes_of(ring: LabelRing, rows: Integers) -> list[ErrorChange | None]:
    """Locate the latest changes of several rows as `Estimate.change` does, without anything else."""
    view, geometry = ring.view(rows), ring.geometry
    added = counted(view, geometry)
    weights = np.moveaxis(_weights(view, added, geometry)[0], 0, 2)
    of_rows = map(weighted_errors, added.outcomes, weights)
    heads = view.head.tolist()
    return [latest_change(*each, _first(head), geometry) for each, head in zip(of_rows, heads, strict=True)]


def _first(head: int) -> int:
    """Number of the oldest bucket, by that of the last."""
    return head - BUCKETS + 1


def _one_of(share: Share, m: int) -> OneShare:
    return OneShare(
        float(share.value[m]), float(share.lower[m]), float(share.upper[m]), float(share.n_eff[m])
    )
