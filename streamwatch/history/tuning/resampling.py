"""Streams like a history: the stationary bootstrap, and the length of blocks that keeps its autocorrelation.

Politis, Romano 1994: blocks begin anywhere in the history, are geometrically long, and wrap around its end.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Losses = NDArray[np.int8]
MEANS: Final = 20
"""Means over a stretch from which their variance is estimated."""
GROWTH: Final = 1e-4
"""Chance at which a variance that does not grow is taken to."""


def autocorrelation(losses: Losses, lags: int) -> NDArray[np.float64]:
    """Autocorrelations of a history at lags 1 … `lags`; shape (lags,). NaN where all losses are alike."""
    centred = losses - losses.mean()
    n = len(centred)
    size = 1 << (n + lags).bit_length()
    spectrum = np.fft.rfft(centred, size)
    sums = np.fft.irfft(spectrum * spectrum.conj(), size)[: lags + 1]
    return np.full(lags, np.nan) if sums[0] <= 0.0 else sums[1:] / sums[0]


def mean_block(losses: Losses) -> float:
    """Mean length of blocks, in outcomes, that estimates the variance of a mean best; 1 … n/3.

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
    """Mean length of blocks that keeps slow swings, too, such as a cycle of some thousand outcomes; 1 … n/3.

    `mean_block` asks single correlations whether they are noise. Those of a slow swing are, each by itself,
    while their sum decides how far means over the swing wander. So the variance of means over s outcomes,
    times s, is looked at for s = b, 2b, 4b … while there are 20 means: of losses whose dependence ends within
    s it grows no more. The least s after which it grows no more (by the χ² law of a variance, one chance in
    10,000 at each comparison) is where the dependence ends, and blocks are four times as long, lest they cut
    every fourth swing. Where nothing grows, they are those of `mean_block`.
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
    """Variance of sums over so many outcomes, per outcome."""
    whole = losses[: len(losses) // scale * scale].reshape(-1, scale).sum(axis=1, dtype=np.int64)
    return float(whole.var(ddof=1)) / scale if len(whole) > 1 else 0.0


def resampled(losses: Losses, block: float, length: int, rng: np.random.Generator) -> Losses:
    """A stream of that length like the history, in blocks of that mean length; shape (length,)."""
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
