"""Uncertainty of the estimates: bounds, standard errors, and the effect of correlated losses.

All are functions of the agreement totals, vectorised over models, and undefined (NaN) as in `measures`.
Bounds hold for the *weighted mean of the true accuracy over what is remembered*, at one fixed time and for
independent losses. They do not hold for the momentary accuracy right after a change, and cover less than
nominally if losses are correlated, which `loss_autocorrelation` measures. Under ADWIN they are nominal only,
since ADWIN chose its window by the same losses.
"""

from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.agreement import Floats, Totals, once
from streamwatch.core.estimators.measures.measures import (
    PRESENT,
    accuracy,
    kappa,
    largest_predicted,
    largest_true,
    p_chance,
    predicted_shares,
    ratio,
    true_shares,
)

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
