"""Two randomised classifiers of one algorithm under k folds: how often tests call them different.

Bifet et al. 2015, §4.1, in the small: each classifier is an ensemble of online logistic regressions, each on
a random half of the features, with online bagging; two classifiers differ in their seeds alone. Every fold
has a copy of each, with a seed of its own unless they share one, that trains as `streamwatch.folds` says. All
runs are computed side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from streamwatch.core.estimators.folds.significance import sign_test, wilcoxon_test
from streamwatch.folds import Scheme, roles

Floats = NDArray[np.float64]
Stream = Callable[[np.random.Generator, int, int], tuple[Floats, NDArray[np.int64]]]
MEMBERS, RATE = 8, 0.1
ALPHA = 0.05
TESTS = ("McNemar", "sign", "sign, 8 of 10", "Wilcoxon")
"""The paper takes 8 of 10 for the critical value of the sign test at .05; two-sided, that is p = .109."""


class Evaluated(NamedTuple):
    """Hits of both classifiers, shape (n, runs, 2, folds), and who tests which id, (n, folds)."""

    hits: NDArray[np.bool_]
    tests: NDArray[np.bool_]


def sea(rng: np.random.Generator, runs: int, n: int) -> tuple[Floats, NDArray[np.int64]]:
    """SEA: the sum of two of three features against a threshold that changes, a tenth of the labels wrong."""
    x = rng.random((n, runs, 3)) * 10
    threshold = np.repeat([8.0, 9.0, 7.0, 9.5], -(-n // 4))[:n, None]
    y = (x[..., 0] + x[..., 1] <= threshold) ^ (rng.random((n, runs)) < 0.1)
    return x / 5 - 1, y.astype(np.int64)


def hyperplane(rng: np.random.Generator, runs: int, n: int) -> tuple[Floats, NDArray[np.int64]]:
    """Rotating hyperplane in ten dimensions, a twentieth of the labels wrong."""
    x = rng.random((n, runs, 10)) * 2 - 1
    weights = (
        rng.random((runs, 10)) - 0.5 + np.linspace(0, 1, n)[:, None, None] * (rng.random((runs, 10)) - 0.5)
    )
    y = ((x * weights).sum(axis=-1) > 0) ^ (rng.random((n, runs)) < 0.05)
    return x, y.astype(np.int64)


def radial(rng: np.random.Generator, runs: int, n: int) -> tuple[Floats, NDArray[np.int64]]:
    """Random centroids in ten dimensions, each of one class."""
    centres = rng.random((runs, 12, 10)) * 2 - 1
    chosen = rng.integers(12, size=(n, runs))
    x = centres[np.arange(runs)[None, :], chosen] + rng.normal(0, 0.3, (n, runs, 10))
    return x, chosen % 2


STREAMS: dict[str, Stream] = {"SEA": sea, "hyperplane": hyperplane, "random RBF": radial}


def who(scheme: Scheme, n: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Roles by id and fold: who tests, (n, folds), and how often who trains, (n, folds)."""
    found = [[roles(str(i), fold, scheme) for fold in range(scheme.folds)] for i in range(n)]
    return (
        np.array([[role.tests for role in row] for row in found]),
        np.array([[role.weight for role in row] for row in found]),
    )


def evaluate(
    stream: Stream, scheme: Scheme, runs: int, n: int, seed: int, *, shared: bool = False
) -> Evaluated:
    """Feed runs of a stream to two classifiers in every fold: each predicts first, then trains.

    `shared`: all copies of a classifier look at the same features.
    """
    rng = np.random.default_rng(seed)
    x, y = stream(rng, runs, n)
    tests, weights = who(scheme, n)
    x = np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=-1)
    d = x.shape[-1]
    mask = rng.random((runs, 2, 1 if shared else scheme.folds, MEMBERS, d)) < 0.5
    mask[..., -1] = True
    w = np.zeros((runs, 2, scheme.folds, MEMBERS, d))
    hits = np.zeros((n, runs, 2, scheme.folds), np.bool_)
    for t in range(n):
        seen = x[t][:, None, None, None, :] * mask
        p = 1 / (1 + np.exp(-(w * seen).sum(axis=-1)))
        said = p.mean(axis=-1) > 0.5
        hits[t] = said == y[t][:, None, None]
        bagged = rng.poisson(1.0, p.shape) * weights[t][None, None, :, None]
        w += RATE * (bagged * (y[t][:, None, None, None] - p))[..., None] * seen
    return Evaluated(hits, tests)


def noisy(evaluated: Evaluated, share: float, seed: int) -> Evaluated:
    """The second classifier's predictions with so many replaced by the other class."""
    rng = np.random.default_rng(seed)
    hits = evaluated.hits.copy()
    hits[:, :, 1] ^= rng.random(hits[:, :, 1].shape) < share
    return Evaluated(hits, evaluated.tests)


class Spread(NamedTuple):
    """Numbers that tests of difference go by, as means over runs."""

    lead: float
    """Accuracy of the first classifier minus that of the second."""
    deviation: float
    """Standard deviation of this difference over the folds of a run, with k − 1."""
    one_fold: float
    """Share of folds in which McNemar's test on the pairs of that fold alone rejects at .05."""


def spread(evaluated: Evaluated) -> Spread:
    """Measure how far two classifiers are apart, and how much that differs between folds."""
    hits, tests = evaluated
    accuracies = (hits & tests[:, None, None, :]).sum(axis=0) / tests.sum(axis=0)
    leads = accuracies[:, 0] - accuracies[:, 1]
    rejected = _mcnemar_rejects(*_discordant(evaluated))
    return Spread(float(leads.mean()), float(leads.std(axis=1, ddof=1).mean()), float(rejected.mean()))


def _discordant(evaluated: Evaluated) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs on which only the second, and only the first classifier is right, by (run, fold)."""
    hits, tests = evaluated
    first, second, tested = hits[:, :, 0], hits[:, :, 1], tests[:, None, :]
    return (~first & second & tested).sum(axis=0), (first & ~second & tested).sum(axis=0)


def _mcnemar_rejects(n01: NDArray[np.int64], n10: NDArray[np.int64]) -> NDArray[np.bool_]:
    return (n01 - n10) ** 2 / np.maximum(n01 + n10, 1) > chi2.isf(ALPHA, 1)


def rejections(evaluated: Evaluated) -> Floats:
    """Share of runs in which each of `TESTS` calls the two classifiers different at .05.

    McNemar's test counts the pairs of all folds.
    """
    hits, tests = evaluated
    n01, n10 = _discordant(evaluated)
    mcnemar = _mcnemar_rejects(n01.sum(axis=1), n10.sum(axis=1))
    accuracies = (hits & tests[:, None, None, :]).sum(axis=0) / tests.sum(axis=0)
    found = []
    for run, (first, second) in enumerate(accuracies):
        signs = sign_test(first, second)
        eight = max(signs.wins, signs.losses) >= 8
        found.append([mcnemar[run], signs.p < ALPHA, eight, wilcoxon_test(first, second).p < ALPHA])
    return np.mean(found, axis=0)
