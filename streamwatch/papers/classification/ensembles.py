"""Ensembles of the paper: bagging with ADWIN, Dynamic Weighted Majority, and their experts."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.papers.result import Floats

# What an ensemble is made of: learners of one instance at a time.


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


# Online bagging with ADWIN: a bag of learners, the worst of which begins anew where one's error rises.
#
# Oza, Russell 2001: every member learns each instance with a weight drawn from Poisson(1). Bifet, Holmes,
# Pfahringer, Kirkby, Gavaldà 2009, §3.2: an ADWIN watches the error of each member; where one of them cuts
# its window and finds a higher error than before, the member of highest error begins anew, and its ADWIN
# too.


class Member(Protocol):
    """A learner that weighs instances."""

    def share(self, x: list[float]) -> float:
        """P(class 1 | x); one half before anything was learned."""
        ...

    def learn(self, x: list[float], true_class: int, weight: int) -> None:
        """Take in an instance that counts so many times."""
        ...


class Watch(Protocol):
    """A window over a member's losses that adapts its length."""

    @property
    def estimate(self) -> float:
        """Mean loss within the window; 0 before the first."""
        ...

    def took(self, loss: int) -> bool:
        """Take in a loss; whether the window was cut."""
        ...


def bagged(
    x: Floats,
    true_class: Classes,
    member: Callable[[], Member],
    watch: Callable[[], Watch],
    members: int,
    rng: np.random.Generator,
) -> Classes:
    """Answers of a bag by the sum of its members' probabilities, (n,); class 0 where they are equal.

    The loss that an ADWIN takes in is of the answer before the instance was learned; MOA's is of that after.

    Parameters
    ----------
    x
        Attributes, (n, d).
    true_class
        Classes 0 and 1, (n,).
    member, watch
        Make a learner that knows nothing, and an ADWIN that saw nothing.
    members
        Learners in the bag.
    rng
        Source of the weights.
    """
    bag = [member() for _ in range(members)]
    watches = [watch() for _ in range(members)]
    weights = rng.poisson(1.0, (len(x), members)).tolist()
    found = np.empty(len(x), np.int64)
    for at, (attributes, truth) in enumerate(zip(x.tolist(), true_class.tolist(), strict=True)):
        shares = [each.share(attributes) for each in bag]
        found[at] = sum(shares) > 0.5 * members
        rose = False
        for each, watched, weight, share in zip(bag, watches, weights[at], shares, strict=True):
            if weight:
                each.learn(attributes, truth, weight)
            before = watched.estimate
            if watched.took(int((share > 0.5) != truth)) and watched.estimate > before:
                rose = True
        if rose:
            worst = max(range(members), key=lambda k: watches[k].estimate)
            bag[worst], watches[worst] = member(), watch()
    return found


# Dynamic Weighted Majority (Kolter, Maloof 2007, figure 1): experts that lose weight, go, and are added.
#
# At every `PERIOD`-th instance, and only there, the weight of each expert that was wrong is multiplied by
# β; weights are divided by the largest, experts below θ go, and where the whole was wrong a new expert of
# weight 1 comes, which has learned nothing. Every expert learns every instance. As everywhere here, an
# instance is answered before its class is looked at: in the figure the weights that vote are already
# reduced where an expert is wrong.


PERIOD: Final = 50
"""p, instances between two changes of weights; MOA's default."""
FACTOR: Final = 0.5
"""β."""
LEAST: Final = 0.01
"""θ, weight below which an expert goes."""


def dynamic_weighted_majority(
    x: Floats, true_class: Classes, expert: Callable[[], Expert], period: int = PERIOD
) -> Classes:
    """Answers of the weighted majority of experts, (n,); the lower class where votes are equal.

    Parameters
    ----------
    x
        Attributes, (n, d).
    true_class
        Classes 0 and 1, (n,).
    expert
        Makes an expert that has learned nothing.
    period
        p, at least 1.

    Raises
    ------
    ValueError
        If the period is shorter than 1.
    """
    if period < 1:
        raise ValueError(f"weights change every instance at most, got a period of {period}")
    experts, weights = [expert()], [1.0]
    found = np.empty(len(x), np.int64)
    for at, (attributes, truth) in enumerate(zip(x.tolist(), true_class.tolist(), strict=True), 1):
        answers = [each.answer(attributes) for each in experts]
        for_one = sum(weight for answer, weight in zip(answers, weights, strict=True) if answer)
        answer = int(for_one > sum(weights) - for_one)
        found[at - 1] = answer
        if at % period == 0:
            weights = [
                weight if each == truth else FACTOR * weight
                for each, weight in zip(answers, weights, strict=True)
            ]
            largest = max(weights)
            kept = [
                (one, weight / largest)
                for one, weight in zip(experts, weights, strict=True)
                if weight / largest >= LEAST
            ]
            experts, weights = [one for one, _ in kept], [weight for _, weight in kept]
            if answer != truth:
                experts.append(expert())
                weights.append(1.0)
        for each in experts:
            each.learn(attributes, truth)
    return found
