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

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

# Agreement totals: the sums per model from which every measure is computed.


Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


def _not_kept() -> Floats:
    """Return an empty array, which `Totals` replaces by NaNs, for optional sums that are not given."""
    return np.empty(0)


@dataclass(frozen=True, slots=True)
class Totals:
    """Agreement totals of m models under one forgetting mechanism, in units of outcomes, all float64.

    All fields have shape (m,), except `true_class`, `predicted_class` and `agreed`, which have shape (m, K)
    and are zero where a model has fewer classes. `repeats` counts outcomes whose label equals the previous
    one, `pairs` those that have a previous label: all but the model's first. `n_eff` is (Σw)²/Σw².

    The sums from `lost_twice` on are optional. Without them they are NaN, and so is every measure that needs
    them.
    """

    n: Floats
    hits: Floats
    repeats: Floats
    pairs: Floats
    n_eff: Floats
    true_class: Floats
    predicted_class: Floats
    agreed: Floats
    lost_twice: Floats = field(default_factory=_not_kept)
    """Pairs in which this outcome and the previous one were both wrong, Σ x_t·x_{t-1}."""
    label_at_prediction_repeats: Floats = field(default_factory=_not_kept)
    """Outcomes whose label equals the last one known when the prediction was made."""
    label_at_prediction_pairs: Floats = field(default_factory=_not_kept)
    """Outcomes for which a label was known when the prediction was made."""
    corrected: Floats = field(default_factory=_not_kept)
    """Hits of Temporal Correction."""
    scored: Floats = field(default_factory=_not_kept)
    """Outcomes that carried class scores, which Temporal Correction needs."""
    augmented: Floats = field(default_factory=_not_kept)
    """Hits of the Temporally Augmented classifier."""
    augmented_n: Floats = field(default_factory=_not_kept)
    """Outcomes that the Temporally Augmented classifier predicted."""
    transition: Floats = field(default_factory=_not_kept)
    """Hits of the most frequent successor of the previous label."""
    transition_n: Floats = field(default_factory=_not_kept)
    """Outcomes for which the most frequent successor was predicted."""
    majority: Floats = field(default_factory=_not_kept)
    """Hits of the prequential majority: the class that had occurred most often before the outcome."""
    majority_n: Floats = field(default_factory=_not_kept)
    """Outcomes that the prequential majority predicted."""
    known: dict[Callable[[Totals], Any], Any] = field(
        default_factory=dict[Callable[["Totals"], Any], Any], init=False, repr=False, compare=False
    )
    """Results of functions of these totals that are computed `once`."""

    def __post_init__(self) -> None:
        """Replace optional sums that were not given by NaN, one per model."""
        absent: Floats | None = None
        for name in OPTIONAL_SUMS:
            if getattr(self, name).shape != self.n.shape:
                absent = np.full(self.n.shape, np.nan) if absent is None else absent
                object.__setattr__(self, name, absent)


OPTIONAL_SUMS = tuple(f.name for f in fields(Totals) if f.init)[8:]
"""Names of the optional sums of `Totals`."""

Result = TypeVar("Result", Floats, Flags)


def once(function: Callable[[Totals], Result]) -> Callable[[Totals], Result]:
    """Decorate a function of totals: the result for a `Totals` object is computed once and kept, read-only.

    A report asks for some thirty measures of the same totals, most of which need accuracy, shares or chance.
    """

    @wraps(function)
    def kept(totals: Totals) -> Result:
        found = totals.known.get(function)
        if found is None:
            found = totals.known[function] = function(totals)
            found.flags.writeable = False
        return found

    return kept


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


# Uncertainty of the estimates: bounds, standard errors, and the effect of correlated losses.
#
# All are functions of the agreement totals, vectorised over models, and undefined (NaN) as those above.
# Bounds hold for the *weighted mean of the true accuracy over what is remembered*, at one fixed time and for
# independent losses. They do not hold for the momentary accuracy right after a change, and cover less than
# nominally if losses are correlated, which `loss_autocorrelation` measures. Under ADWIN they are nominal
# only, since ADWIN chose its window by the same losses.


ROUNDING = 1e-12
"""Variance of agreement below which nothing but rounding error is left."""

