"""What an ensemble is made of: learners of one instance at a time."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.lab.experiments.result import Floats

Classes: TypeAlias = NDArray[np.int64]
"""By index, (n,)."""


class Expert(Protocol):
    """A learner of classes 0 and 1."""

    def answer(self, x: list[float]) -> int:
        """Class of attributes (d,); 0 before anything was learned."""
        ...

    def learn(self, x: list[float], true_class: int) -> None:
        """Take in an instance."""
        ...


class GaussianBayes:
    """Gaussian naive Bayes of two classes, one instance at a time (means and variances by Welford 1962).

    A class that was never seen is never answered where the other was; one seen once has variance `LEAST`.
    """

    LEAST = 1e-9
    """Least variance; MOA and river have none, and take a point for what was seen once."""

    __slots__ = ("_count", "_mean", "_squares")

    def __init__(self) -> None:
        self._count = [0, 0]
        self._mean: list[list[float]] = [[], []]
        self._squares: list[list[float]] = [[], []]

    def answer(self, x: list[float]) -> int:
        """Class of largest count · Π N(x_j; mean, variance); class 0 where equal, or nothing was learned."""
        if not self._count[0] or not self._count[1]:
            return int(self._count[1] > 0)
        return int(self._evidence(1, x) > self._evidence(0, x))

    def learn(self, x: list[float], true_class: int) -> None:
        """Take in attributes (d,) with their class."""
        self._count[true_class] += 1
        n, mean, squares = self._count[true_class], self._mean[true_class], self._squares[true_class]
        if n == 1:
            mean.extend(x)
            squares.extend([0.0] * len(x))
            return
        for j, value in enumerate(x):
            off = value - mean[j]
            mean[j] += off / n
            squares[j] += off * (value - mean[j])

    def _evidence(self, k: int, x: list[float]) -> float:
        n, found = self._count[k], log(self._count[k])
        for value, mean, squares in zip(x, self._mean[k], self._squares[k], strict=True):
            variance = max(squares / (n - 1), self.LEAST) if n > 1 else self.LEAST
            found -= 0.5 * (log(variance) + (value - mean) ** 2 / variance)
        return found


def alone(x: Floats, true_class: Classes, expert: Callable[[], Expert]) -> Classes:
    """Answers of a single learner, each before the instance was learned, (n,)."""
    learner = expert()
    found = np.empty(len(x), np.int64)
    for at, (attributes, truth) in enumerate(zip(x.tolist(), true_class.tolist(), strict=True)):
        found[at] = learner.answer(attributes)
        learner.learn(attributes, truth)
    return found
