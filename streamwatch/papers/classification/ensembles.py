"""Classifiers of the experiment: bagging with ADWIN, Dynamic Weighted Majority, naive Bayes, neighbours."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from streamwatch.papers.result import Floats

# Base learners, which learn one instance at a time.


Classes: TypeAlias = NDArray[np.int64]
"""Classes by index, (n,)."""


class Expert(Protocol):
    """Base learner of classes 0 and 1."""

    def answer(self, x: list[float]) -> int:
        """Predict the class of attributes (d,); 0 before the first instance is learned."""
        ...

    def learn(self, x: list[float], true_class: int) -> None:
        """Learn an instance: attributes (d,) and class."""
        ...


class GaussianBayes:
    """Gaussian naive Bayes of two classes, one instance at a time (means and variances by Welford 1962).

    A class without instances is never predicted if the other has some; one with a single instance has
    variance `LEAST`.
    """

    LEAST = 1e-9
    """Least variance; MOA and river have none, so that a single instance gives a variance of 0."""

    __slots__ = ("_count", "_mean", "_squares")

    def __init__(self) -> None:
        self._count = [0, 0]
        self._mean: list[list[float]] = [[], []]
        self._squares: list[list[float]] = [[], []]

    def answer(self, x: list[float]) -> int:
        """Predict the class of largest count · Π N(x_j; mean, variance); 0 if equal or without instances."""
        if not self._count[0] or not self._count[1]:
            return int(self._count[1] > 0)
        return int(self._evidence(1, x) > self._evidence(0, x))

    def learn(self, x: list[float], true_class: int) -> None:
        """Learn an instance: attributes (d,) and class."""
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
    """Return the predictions of a single learner, each before it learns the instance, (n,)."""
    learner = expert()
    found = np.empty(len(x), np.int64)
    for at, (attributes, truth) in enumerate(zip(x.tolist(), true_class.tolist(), strict=True)):
        found[at] = learner.answer(attributes)
        learner.learn(attributes, truth)
    return found


# Online bagging with ADWIN: an ensemble whose worst member is replaced when the error of one rises.
#
# Oza, Russell 2001: every member learns each instance with a weight drawn from Poisson(1). Bifet, Holmes,
# Pfahringer, Kirkby, Gavaldà 2009, §3.2: an ADWIN watches the error of each member; when one of them cuts its
# window and finds a higher error than before, the member of highest error and its ADWIN are replaced by new
# ones.


class Member(Protocol):
    """Member of the ensemble: a learner that takes weights of instances."""

    def share(self, x: list[float]) -> float:
        """Return P(class 1 | x); one half before the first instance is learned."""
        ...

    def learn(self, x: list[float], true_class: int, weight: int) -> None:
        """Learn an instance with a weight, a number of times."""
        ...


class Watch(Protocol):
    """Window of adaptive length over a member's losses."""

    @property
    def estimate(self) -> float:
        """Mean loss within the window; 0 before the first."""
        ...

    def took(self, loss: int) -> bool:
        """Add a loss; return whether the window was cut."""
        ...


def bagged(
    x: Floats,
    true_class: Classes,
    member: Callable[[], Member],
    watch: Callable[[], Watch],
    members: int,
    rng: np.random.Generator,
) -> Classes:
    """Return the predictions of an ensemble by the sum of its members' probabilities, (n,); 0 if equal.

    The losses given to an ADWIN are of predictions before the instance is learned; in MOA, of those after.

    Parameters
    ----------
    x
        Attributes, (n, d).
    true_class
        Classes 0 and 1, (n,).
    member, watch
        Functions that build a new learner, and a new ADWIN.
    members
        Number of members.
    rng
        Generator of the weights.
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


# Dynamic Weighted Majority (Kolter, Maloof 2007, figure 1): experts lose weight, are removed, and are added.
#
# At every `PERIOD`-th instance, and only there, the weight of each expert that was wrong is multiplied by β;
# weights are divided by the largest, experts below θ are removed, and if the ensemble was wrong a new expert
# of weight 1 is added. Every expert learns every instance. Unlike in the figure, where the weights of experts
# that are wrong are reduced before the vote, an instance is predicted before its class is used.


PERIOD: Final = 50
"""Instances between two changes of weights, p; MOA's default."""
FACTOR: Final = 0.5
"""Factor of the weight of an expert that was wrong, β."""
LEAST: Final = 0.01
"""Weight below which an expert is removed, θ."""


def dynamic_weighted_majority(
    x: Floats, true_class: Classes, expert: Callable[[], Expert], period: int = PERIOD
) -> Classes:
    """Return the predictions of the weighted majority of experts, (n,); class 0 if votes are equal.

    Parameters
    ----------
    x
        Attributes, (n, d).
    true_class
        Classes 0 and 1, (n,).
    expert
        Function that builds a new expert.
    period
        Instances between two changes of weights, p, at least 1.

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


# Nearest-neighbour classifier over a sliding window of instances.


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
