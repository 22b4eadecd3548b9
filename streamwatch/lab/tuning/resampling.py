"""Streams like a history: the stationary bootstrap, and the length of blocks that keeps its autocorrelation.

Politis, Romano 1994: blocks begin anywhere in the history, are geometrically long, and wrap around its end.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Losses = NDArray[np.int8]


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
