"""The nearest neighbour in a sliding window: the class of the most similar of the last so many instances."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from streamwatch.papers.classification.ensembles import Classes
from streamwatch.papers.result import Floats

BLOCK = 200
"""Instances computed at a time; it changes nothing but memory."""


def nearest(x: Floats, true_class: Classes, window: int) -> Classes:
    """Answer with the class of the nearest of the `window` instances before, the earliest of equals.

    Distances are Euclidean, each attribute divided by its range within the window, as MOA has it; one that is
    the same throughout the window does not count.

    Parameters
    ----------
    x
        Attributes, (n, d).
    true_class
        (n,).
    window
        Instances that are remembered, at least 1.

    Returns
    -------
    Classes, (n,); class 0 for the first instance, which has none before it.

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
        # Only the columns of the block itself may be too young, only as many at the left too old.
        distance[:, begin - first :][row[None, :] >= row[:, None]] = np.inf
        distance[:, : len(row)][row[None, :] < (begin - window - first + row)[:, None]] = np.inf
        found[begin:end] = true_class[first + distance.argmin(axis=1)]
    found[0] = 0
    return found


def _ranges(x: Floats, window: int) -> Floats:
    """Largest less least of the `window` instances before each, (n, d); infinite where that is 0."""
    # Cells before the first instance repeat it: it is in every window that is not full yet.
    padded = np.concatenate([np.repeat(x[:1], window, axis=0), x[:-1]])
    ahead = -(window // 2)  # the filter's window begins at the cell, instead of lying around it
    high = maximum_filter1d(padded, window, axis=0, origin=ahead)[: len(x)]
    found = high - minimum_filter1d(padded, window, axis=0, origin=ahead)[: len(x)]
    found[found == 0.0] = np.inf
    return found
