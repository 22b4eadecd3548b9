"""Every accuracy-like number, as a function of one vector of agreement totals per model.

Measures never know how the totals forget (landmark, fading, sliding, ADWIN), and are vectorised over models
(or over the steps of one model's trace). Every measure divides the totals by their weight n first: products
of counts overflow integers, and faded units vanish.

Undefined is NaN, never 0 and never infinite:

- a class is *present* while its true weight is at least 0.05 outcomes (a faded class never reaches 0);
- a gain over a baseline (the kappas) is undefined while its baseline misses less than 0.05 outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

PRESENT = 0.05
"""Weight in outcomes below which a class is absent, and a baseline's misses are too few to compare with."""

ONE_CLASS = 1e-9
"""Share of weight outside the largest class below which rounding would decide a correlation."""


def _not_kept() -> Floats:
    """Stands for sums a caller does not keep, until the number of models is known."""
    return np.empty(0)


@dataclass(frozen=True, slots=True)
class Totals:
    """Agreement totals of m models under one forgetting mechanism, in units of outcomes, all float64.

    All fields have shape (m,), but `truth`, `predicted` and `agreed` (m, K), zero where a model has fewer
    classes. `repeats` counts labels equal to the previous one; `pairs` is its own weight, without the model's
    first outcome, which has no previous label. `n_eff` is (Σw)²/Σw².

    The sums from `lost_twice` on may be left out; they are NaN then, and so is what is computed from them.
    """

    n: Floats
    hits: Floats
    repeats: Floats
    pairs: Floats
    n_eff: Floats
    truth: Floats
    predicted: Floats
    agreed: Floats
    lost_twice: Floats = field(default_factory=_not_kept)
    """Pairs in which this outcome and the one before were both wrong, Σ x_t·x_{t-1}."""
    known_repeats: Floats = field(default_factory=_not_kept)
    """Labels equal to the last one that was known when the prediction was made."""
    known_pairs: Floats = field(default_factory=_not_kept)
    """Outcomes for which there was such a label."""
    corrected: Floats = field(default_factory=_not_kept)
    """Hits of Temporal Correction."""
    scored: Floats = field(default_factory=_not_kept)
    """Outcomes that carried the class scores it needs."""
    augmented: Floats = field(default_factory=_not_kept)
    """Hits of the Temporally Augmented classifier."""
    augmented_n: Floats = field(default_factory=_not_kept)
    """Outcomes it predicted."""
    transition: Floats = field(default_factory=_not_kept)
    """Hits of the most frequent successor of the previous label."""
    transition_n: Floats = field(default_factory=_not_kept)
    """Outcomes it predicted."""

    def __post_init__(self) -> None:
        """Give sums that are not kept a NaN per model."""
        absent: Floats | None = None
        for name in OPTIONAL_SUMS:
            if getattr(self, name).shape != self.n.shape:
                absent = np.full(self.n.shape, np.nan) if absent is None else absent
                object.__setattr__(self, name, absent)


OPTIONAL_SUMS = tuple(f.name for f in fields(Totals))[8:]
"""Sums that `Totals` may be without."""


def ratio(numerator: Floats, denominator: Floats, defined: Flags) -> Floats:
    """Quotient where defined, NaN elsewhere, without numpy's warnings."""
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    np.divide(numerator, denominator, out=out, where=defined)
    return out


def shares_of(weights: Floats, n: Floats) -> Floats:
    """Per-class weights divided by n, 0 for a model without weight."""
    return np.divide(weights, n[:, None], out=np.zeros_like(weights), where=(n > 0)[:, None])


def _gain(totals: Totals, baseline: Floats, missed: Floats) -> Floats:
    """(p - baseline)/(1 - baseline), undefined while the baseline missed less than 0.05 outcomes."""
    return ratio(accuracy(totals) - baseline, 1.0 - baseline, missed >= PRESENT)


def largest(weights: Floats) -> Floats:
    """Weight of the largest class of each model."""
    return weights.max(axis=1, initial=0.0)


def _mean_over(values: Floats, chosen: Flags) -> Floats:
    """Mean over the chosen classes of each model; undefined without any."""
    count = chosen.sum(axis=1)
    return ratio(np.where(chosen, values, 0.0).sum(axis=1), count.astype(np.float64), count > 0)


def present(totals: Totals) -> Flags:
    """Which classes the stream of labels still contains: truth[k] >= 0.05. Shape (m, K)."""
    return totals.truth >= PRESENT


def accuracy(totals: Totals) -> Floats:
    """Share of outcomes the model got right, p = hits/n."""
    return ratio(totals.hits, totals.n, totals.n > 0)


def p_chance(totals: Totals) -> Floats:
    """Accuracy of guessing with the model's own class shares, Σ t_k q_k (Zliobaite et al. 2015, eq. 9)."""
    shares = shares_of(totals.truth, totals.n) * shares_of(totals.predicted, totals.n)
    return np.where(totals.n > 0, shares.sum(axis=1), np.nan)


def p_majority(totals: Totals) -> Floats:
    """Accuracy of the most frequent class, known in hindsight: max t_k (Zliobaite et al. 2015, eq. 6)."""
    return ratio(largest(totals.truth), totals.n, totals.n > 0)


def p_persistent(totals: Totals) -> Floats:
    """Accuracy of predicting the previous label: repeats/pairs (Zliobaite et al. 2015, eq. 7)."""
    return ratio(totals.repeats, totals.pairs, totals.pairs > 0)


