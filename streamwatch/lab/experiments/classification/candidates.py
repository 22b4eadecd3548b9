"""Classifiers that are tried, in the order of the paper's Table 3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from streamwatch.lab.experiments.classification import river
from streamwatch.lab.experiments.classification.dynamic_weighted_majority import dynamic_weighted_majority
from streamwatch.lab.experiments.classification.experts import Classes, GaussianBayes, alone
from streamwatch.lab.experiments.classification.nearest import nearest
from streamwatch.lab.experiments.result import Floats

RATE: Final = 0.01
"""Learning rate of the support vector machine: the paper prints none, and this one gives its errors."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A classifier that begins anew with every stream."""

    name: str
    """The paper's."""
    answers: Callable[[Floats, Classes, np.random.Generator], Classes]
    """Attributes (n, d), classes 0 and 1 (n,) and a source of chance → what was answered to each instance
    before its class was learned, (n,)."""
    slow: bool = False
    """Whether it takes milliseconds an instance, so that it is tried on fewer streams."""


def _bayes(x: Floats, true_class: Classes, _rng: np.random.Generator) -> Classes:
    return alone(x, true_class, GaussianBayes)


def _gradient(x: Floats, true_class: Classes, _rng: np.random.Generator) -> Classes:
    return river.support_vectors(x, true_class, RATE)


def _majority(x: Floats, true_class: Classes, _rng: np.random.Generator) -> Classes:
    return dynamic_weighted_majority(x, true_class, GaussianBayes)


def _neighbour(window: int, x: Floats, true_class: Classes, _rng: np.random.Generator) -> Classes:
    return nearest(x, true_class, window)


CANDIDATES: Final = (
    Candidate("NB", _bayes),
    Candidate("SGD", _gradient),
    Candidate("DWM", _majority),
    Candidate("OZAB", river.bag_of_trees, slow=True),
    *(Candidate(f"NN{window}", partial(_neighbour, window)) for window in (100, 1_500, 6_000)),
)
