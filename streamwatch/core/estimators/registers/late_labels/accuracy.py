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

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.late_labels.geometry import BINS, ERROR, HIT, Geometry, Integers
from streamwatch.core.estimators.registers.late_labels.ring import RingView

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
        until 30 outcomes are settled.
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
    """`shares_labelled`, (m, 2, 24)."""

    @property
    def bias(self) -> Floats:
        """Naive minus corrected accuracy, (m,): below 0 the visible accuracy is too low, above 0 too high."""
        return self.naive - self.corrected.value


def shares_labelled(view: RingView, geometry: Geometry) -> Floats:
    """Share of labels that have arrived by an age, among those that arrive within the horizon, by kind.

    F_z at the 24 edges of the bins, shape (m, 2, 24): F_z(horizon) = 1 and F_z(e_k-1) = F_z(e_k)(1 - r_z(k)),
    where r_z(k) is the share of bin k among the outcomes of bins 1 … k, in the buckets whose predictions are
    all at least e_k old; 0 if these have no outcomes.
    """
    age = view.now_ms[:, None] - (view.buckets + 1) * geometry.width_ms
    whole = age[:, :, None] >= geometry.edges_ms[1:]
    in_bin = np.einsum("mczk,mck->mzk", view.counts, whole)
    up_to = np.einsum("mczk,mck->mzk", view.counts.cumsum(axis=3), whole)
    hazard = np.divide(in_bin, up_to, out=np.zeros(in_bin.shape), where=up_to > 0)
    shares = np.ones((*hazard.shape[:2], BINS + 1))
    for k in reversed(range(BINS)):
        shares[:, :, k] = shares[:, :, k + 1] * (1.0 - hazard[:, :, k])
    return shares


def late_accuracy(view: RingView, geometry: Geometry) -> LateAccuracy:
    """Estimate the accuracies of m models."""
    edges, width = geometry.edges_ms, geometry.width_ms
    outcomes = view.counts.sum(axis=3)
    newest_age = view.now_ms[:, None] - (view.buckets + 1) * width
    is_settled = newest_age >= geometry.horizon_ms
    settled = _share((outcomes * is_settled[:, :, None]).sum(axis=1).astype(np.float64), None)
    # All predictions of a bucket are taken to have the age of its middle; those of the last bucket were made
    # up to now.
    middle = newest_age.astype(np.float64) + width / 2.0
    middle[:, -1] = (view.now_ms - view.head * width) / 2.0
    labelled = shares_labelled(view, geometry)
    shares = _at(labelled, edges.astype(np.float64), middle)
    is_used = (newest_age < geometry.horizon_ms / 2.0) & (shares.min(axis=2) >= LEAST_SHARE)
    weights = np.divide(1.0, shares, out=np.zeros(shares.shape), where=shares >= LEAST_SHARE)
    recent = outcomes * is_used[:, :, None]
    weighted = (recent * weights).sum(axis=1)
    squares = (recent * weights * weights).sum(axis=(1, 2))
    is_known = np.isfinite(settled.value) & (recent.sum(axis=(1, 2)) >= LEAST_OUTCOMES)
    corrected = _share(np.where(is_known[:, None], weighted, 0.0), squares)
    plain = recent.sum(axis=1)
    naive = np.where(is_known, _ratio(plain[:, HIT], plain.sum(axis=1)), np.nan)
    is_weighted = shares.min(axis=2) >= LEAST_SHARE
    weights *= is_weighted[:, :, None]
    return LateAccuracy(settled, corrected, naive, weights, outcomes, labelled)


def _at(shares: Floats, edges: Floats, age: Floats) -> Floats:
    """Interpolate the shares of both kinds linearly at ages (m, 64); returns (m, 64, 2)."""
    within = np.clip(age, 0.0, edges[-1])
    upper = np.clip(np.searchsorted(edges, within), 1, BINS)
    part = (within - edges[upper - 1]) / (edges[upper] - edges[upper - 1])
    models = np.arange(len(shares))[:, None]
    return np.stack(
        [
            shares[models, kind, upper - 1] * (1.0 - part) + shares[models, kind, upper] * part
            for kind in (ERROR, HIT)
        ],
        axis=2,
    )


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
    return (middle - half) / below, (middle + half) / below


def _ratio(above: Floats | Integers, below: Floats | Integers) -> Floats:
    """Quotient; NaN where the denominator is 0."""
    quotient = np.full(above.shape, np.nan)
    return np.divide(above, below, out=quotient, where=below > 0)
