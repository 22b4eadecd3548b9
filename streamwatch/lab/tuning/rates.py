"""Rates of false alarms with intervals, from counts on resampled histories."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

CONFIDENCE: Final = 0.98
"""Of the interval of a rate; its upper end keeps the promise. By resampling it comes out too narrow where
losses go together: one of 90 % holds in 60 to 80 of 100 histories (this one: docs/how-to/tune.md)."""


def rate_intervals(
    counts: NDArray[np.int64], length: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(rate, low, high) per outcome of each detector, from counts on streams of as many histories.

    Parameters
    ----------
    counts
        Shape (detectors, histories).
    length
        Outcomes of each stream.

    Counts vary by chance (Poisson) and from history to history; only the second, and the chance in the mean,
    are in the interval: a gamma law with the mean of the counts and the relative variance that is left. Where
    counts are too small to tell the two apart, the variance of the nearest detector with 5 a history is
    taken. Without an alarm, high is that of Poisson's law.
    """
    means = counts.mean(axis=1)
    total = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.maximum(0.0, (counts.var(axis=1, ddof=1) - means) / means**2)
    told = np.flatnonzero(means >= 5.0)
    if len(told):
        between[means < 5.0] = np.maximum(between[told[-1]], np.nan_to_num(between[means < 5.0]))
    low, high = np.zeros(len(means)), np.zeros(len(means))
    tail = (1.0 - CONFIDENCE) / 2.0
    for j, mean in enumerate(means):
        if total[j] == 0:
            high[j] = -math.log(tail) / counts.shape[1]
            continue
        shape = 1.0 / (between[j] + 1.0 / total[j])
        low[j], high[j] = (mean / shape) * stats.gamma.ppf([tail, 1.0 - tail], shape)
    return means / length, low / length, high / length