UNBOUNDED = 1e-9
"""Least 1 + ρ: below it the losses alternate, and no finite number of independent outcomes is equivalent."""


def hoeffding_half_width(totals: Totals, delta: float) -> Floats:
    """ε with P(|p - true| > ε) ≤ δ: √(ln(2/δ)/(2·n_eff)).

    Hoeffding 1963 for losses of range R = 1; Gama, Sebastião, Rodrigues 2009, §3.2, whose √R must be R. For
    weighted means n is (Σw)²/Σw². Undefined without outcomes.

    Parameters
    ----------
    totals
        Totals of m models.
    delta
        Probability in (0, 1) that the truth is outside.
    """
    return np.sqrt(ratio(np.full_like(totals.n_eff, np.log(2.0 / delta) / 2.0), totals.n_eff, totals.n > 0))


def hoeffding_lower(totals: Totals, delta: float) -> Floats:
    """Lower bound of the accuracy by Hoeffding, max(0, p - ε)."""
    return np.maximum(0.0, accuracy(totals) - hoeffding_half_width(totals, delta))


def hoeffding_upper(totals: Totals, delta: float) -> Floats:
    """Upper bound of the accuracy by Hoeffding, min(1, p + ε)."""
    return np.minimum(1.0, accuracy(totals) + hoeffding_half_width(totals, delta))


def _chernoff_error(totals: Totals, delta: float) -> tuple[Floats, Floats]:
    """Limits of the true error: E + c/2 ± √(cE + c²/4), c = 3·ln(2/δ)/n_eff.

    Chernoff's |E - μ| ≤ √(3μ·ln(2/δ)/n_eff) solved for the unknown mean μ. With E in place of μ, as often
    printed, both limits would equal E as long as there are no errors.
    """
    error = 1.0 - accuracy(totals)
    c = ratio(np.full_like(totals.n_eff, 3.0 * np.log(2.0 / delta)), totals.n_eff, totals.n > 0)
    half = np.sqrt(c * error + c * c / 4.0)
    return error + c / 2.0 - half, error + c / 2.0 + half


def chernoff_lower(totals: Totals, delta: float) -> Floats:
    """Lower bound of the accuracy by Chernoff, 1 - (E + c/2 + √(cE + c²/4)), at least 0, c = 3·ln(2/δ)/n_eff.

    Gama, Sebastião, Rodrigues 2009, §3.2, solved for the mean. Tighter than Hoeffding's for small errors.
    """
    return np.maximum(0.0, 1.0 - _chernoff_error(totals, delta)[1])


def chernoff_upper(totals: Totals, delta: float) -> Floats:
    """Upper bound of the accuracy by Chernoff, 1 - (E + c/2 - √(cE + c²/4)), at most 1.

    c = 3·ln(2/δ)/n_eff; see `chernoff_lower`.
    """
    return np.minimum(1.0, 1.0 - _chernoff_error(totals, delta)[0])


@once
def loss_autocorrelation(totals: Totals) -> Floats:
    """Lag-1 autocorrelation ρ of the loss, (p11 - E²)/(E(1-E)), p11 = lost_twice/pairs.

    E is the error over everything remembered. Clipped to [-1, 1], which the estimate can exceed with few
    outcomes. Undefined while the losses are nearly constant, n·E(1-E) < 0.05, before the second outcome, and
    if `lost_twice` is not kept.
    """
    error = 1.0 - accuracy(totals)
    variance = error * (1.0 - error)
    varied = (totals.n * variance >= PRESENT) & (totals.pairs > 0)
    together = ratio(totals.lost_twice, totals.pairs, varied)
    return np.clip(ratio(together - error * error, variance, varied), -1.0, 1.0)


def effective_sample_size_autocorrelated(totals: Totals) -> Floats:
    """Equivalent number of independent outcomes: n_eff·(1-ρ)/(1+ρ), ρ the loss's lag-1 autocorrelation.

    Effective size of a first-order autoregressive sample (Bayley, Hammersley 1946). Larger than n_eff for
    losses that alternate. Undefined where ρ is, and at ρ = -1.
    """
    rho = loss_autocorrelation(totals)
    return ratio(totals.n_eff * (1.0 - rho), 1.0 + rho, 1.0 + rho > UNBOUNDED)


