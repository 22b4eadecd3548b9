"""The slow, obvious twin of what is uncertain: from the raw list of weighted outcomes, in plain Python.

Undefined is None. Where a formula has several forms, this is another one than the code's.
"""

from __future__ import annotations

import math

from tests.core.estimators.measures import plain_measures as plain


def half_width(outcomes, delta):
    """Hoeffding's, in the form for weighted means: √(ln(2/δ)·Σw²/(2·(Σw)²))."""
    squares = math.fsum(o.weight**2 for o in outcomes)
    return math.sqrt(math.log(2 / delta) * squares / 2) / plain.weight(outcomes)


def hoeffding(outcomes, delta):
    return max(0.0, plain.accuracy(outcomes) - half_width(outcomes, delta))


def hoeffding_upper(outcomes, delta):
    return min(1.0, plain.accuracy(outcomes) + half_width(outcomes, delta))


def _believable(error, mean, n_eff, delta):
    """Whether an error seen is within Chernoff's bound of a mean."""
    return abs(error - mean) <= math.sqrt(3 * mean * math.log(2 / delta) / n_eff)


def _last_believable(error, beyond, n_eff, delta):
    """The mean farthest from the error, towards `beyond`, that is believable: by halving."""
    near, far = error, beyond
    for _ in range(70):
        middle = (near + far) / 2
        near, far = (middle, far) if _believable(error, middle, n_eff, delta) else (near, middle)
    return near


def chernoff(outcomes, delta):
    error, n_eff = 1 - plain.accuracy(outcomes), plain.effective_sample_size(outcomes)
    return max(0.0, 1 - _last_believable(error, 1_000.0, n_eff, delta))


def chernoff_upper(outcomes, delta):
    error, n_eff = 1 - plain.accuracy(outcomes), plain.effective_sample_size(outcomes)
    return min(1.0, 1 - _last_believable(error, 0.0, n_eff, delta))


def loss_autocorrelation(outcomes):
    pairs = [o for o in outcomes if o.lost_before is not None]
    error = plain.weight(outcomes, lambda o: o.true_class != o.predicted_class) / plain.weight(outcomes)
    variance = error - error**2
    if not pairs or plain.weight(outcomes) * variance < plain.LEAST:
        return None
    both = plain.weight(pairs, lambda o: o.true_class != o.predicted_class and o.lost_before)
    return min(1.0, max(-1.0, (both / plain.weight(pairs) - error**2) / variance))


def effective_sample_size_autocorrelated(outcomes):
    rho = loss_autocorrelation(outcomes)
    if rho is None or 1 + rho < 1e-9:
        return None
    return plain.effective_sample_size(outcomes) * (1 - rho) / (1 + rho)


def kappa_standard_error(outcomes):
    if plain.kappa(outcomes) is None:
        return None
    p, chance = plain.accuracy(outcomes), plain.random(outcomes)
    return math.sqrt(p * (1 - p) / (plain.effective_sample_size(outcomes) * (1 - chance) ** 2))


def null_deviation(outcomes):
    """δ₀ in the general form of Fleiss, Cohen, Everitt 1969: a sum over the cells of the table."""
    n, classes = plain.weight(outcomes), plain.classes(outcomes)
    true_class = {k: plain.true_classes(outcomes, k) / n for k in classes}
    guess = {k: plain.predictions(outcomes, k) / n for k in classes}
    if n * (1 - max(*true_class.values(), *guess.values())) < plain.LEAST or plain.kappa(outcomes) is None:
        return None
    chance = plain.random(outcomes)
    variance = -(chance**2)
    for i in classes:
        for j in classes:
            off = (guess[i] + true_class[j]) if i != j else 1 - (guess[i] + true_class[i])
            variance += true_class[i] * guess[j] * off**2
    return (
        math.sqrt(variance / plain.effective_sample_size(outcomes)) / (1 - chance)
        if variance > 1e-12
        else None
    )


def kappa_zscore(outcomes):
    deviation = null_deviation(outcomes)
    return None if deviation is None else plain.kappa(outcomes) / deviation


MEASURES = {
    "kappa_standard_error": kappa_standard_error,
    "kappa_zscore": kappa_zscore,
    "loss_autocorrelation": loss_autocorrelation,
    "effective_sample_size_autocorrelated": effective_sample_size_autocorrelated,
}
BOUNDS = {
    "hoeffding": hoeffding,
    "hoeffding_upper": hoeffding_upper,
    "chernoff": chernoff,
    "chernoff_upper": chernoff_upper,
}
