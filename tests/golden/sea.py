"""The SEA concepts (Street, Kim 2001) and a naive Bayes classifier's prequential losses on them.

Three attributes uniform in [0, 10], of which two matter: class 1 iff x1 + x2 <= θ, θ = 8, 9, 7, 9.5 for
15,000 outcomes each; 10 % of the labels are flipped. Gaussian naive Bayes, tested on each example before it
learns it, is written with cumulative sums.
"""

from __future__ import annotations

import numpy as np

CONCEPTS = (8.0, 9.0, 7.0, 9.5)
PER_CONCEPT = 15_000
DRIFTS = tuple(PER_CONCEPT * k for k in range(1, len(CONCEPTS)))


def naive_bayes_losses(seed):
    """Loss of each of 60,000 outcomes."""
    rng = np.random.default_rng(seed)
    n = PER_CONCEPT * len(CONCEPTS)
    x = 10.0 * rng.random((n, 3))
    y = (x[:, 0] + x[:, 1] <= np.repeat(CONCEPTS, PER_CONCEPT)) ^ (rng.random(n) < 0.1)
    evidence = [_log_evidence(x, y == k) for k in (False, True)]
    return (evidence[1] > evidence[0]) != y


def _log_evidence(x, member):
    """ln P(class)·P(x|class) with what earlier examples of the class tell."""
    before = np.s_[:-1]
    weights = member[:, None].astype(float)
    count = np.concatenate([[0.0], np.cumsum(weights)[before]])
    total = np.concatenate([np.zeros((1, 3)), np.cumsum(x * weights, axis=0)[before]])
    squares = np.concatenate([np.zeros((1, 3)), np.cumsum(x * x * weights, axis=0)[before]])
    n = np.maximum(count, 1.0)[:, None]
    mean = total / n
    variance = np.maximum(squares / n - mean**2, 0.01)
    prior = np.log((count + 1.0) / (np.arange(len(x)) + 2.0))
    return prior - 0.5 * (np.log(variance) + (x - mean) ** 2 / variance).sum(axis=1)
