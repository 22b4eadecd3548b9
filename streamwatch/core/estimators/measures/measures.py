"""Accuracy-like measures as functions of the agreement totals, vectorised over models.

Measures do not depend on how the totals forget (landmark, fading, sliding, ADWIN). The vectors may also run
over the steps of one model's trace. Every measure first divides the totals by their weight n, because
products of counts overflow integers; the division also cancels the unit of faded totals.

Undefined values are NaN, never 0 and never infinite:

- a class is *present* while its true weight is at least 0.05 outcomes (a faded class never reaches 0);
- a gain over a baseline (the kappas) is undefined while the baseline misses less than 0.05 outcomes; a
  correlation (MCC) is undefined while the largest class of labels, or of predictions, misses less than that.
"""

from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.agreement import Flags, Floats, Totals, once

PRESENT = 0.05
"""Weight in outcomes below which a class counts as absent, and the misses of a baseline as too few."""


def ratio(numerator: Floats, denominator: Floats, defined: Flags) -> Floats:
    """Quotient where `defined`, NaN elsewhere; gives no numpy warnings."""
    shape = numerator.shape
    if shape != denominator.shape:  # seldom, and finding the shape takes as long as the rest
        shape = np.broadcast_shapes(shape, denominator.shape)
    out = np.full(shape, np.nan)
    np.divide(numerator, denominator, out=out, where=defined)
    return out


def shares_of(weights: Floats, n: Floats) -> Floats:
    """Per-class weights divided by n, shape (m, K); 0 for a model without weight."""
    return np.divide(weights, n[:, None], out=np.zeros_like(weights), where=(n > 0)[:, None])


@once
def true_shares(totals: Totals) -> Floats:
    """Share of the outcomes whose label is each class, t_k; shape (m, K), 0 for a model without weight."""
    return shares_of(totals.true_class, totals.n)


@once
def predicted_shares(totals: Totals) -> Floats:
    """Share of the outcomes predicted as each class, q_k; shape (m, K), 0 for a model without weight."""
    return shares_of(totals.predicted_class, totals.n)


def _gain(totals: Totals, baseline: Floats, missed: Floats) -> Floats:
    """(p - baseline)/(1 - baseline); undefined while the baseline missed less than 0.05 outcomes."""
    return ratio(accuracy(totals) - baseline, 1.0 - baseline, missed >= PRESENT)


def largest(weights: Floats) -> Floats:
    """Weight of the largest class of each model."""
    return weights.max(axis=1, initial=0.0)


@once
def largest_true(totals: Totals) -> Floats:
    """Weight of the most frequent label of each model."""
    return largest(totals.true_class)


@once
def largest_predicted(totals: Totals) -> Floats:
    """Weight of each model's most frequent prediction."""
    return largest(totals.predicted_class)


def _mean_over(values: Floats, chosen: Flags) -> Floats:
    """Mean over the chosen classes of each model; undefined if there are none."""
    count = chosen.sum(axis=1)
    return ratio(np.where(chosen, values, 0.0).sum(axis=1), count.astype(np.float64), count > 0)


@once
def present(totals: Totals) -> Flags:
    """Mark the classes present among the labels: truth[k] >= 0.05. Shape (m, K)."""
    return totals.true_class >= PRESENT


@once
def accuracy(totals: Totals) -> Floats:
    """Share of outcomes the model got right, p = hits/n."""
    return ratio(totals.hits, totals.n, totals.n > 0)


@once
def p_chance(totals: Totals) -> Floats:
    """Accuracy of guessing with the model's own class shares, Σ t_k q_k (Zliobaite et al. 2015, eq. 9)."""
    shares = true_shares(totals) * predicted_shares(totals)
    return np.where(totals.n > 0, shares.sum(axis=1), np.nan)


@once
def p_majority(totals: Totals) -> Floats:
    """Accuracy of the most frequent class, known in hindsight: max t_k (Zliobaite et al. 2015, eq. 6)."""
    return ratio(largest_true(totals), totals.n, totals.n > 0)


@once
def p_majority_prequential(totals: Totals) -> Floats:
    """Accuracy of guessing the most frequent class before the label comes: majority/majority_n.

    Bifet et al. 2015, §5.3. The counts of labels are faded by .999 whatever the mechanism of the totals.
    Undefined before the second outcome, and if the caller does not keep these sums.
    """
    return ratio(totals.majority, totals.majority_n, totals.majority_n > 0)


@once
def p_persistent(totals: Totals) -> Floats:
    """Accuracy of predicting the previous label: repeats/pairs (Zliobaite et al. 2015, eq. 7)."""
    return ratio(totals.repeats, totals.pairs, totals.pairs > 0)


def p_uninformed(totals: Totals) -> Floats:
    """Accuracy of guessing uniformly among the classes present: 1/K (Zliobaite et al. 2015, eq. 5)."""
    count = present(totals).sum(axis=1).astype(np.float64)
    return ratio(np.ones_like(count), count, count > 0)