def kappa_standard_error(totals: Totals) -> Floats:
    """Standard error of κ around its true value, √(p(1-p)/n_eff)/(1 - p_chance).

    Cohen 1960, taking the class shares as known; Žliobaitė et al. 2015, eq. 11. Undefined where κ is.
    """
    p, chance = accuracy(totals), p_chance(totals)
    spread = np.sqrt(ratio(p * np.maximum(0.0, 1.0 - p), totals.n_eff, totals.n > 0))
    return ratio(spread, 1.0 - chance, ~np.isnan(kappa(totals)))


@once
def kappa_null_deviation(totals: Totals) -> Floats:
    """Standard deviation δ₀ of κ for predictions independent of the truth.

    √(p_c + p_c² - Σ t_k q_k (t_k + q_k))/((1 - p_c)·√n_eff) with shares t, q and p_c = p_chance (Fleiss,
    Cohen, Everitt 1969). Undefined where κ is, while labels or predictions miss their largest class by less
    than 0.05 outcomes, and where the variance is only rounding error.
    """
    true_class, predicted_class = true_shares(totals), predicted_shares(totals)
    chance = p_chance(totals)
    agreed = true_class * predicted_class
    variance = chance + chance * chance - (agreed * (true_class + predicted_class)).sum(axis=1)
    missed = totals.n - np.maximum(largest_true(totals), largest_predicted(totals))
    defined = (missed >= PRESENT) & (variance > ROUNDING) & ~np.isnan(kappa(totals))
    return ratio(np.sqrt(np.maximum(0.0, variance)), (1.0 - chance) * np.sqrt(totals.n_eff), defined)


def kappa_zscore(totals: Totals) -> Floats:
    """κ in standard deviations from chance, z = κ/δ₀, one-sided: above 1.645 better than chance at 5 %.

    Fleiss, Cohen, Everitt 1969. The approximation in Žliobaitė et al. 2015, eq. 12, is conservative for
    unbalanced classes. Undefined where δ₀ is.
    """
    return ratio(kappa(totals), kappa_null_deviation(totals), kappa_null_deviation(totals) > 0)


# Baseline classifiers without features: accuracy from labels alone, or from the previous label.
#
# Uninformed, both majorities, random and persistent are among the measures above. The baselines here are
# counted outcome by outcome; they are undefined (NaN) if the caller does not keep their sums.


def p_persistent_at_prediction(totals: Totals) -> Floats:
    """Accuracy of predicting the last label known when the prediction was made.

    This is what persistence would have achieved in production, where labels are late (Žliobaitė et al. 2015,
    eq. 7, applied to that label). Undefined before the first such label.
    """
    return ratio(
        totals.label_at_prediction_repeats,
        totals.label_at_prediction_pairs,
        totals.label_at_prediction_pairs > 0,
    )


def p_temporal_correction(totals: Totals) -> Floats:
    """Accuracy of the model's scores corrected by the previous label, over the outcomes that carry scores.

    argmax_i P(y=i|X)·P(y_t=i|y_{t-1})/P(y=i) (Žliobaitė et al. 2015, §3.1). Undefined without scores.
    """
    return ratio(totals.corrected, totals.scored, totals.scored > 0)


def p_temporally_augmented(totals: Totals) -> Floats:
    """Accuracy of the most frequent class given (ŷ_t, y_{t-1}), or of ŷ_t where nothing was counted yet.

    It approximates, from outcomes alone, the classifier that Žliobaitė et al. 2015, §3.2, retrain with the
    previous label as an additional feature (order 1).
    """
    return ratio(totals.augmented, totals.augmented_n, totals.augmented_n > 0)


def p_transition(totals: Totals) -> Floats:
    """Accuracy of the most frequent successor of the previous label, argmax P(y|y_{t-1}).

    Žliobaitė et al. 2015, §4.1. Undefined before the second outcome.
    """
    return ratio(totals.transition, totals.transition_n, totals.transition_n > 0)


def temporal_dependence(totals: Totals) -> Floats:
    """Gain of persistence over the majority class, p_persistent - p_majority, in [-1, 1].

    Above 0, labels depend on the previous one, and accuracy and κ flatter a classifier that repeats it
    (Žliobaitė et al. 2015, §7). Undefined before the second outcome.
    """
    return p_persistent(totals) - p_majority(totals)