def p_uninformed(totals: Totals) -> Floats:
    """Accuracy of guessing uniformly among the classes present: 1/K (Zliobaite et al. 2015, eq. 5)."""
    count = present(totals).sum(axis=1).astype(np.float64)
    return ratio(np.ones_like(count), count, count > 0)


def kappa(totals: Totals) -> Floats:
    """Gain over chance agreement, (p - p_chance)/(1 - p_chance) (Cohen; Bifet et al. 2015, §5.1).

    Undefined while n - Σ truth·predicted/n < 0.05.
    """
    chance = p_chance(totals)
    return _gain(totals, chance, totals.n * (1.0 - chance))


def kappa_majority(totals: Totals) -> Floats:
    """Gain over the majority class (Bifet et al. 2015, §5.3); undefined while n - max truth < 0.05."""
    return _gain(totals, p_majority(totals), totals.n - largest(totals.truth))


def kappa_persistent(totals: Totals) -> Floats:
    """Gain over predicting the previous label (Zliobaite et al. 2015, eq. 13).

    Undefined while pairs - repeats < 0.05.
    """
    return _gain(totals, p_persistent(totals), totals.pairs - totals.repeats)


def kappa_plus(totals: Totals) -> Floats:
    """√(max(0,κ)·max(0,κ_per)): 0 unless the model beats both chance and persistence.

    Zliobaite et al. 2015, eq. 14. Undefined if either gain is. The root amplifies rounding near 0.
    """
    chance, persistent = kappa(totals), kappa_persistent(totals)
    return np.sqrt(np.maximum(0.0, chance) * np.maximum(0.0, persistent))


def _spread(shares: Floats) -> Floats:
    """Standard deviation of class membership, √Σ s_k(1-s_k)."""
    return np.sqrt((shares * np.maximum(0.0, 1.0 - shares)).sum(axis=1))


def mcc(totals: Totals) -> Floats:
    """Correlation of truth and prediction, Matthews' for two classes and R_K for more.

    (p - Σ t_k q_k)/(√Σ t_k(1-t_k)·√Σ q_k(1-q_k)) with shares t, q (Gorodkin 2004; for two classes Bifet et
    al. 2015, §5.1). Undefined while the labels, or the predictions, are of one class.
    """
    truth, predicted = shares_of(totals.truth, totals.n), shares_of(totals.predicted, totals.n)
    spread = _spread(truth) * _spread(predicted)
    mixed = np.minimum(1.0 - largest(truth), 1.0 - largest(predicted)) > ONE_CLASS
    return ratio(accuracy(totals) - p_chance(totals), spread, mixed & (totals.n > 0))


def recall(totals: Totals) -> Floats:
    """Share of each class's outcomes recognised, agreed/truth; undefined for absent classes. Shape (m, K)."""
    return ratio(totals.agreed, totals.truth, present(totals))


def precision(totals: Totals) -> Floats:
    """Share of each class's predictions that was right; undefined below 0.05 of them. Shape (m, K)."""
    return ratio(totals.agreed, totals.predicted, totals.predicted >= PRESENT)


def _seen(totals: Totals) -> Flags:
    """Which classes occur at all, as a label or as a prediction, by at least 0.05 outcomes. Shape (m, K)."""
    return totals.truth + totals.predicted >= PRESENT


def class_truth(totals: Totals) -> Floats:
    """Share of outcomes whose label is each class, truth/n; undefined for classes not seen. Shape (m, K)."""
    return ratio(totals.truth, totals.n[:, None], _seen(totals))


def class_predicted(totals: Totals) -> Floats:
    """Share of outcomes predicted as each class, predicted/n; undefined for those not seen. Shape (m, K)."""
    return ratio(totals.predicted, totals.n[:, None], _seen(totals))


def arithmetic_mean_recall(totals: Totals) -> Floats:
    """Balanced accuracy: mean recall over the classes present (Bifet et al. 2015, §5.2)."""
    return _mean_over(recall(totals), present(totals))


def geometric_mean_recall(totals: Totals) -> Floats:
    """Geometric mean of recall over the classes present; 0 if one is never recognised (Bifet 2015, §5.2)."""
    chosen = present(totals)
    recalls = np.where(chosen, recall(totals), 1.0)
    logs = np.log(recalls, out=np.zeros_like(recalls), where=recalls > 0)
    return np.where((recalls > 0).all(axis=1), np.exp(_mean_over(logs, chosen)), _zero_if_any(chosen))


def harmonic_mean_recall(totals: Totals) -> Floats:
    """Harmonic mean of recall over the classes present; 0 if one is never recognised (Bifet 2015, §5.2)."""
    chosen = present(totals)
    recalls = np.where(chosen, recall(totals), 1.0)
    inverses = np.divide(1.0, recalls, out=np.ones_like(recalls), where=recalls > 0)
    means = _mean_over(inverses, chosen)
    return np.where((recalls > 0).all(axis=1), 1.0 / means, _zero_if_any(chosen))


def _zero_if_any(chosen: Flags) -> Floats:
    """0 for a model with a chosen class, NaN for one without."""
    return np.where(chosen.any(axis=1), 0.0, np.nan)


def macro_f1(totals: Totals) -> Floats:
    """Mean F1, 2·agreed/(truth + predicted), over classes where truth + predicted is at least 0.05."""
    weight, chosen = totals.truth + totals.predicted, _seen(totals)
    return _mean_over(ratio(2.0 * totals.agreed, weight, chosen), chosen)