@once
def kappa(totals: Totals) -> Floats:
    """Gain over chance agreement, (p - p_chance)/(1 - p_chance) (Cohen; Bifet et al. 2015, §5.1).

    Undefined while n - Σ truth·predicted/n < 0.05.
    """
    chance = p_chance(totals)
    return _gain(totals, chance, totals.n * (1.0 - chance))


def kappa_majority(totals: Totals) -> Floats:
    """Gain over the majority class (Bifet et al. 2015, §5.3); undefined while n - max truth < 0.05."""
    return _gain(totals, p_majority(totals), totals.n - largest_true(totals))


def kappa_majority_prequential(totals: Totals) -> Floats:
    """Gain over guessing the most frequent class before the label comes (Bifet et al. 2015, §5.3).

    Undefined while majority_n - majority < 0.05.
    """
    return _gain(totals, p_majority_prequential(totals), totals.majority_n - totals.majority)


@once
def kappa_persistent(totals: Totals) -> Floats:
    """Gain over predicting the previous label (Zliobaite et al. 2015, eq. 13).

    Undefined while pairs - repeats < 0.05.
    """
    return _gain(totals, p_persistent(totals), totals.pairs - totals.repeats)


def kappa_plus(totals: Totals) -> Floats:
    """√(max(0,κ)·max(0,κ_per)): 0 unless the model beats both chance and persistence.

    Zliobaite et al. 2015, eq. 14. Undefined if either gain is. The root amplifies rounding errors near 0.
    """
    chance, persistent = kappa(totals), kappa_persistent(totals)
    return np.sqrt(np.maximum(0.0, chance) * np.maximum(0.0, persistent))


def _spread(shares: Floats) -> Floats:
    """Standard deviation of class membership, √Σ s_k(1-s_k)."""
    return np.sqrt((shares * np.maximum(0.0, 1.0 - shares)).sum(axis=1))


def mcc(totals: Totals) -> Floats:
    """Correlation of truth and prediction: Matthews' for two classes, R_K for more; in [-1, 1].

    (p - Σ t_k q_k)/(√Σ t_k(1-t_k)·√Σ q_k(1-q_k)) with shares t, q (Gorodkin 2004; for two classes Bifet et
    al. 2015, §5.1). Undefined while labels or predictions miss their largest class by less than 0.05
    outcomes, where rounding of the shares would determine the result. Clipped to [-1, 1], which rounding may
    exceed.
    """
    true_class, predicted_class = true_shares(totals), predicted_shares(totals)
    spread = _spread(true_class) * _spread(predicted_class)
    missed = totals.n - np.maximum(largest_true(totals), largest_predicted(totals))
    correlation = ratio(accuracy(totals) - p_chance(totals), spread, (missed >= PRESENT) & (spread > 0))
    return np.clip(correlation, -1.0, 1.0)


@once
def recall(totals: Totals) -> Floats:
    """Share of each class's outcomes recognised, agreed/truth; undefined for absent classes. Shape (m, K)."""
    return ratio(totals.agreed, totals.true_class, present(totals))


def precision(totals: Totals) -> Floats:
    """Share of each class's predictions that were right; undefined below 0.05 of them. Shape (m, K)."""
    return ratio(totals.agreed, totals.predicted_class, totals.predicted_class >= PRESENT)


@once
def _seen(totals: Totals) -> Flags:
    """Mark the classes with at least 0.05 outcomes as label or as prediction. Shape (m, K)."""
    return totals.true_class + totals.predicted_class >= PRESENT


def class_truth(totals: Totals) -> Floats:
    """Share of outcomes whose label is each class, truth/n; undefined for classes not seen. Shape (m, K)."""
    return ratio(totals.true_class, totals.n[:, None], _seen(totals))


def class_predicted(totals: Totals) -> Floats:
    """Share of outcomes predicted as each class, predicted/n; undefined for those not seen. Shape (m, K)."""
    return ratio(totals.predicted_class, totals.n[:, None], _seen(totals))


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
    with np.errstate(over="ignore"):  # a recall that faded to less than 1e-308 makes the mean 0
        inverses = np.divide(1.0, recalls, out=np.ones_like(recalls), where=recalls > 0)
        means = _mean_over(inverses, chosen)
    return np.where((recalls > 0).all(axis=1), 1.0 / means, _zero_if_any(chosen))


def _zero_if_any(chosen: Flags) -> Floats:
    """0 for a model with a chosen class, NaN for one without."""
    return np.where(chosen.any(axis=1), 0.0, np.nan)


def macro_f1(totals: Totals) -> Floats:
    """Mean F1, 2·agreed/(truth + predicted), over classes where truth + predicted is at least 0.05."""
    weight, chosen = totals.true_class + totals.predicted_class, _seen(totals)
    return _mean_over(ratio(2.0 * totals.agreed, weight, chosen), chosen)
