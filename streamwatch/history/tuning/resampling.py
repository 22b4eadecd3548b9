"""Stationary bootstrap of a history, and the length of blocks that preserves its autocorrelation.

Blocks begin anywhere in the history, have geometric lengths, and wrap around its end (Politis, Romano 1994).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Losses = NDArray[np.int8]
MEANS: Final = 20
"""Least number of means from which their variance is estimated."""
GROWTH: Final = 1e-4
"""Probability of taking a constant variance for a growing one, at each comparison."""


def autocorrelation(losses: Losses, lags: int) -> NDArray[np.float64]:
    """Compute the autocorrelation of a history at lags 1 … `lags`, (lags,); NaN if losses are all equal."""
    centred = losses - losses.mean()
    n = len(centred)
    size = 1 << (n + lags).bit_length()
    spectrum = np.fft.rfft(centred, size)
    sums = np.fft.irfft(spectrum * spectrum.conj(), size)[: lags + 1]
    return np.full(lags, np.nan) if sums[0] <= 0.0 else sums[1:] / sums[0]


def mean_block(losses: Losses) -> float:
    """Compute the mean length of blocks, 1 … n/3 outcomes, that estimates the variance of a mean best.

    b = (2G²/D)^{1/3} n^{1/3} with D = 2g(0)², g(0) = Σ λ(k/M)R(k), G = Σ λ(k/M)|k|R(k), λ the flat-top
    window, M twice the lag after which correlations are within noise (Politis, White 2004; corrected by
    Patton, Politis, White 2009). A history of independent losses gives 1.
    """
    n = len(losses)
    run = max(5, math.ceil(math.sqrt(math.log10(n))))
    most = math.ceil(math.sqrt(n)) + run
    rho = autocorrelation(losses, min(most, n - 1))
    if np.isnan(rho).any():
        return 1.0
    noise = 2.0 * math.sqrt(math.log10(n) / n)
    quiet = np.abs(rho) < noise
    starts = np.flatnonzero(np.convolve(quiet, np.ones(run), "valid") == run)
    last = int(starts[0]) if len(starts) else int(np.flatnonzero(~quiet)[-1]) + 1
    width = min(2 * last, len(rho))
    if width == 0:
        return 1.0
    lags = np.arange(1, width + 1)
    window = np.minimum(1.0, 2.0 * (1.0 - lags / width))
    weighted = window * rho[:width]
    g0 = 1.0 + 2.0 * float(weighted.sum())
    g1 = 2.0 * float((weighted * lags).sum())
    if g0 <= 0.0 or g1 <= 0.0:
        return 1.0
    return float(np.clip((g1 / g0) ** (2.0 / 3.0) * n ** (1.0 / 3.0), 1.0, n / 3.0))


def lasting_block(losses: Losses) -> float:
    """Compute the mean length of blocks, 1 … n/3, that also preserves slow swings, such as daily cycles.

    `mean_block` tests single correlations. Those of a slow swing are each within noise, although their sum
    makes means over the swing vary. So the variance of means over s outcomes, times s, is computed for
    s = b, 2b, 4b … as long as there are 20 means. It stops growing where the dependence ends: at the least s
    after which it does not grow by the χ² law of a variance (`GROWTH` at each comparison). Blocks are four
    times as long, so that they cut at most every fourth swing. If it never grows, the result is that of
    `mean_block`.
    """
    n = len(losses)
    block = mean_block(losses)
    scales = [math.ceil(block)]
    while n // (2 * scales[-1]) >= MEANS:
        scales.append(2 * scales[-1])
    variances = [_variance_of_sums(losses, scale) for scale in scales]
    reached = 0
    for later in range(1, len(scales)):
        means = n // scales[later]
        surely = stats.chi2.ppf(1.0 - GROWTH, means - 1) / (means - 1)
        while reached < later and variances[later] > surely * variances[reached]:
            reached += 1
    return min(4.0 * scales[reached], n / 3.0) if reached else block


def _variance_of_sums(losses: Losses, scale: int) -> float:
    """Variance of sums over `scale` outcomes, per outcome; 0 with fewer than two sums."""
    whole = losses[: len(losses) // scale * scale].reshape(-1, scale).sum(axis=1, dtype=np.int64)
    return float(whole.var(ddof=1)) / scale if len(whole) > 1 else 0.0


def resampled(losses: Losses, block: float, length: int, rng: np.random.Generator) -> Losses:
    """Resample a history in blocks of mean length `block`; shape (length,)."""
    n = len(losses)
    if block <= 1.0:
        return losses[rng.integers(0, n, length)]
    begins = rng.random(length) < 1.0 / block
    begins[0] = True
    since = np.arange(length)
    first = np.maximum.accumulate(np.where(begins, since, 0))
    started = np.zeros(length, np.int64)
    started[begins] = rng.integers(0, n, int(begins.sum()))
    return losses[(started[first] + since - first) % n]
