"""Share labelled by age, from counts by prediction time and delay.

Kaplan, Meier 1958, and by kind Aalen, Johansen 1978.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]
Shares: TypeAlias = NDArray[np.float64]


def shares_labelled(
    predictions: Integers, labelled: Integers, ages_ms: Integers, edges_ms: Integers
) -> tuple[Shares, Shares]:
    """Compute the share labelled by the end of each bin of delay, of all kinds and by kind.

    A stretch of prediction time contributes to the bins that all of its predictions have lived through; those
    without a label then are censored. Of the predictions still waiting at the start of bin k, a share h(k) is
    labelled in it; S(k) = S(k − 1)·(1 − h(k)) remain waiting. For kind z, S(k − 1)·h(k, z) is added in bin k,
    so that kinds add up to 1 − S.

    Parameters
    ----------
    predictions
        Predictions of each stretch, shape (n,).
    labelled
        Labels of each stretch by kind and bin, shape (n, kinds, bins); not more than predictions.
    ages_ms
        Lower bound of the age of a stretch's predictions, shape (n,).
    edges_ms
        Ends of the bins, shape (bins,).

    Returns
    -------
    shares, by_kind
        Shape (bins,) and (kinds, bins); NaN from the first bin on at whose start no prediction is known to
        wait, unless everything was labelled by then.
    """
    kinds, bins = labelled.shape[1:]
    shares, by_kind = np.full(bins, np.nan), np.full((kinds, bins), np.nan)
    waiting, sums = 1.0, np.zeros(kinds)
    before = labelled.sum(axis=1)
    at_risk = predictions[:, None] - np.cumsum(before, axis=1) + before
    for k in range(bins):
        lived = ages_ms >= edges_ms[k]
        risk = int(at_risk[lived, k].sum())
        if waiting > 0.0:
            if risk <= 0:
                break
            hazard = labelled[lived, :, k].sum(axis=0) / risk
            sums = sums + waiting * hazard
            waiting *= 1.0 - float(hazard.sum())
            if labelled[lived, :, k].sum() >= risk:
                waiting = 0.0
        shares[k], by_kind[:, k] = 1.0 - waiting, sums
    return shares, by_kind
