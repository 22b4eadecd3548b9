"""Online bagging with ADWIN: a bag of learners, the worst of which begins anew where one's error rises.

Oza, Russell 2001: every member learns each instance with a weight drawn from Poisson(1). Bifet, Holmes,
Pfahringer, Kirkby, Gavaldà 2009, §3.2: an ADWIN watches the error of each member; where one of them cuts its
window and finds a higher error than before, the member of highest error begins anew, and its ADWIN too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from streamwatch.lab.experiments.classification.experts import Classes
from streamwatch.lab.experiments.result import Floats


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
