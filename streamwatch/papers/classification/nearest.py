"""Nearest-neighbour classifier over a sliding window of instances."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from streamwatch.papers.classification.ensembles import Classes
from streamwatch.papers.result import Floats

BLOCK = 200
"""Number of instances computed at a time; it affects memory only."""


def nearest(x: Floats, true_class: Classes, window: int) -> Classes:
    """Predict the class of the nearest of the previous `window` instances; of equally near ones the earliest.

    Distances are Euclidean with each attribute divided by its range within the window, as in MOA; attributes
    that are constant in the window are ignored.

    Parameters
    ----------
    x
        Attributes, (n, d).
    true_class
        Classes, (n,).
    window
        Number of instances that are remembered, at least 1.

    Returns
    -------
    Classes
        Predictions, (n,); 0 for the first instance.

    Raises
    ------
    ValueError
        If the window is shorter than 1.
    """
    if window < 1:
        raise ValueError(f"a window holds at least one instance, got {window}")
    found = np.zeros(len(x), np.int64)
    if not len(x):
        return found
    ranges = _ranges(x, min(window, len(x)))
    for begin in range(0, len(x), BLOCK):
        end = min(begin + BLOCK, len(x))
        first = max(0, begin - window)
        distance = np.zeros((end - begin, end - first))
        for j in range(x.shape[1]):
            away = x[begin:end, j, None] - x[None, first:end, j]
            away /= ranges[begin:end, j, None]
            np.square(away, out=away)
            distance += away
        row = np.arange(end - begin)
        # Exclude the instance itself and later ones (columns of the block), and those before the window.
        distance[:, begin - first :][row[None, :] >= row[:, None]] = np.inf
        distance[:, : len(row)][row[None, :] < (begin - window - first + row)[:, None]] = np.inf
        found[begin:end] = true_class[first + distance.argmin(axis=1)]
    found[0] = 0
    return found


def _ranges(x: Floats, window: int) -> Floats:
    """Compute the range of each attribute over the previous `window` instances, (n, d); infinite if 0."""
    # Padding repeats the first instance, which is in every window that is not full yet.
    padded = np.concatenate([np.repeat(x[:1], window, axis=0), x[:-1]])
    ahead = -(window // 2)  # lets the filter's window begin at the cell instead of being centred
    high = maximum_filter1d(padded, window, axis=0, origin=ahead)[: len(x)]
    found = high - minimum_filter1d(padded, window, axis=0, origin=ahead)[: len(x)]
    found[found == 0.0] = np.inf
    return found
