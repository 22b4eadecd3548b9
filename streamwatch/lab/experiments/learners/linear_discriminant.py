"""A linear discriminant, one covariance for all classes, fitted anew after every so many instances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.lab.experiments.result import Floats


class LinearDiscriminant:
    """Class means and a pooled covariance from running sums.

    Parameters
    ----------
    classes, dimensions
        Shape of what it learns.
    """

    def __init__(self, classes: int, dimensions: int) -> None:
        self._count = np.zeros(classes)
        self._sum = np.zeros((classes, dimensions))
        self._products = np.zeros((dimensions, dimensions))

    def learn(self, x: Floats, true_class: NDArray[np.integer]) -> None:
        """Take in instances (n, d) with their classes (n,)."""
        member = np.eye(len(self._count))[true_class]
        self._count += member.sum(axis=0)
        self._sum += member.T @ x
        self._products += x.T @ x

    def predict(self, x: Floats) -> NDArray[np.int64]:
        """Most probable classes, (n,); class 0 before anything was learned."""
        n = self._count.sum()
        if n == 0:
            return np.zeros(len(x), np.int64)
        means = self._sum / np.maximum(self._count, 1.0)[:, None]
        within = self._products - means.T @ (self._count[:, None] * means)
        # A ridge keeps it solvable until there are more instances than attributes.
        covariance = within / max(n - len(means), 1.0) + (1.0 / (n + 1.0)) * np.eye(x.shape[1])
        weights = np.linalg.solve(covariance, means.T)
        prior = np.log((self._count + 1.0) / (n + len(means)))
        answers = x @ weights - 0.5 * (means.T * weights).sum(axis=0) + prior
        return answers.argmax(axis=1)
