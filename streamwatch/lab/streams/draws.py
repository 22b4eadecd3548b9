"""Instances drawn from a mixture that drifts, with what its optimal classifier says of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamwatch.lab.streams.gaussians import Floats, Indices, Mixture

BLOCK = 500
"""Instances drawn at a time: a stream is the same however much of it is asked for."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Consecutive instances of a stream."""

    first: int
    """Number of the first, 0-based."""
    x: Floats
    """Attributes, (n, d)."""
    true_class: Indices
    """(n,), by index in the mixture's `labels`."""
    posterior: Floats
    """P(class | x) at that time, (n, classes)."""

    @property
    def optimal_class(self) -> Indices:
        """Answers of the optimal (Bayes) classifier, (n,)."""
        return self.posterior.argmax(axis=1)

    @property
    def optimal_risk(self) -> Floats:
        """Probability that the optimal classifier is wrong, given x; (n,). Its mean is the optimal error."""
        return 1.0 - self.posterior.max(axis=1)

    @property
    def instances(self) -> Indices:
        """Their numbers, (n,)."""
        return np.arange(self.first, self.first + len(self.x))


def blocks(mixture: Mixture, seed: int) -> Iterator[Drawn]:
    """The stream without end, `BLOCK` instances at a time; equal seeds give equal streams."""
    rng = np.random.default_rng(seed)
    for first in itertools.count(0, BLOCK):
        instances = np.arange(first, first + BLOCK)
        states = mixture.at(instances)
        chosen = (rng.random(BLOCK)[:, None] >= states.weight.cumsum(axis=1)[:, :-1]).sum(axis=1)
        each = np.arange(BLOCK)
        along = rng.standard_normal((BLOCK, mixture.dimensions)) * np.sqrt(states.variances[each, chosen])
        x = states.centre[each, chosen] + np.einsum("nij,nj->ni", states.axes[each, chosen], along)
        yield Drawn(first, x, mixture.class_of[chosen], mixture.posterior(instances, x))


def draw(mixture: Mixture, outcomes: int, seed: int) -> Drawn:
    """The first instances of a stream.

    Raises
    ------
    ValueError
        If fewer than one is asked for.
    """
    if outcomes < 1:
        raise ValueError(f"a stream has at least one instance, got {outcomes}")
    taken = list(itertools.islice(blocks(mixture, seed), -(-outcomes // BLOCK)))
    return Drawn(
        0,
        np.concatenate([each.x for each in taken])[:outcomes],
        np.concatenate([each.true_class for each in taken])[:outcomes],
        np.concatenate([each.posterior for each in taken])[:outcomes],
    )
