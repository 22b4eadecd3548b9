"""Gaussian naive Bayes, tested on each instance before it learns it, over everything or over a window.

Sums over the instances before each one come from cumulative sums, so that a whole stream is one computation.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from streamwatch.lab.experiments.result import Floats

LEAST_VARIANCE = 0.01


def scores(x: Floats, true_class: NDArray[np.integer], classes: int, window: int | None = None) -> Floats:
    """P(class | x) before each instance is learned, (n, classes).

    Parameters
    ----------
    x
        Attributes, (n, d).
    true_class
        (n,).
    classes
        How many there are; one that was never seen has the prior of add-one smoothing and variance 1.
    window
        Instances that are remembered; None for all.
    """
    evidence = np.stack([_evidence(x, true_class == k, classes, window) for k in range(classes)], axis=1)
    evidence -= evidence.max(axis=1, keepdims=True)
    shares = np.exp(evidence)
    return shares / shares.sum(axis=1, keepdims=True)


def predictions(
    x: Floats, true_class: NDArray[np.integer], classes: int, window: int | None = None
) -> NDArray[np.int64]:
    """Predicted classes, (n,); parameters as of `scores`."""
    return scores(x, true_class, classes, window).argmax(axis=1)


def restarted(
    x: Floats, true_class: NDArray[np.integer], classes: int, starts: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Predicted classes, (n,), of a learner that forgets everything at some instances (0-based)."""
    found = np.zeros(len(x), np.int64)
    edges = [0, *sorted({int(s) for s in starts if 0 < s < len(x)}), len(x)]
    for begin, end in pairwise(edges):
        found[begin:end] = predictions(x[begin:end], true_class[begin:end], classes)
    return found


def _evidence(x: Floats, member: NDArray[np.bool_], classes: int, window: int | None) -> Floats:
    """Ln P(class)·P(x | class) with what the instances before tell."""
    weights = member[:, None].astype(np.float64)
    centre = x.mean(axis=0)  # cumulative squares keep their digits near 0
    shifted = x - centre
    count = _before(weights, window)
    total, squares = _before(shifted * weights, window), _before(shifted**2 * weights, window)
    seen = np.minimum(np.arange(len(x)), len(x) if window is None else window)
    n = np.maximum(count, 1.0)
    mean = total / n
    variance = np.where(count < 2, 1.0, np.maximum(squares / n - mean**2, LEAST_VARIANCE))
    mean = np.where(count < 1, shifted, mean)  # of a class never seen nothing speaks against x
    prior = np.log((count[:, 0] + 1.0) / (seen + classes))
    return prior - 0.5 * (np.log(variance) + (shifted - mean) ** 2 / variance).sum(axis=1)


def _before(values: Floats, window: int | None) -> Floats:
    """Sums over what came before each row, within the window."""
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    if window is None:
        return sums[:-1]
    starts = np.maximum(np.arange(len(values)) - window, 0)
    return sums[:-1] - sums[starts]
