"""Mixtures of Gaussian distributions that move, turn, spread and change their weights.

The data model of Cervantes et al. (testbed for incremental learning from non-stationary data), §3.3 and §3.4:
a class is a mixture of distributions, and each distribution passes through consecutive phases. The change of
a phase is linear over its duration; with duration 0 it is abrupt. Numbers that the paper calls *stddev* are
variances here, which reproduces its optimal errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Phase:
    """Change of one distribution over some instances."""

    duration: int
    """Duration in instances; 0: an abrupt change."""
    move: tuple[float, ...] = ()
    """Translation of the centre, shape (d,); empty for none."""
    circle: float = 0.0
    """Degrees by which the centre turns around the origin, counter-clockwise."""
    turn: float = 0.0
    """Degrees by which the principal axes turn, counter-clockwise."""
    scale: float = 1.0
    """Factor of the covariance."""
    weight: float | None = None
    """Weight at the end of the phase; None if it stays."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Gaussian distribution of a class in its initial state, and its phases.

    Raises
    ------
    ValueError
        If lengths differ, or a distribution turns that has not two dimensions.
    """

    label: str
    """Class of its instances."""
    weight: float
    """Prior weight; weights of all distributions are divided by their sum."""
    centre: tuple[float, ...]
    variances: tuple[float, ...]
    """Variances along the principal axes, shape (d,)."""
    phases: tuple[Phase, ...]
    rotation: float = 0.0
    """Degrees of the first principal axis, counter-clockwise; two dimensions only."""

    def __post_init__(self) -> None:
        if len(self.centre) != len(self.variances):
            raise ValueError(
                f"centre and variances must be equally long, got {self.centre}, {self.variances}"
            )
        if len(self.centre) != 2 and (self.rotation or any(p.turn or p.circle for p in self.phases)):
            raise ValueError(f"only distributions of two dimensions turn, got {len(self.centre)}")


@dataclass(frozen=True, slots=True)
class States:
    """Positions, shapes and weights of k distributions at n instances."""

    weight: Floats
    """Prior probabilities, (n, k)."""
    centre: Floats
    """Centres, (n, k, d)."""
    variances: Floats
    """Variances along the principal axes, (n, k, d)."""
    axes: Floats
    """Matrices whose columns are the principal axes, (n, k, d, d)."""


@dataclass(frozen=True)
class Mixture:
    """Mixture of distributions that change over a lap of `lap` instances, which then repeats.

    Raises
    ------
    ValueError
        If a distribution's phases do not fill the lap, or dimensions differ.
    """

    distributions: tuple[Distribution, ...]
    lap: int = 10_000

    def __post_init__(self) -> None:
        for each in self.distributions:
            filled = sum(phase.duration for phase in each.phases)
            if filled != self.lap:
                raise ValueError(f"phases must last {self.lap} instances together, got {filled}")
            if len(each.centre) != self.dimensions:
                raise ValueError(f"centres must be of one dimension, got {each.centre}")

    @property
    def dimensions(self) -> int:
        """Number of attributes of an instance."""
        return len(self.distributions[0].centre)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, in the order in which they are given."""
        return tuple(dict.fromkeys(each.label for each in self.distributions))

    @cached_property
    def class_of(self) -> Indices:
        """Class of each distribution by its index in `labels`, (k,)."""
        return np.array([self.labels.index(each.label) for each in self.distributions])

    def over(self, lap: int) -> Mixture:
        """Return the mixture with the same changes over another number of instances.

        Raises
        ------
        ValueError
            If a phase would not last a whole number of instances.
        """
        return Mixture(tuple(_stretched(each, lap, self.lap) for each in self.distributions), lap)

    def at(self, instances: Indices) -> States:
        """Compute the states of the distributions at instances (0-based), shape (n,)."""
        inside = instances % self.lap
        found = [_path(each, inside) for each in self.distributions]
        weight, centre, variances, angle = (np.stack(part, axis=1) for part in zip(*found, strict=True))
        return States(weight / weight.sum(axis=1, keepdims=True), centre, variances, _axes(angle, centre))

    def draw(self, instances: Indices, rng: np.random.Generator) -> tuple[Floats, Indices]:
        """Draw attributes, (n, d), and classes by index in `labels`, (n,), at instances (0-based)."""
        states, each = self.at(instances), np.arange(len(instances))
        chosen = (rng.random(len(each))[:, None] >= states.weight.cumsum(axis=1)[:, :-1]).sum(axis=1)
        along = rng.standard_normal((len(each), self.dimensions)) * np.sqrt(states.variances[each, chosen])
        x = states.centre[each, chosen] + np.einsum("nij,nj->ni", states.axes[each, chosen], along)
        return x, self.class_of[chosen]

    def posterior(self, instances: Indices, x: Floats) -> Floats:
        """Compute P(class | x) at each instance, (n, classes): equation 5 of the paper.

        Parameters
        ----------
        instances
            Numbers of the instances, 0-based, (n,).
        x
            Attributes, (n, d).
        """
        states = self.at(instances)
        along = np.einsum("nkij,nki->nkj", states.axes, x[:, None, :] - states.centre)
        with np.errstate(divide="ignore"):
            density = np.log(states.weight) - 0.5 * (
                np.log(states.variances) + along**2 / states.variances
            ).sum(axis=2)
        density = np.exp(density - density.max(axis=1, keepdims=True))
        found = np.zeros((len(x), len(self.labels)))
        for index, label in enumerate(self.class_of):
            found[:, label] += density[:, index]
        return found / found.sum(axis=1, keepdims=True)


def _stretched(each: Distribution, lap: int, old: int) -> Distribution:
    for phase in each.phases:
        if phase.duration * lap % old:
            raise ValueError(f"a phase of {phase.duration} of {old} instances does not divide {lap} evenly")
    return replace(each, phases=tuple(replace(p, duration=p.duration * lap // old) for p in each.phases))


def _path(each: Distribution, inside: Indices) -> tuple[Floats, Floats, Floats, Floats]:
    """Compute weight (n,), centre (n, d), variances (n, d) and angle (n,), in radians, within a lap."""
    n = len(inside)
    weight, centre, scale, angle = each.weight, np.array(each.centre), 1.0, each.rotation
    found = (np.empty(n), np.empty((n, len(centre))), np.empty(n), np.empty(n))
    begin = 0
    for phase in each.phases:
        moved = np.array(phase.move) if phase.move else np.zeros(len(centre))
        to = weight if phase.weight is None else phase.weight
        if phase.duration:
            here = (inside >= begin) & (inside < begin + phase.duration)
            share = (inside[here] - begin) / phase.duration
            found[0][here] = weight + share * (to - weight)
            found[1][here] = _circled(centre, phase.circle * share) + share[:, None] * moved
            found[2][here] = scale * (1.0 + share * (phase.scale - 1.0))
            found[3][here] = angle + share * phase.turn
            begin += phase.duration
        weight, scale, angle = to, scale * phase.scale, angle + phase.turn
        centre = _circled(centre, np.array([phase.circle]))[0] + moved
    return found[0], found[1], found[2][:, None] * np.array(each.variances), np.radians(found[3])


def _circled(centre: Floats, degrees: Floats) -> Floats:
    """Rotate a centre around the origin by each angle, (n, d)."""
    if not degrees.any():
        return np.broadcast_to(centre, (len(degrees), len(centre)))
    turned = np.radians(degrees)
    (x, y), cos, sin = centre, np.cos(turned), np.sin(turned)
    return np.stack([x * cos - y * sin, x * sin + y * cos], axis=1)


def _axes(angle: Floats, centre: Floats) -> Floats:
    """Compute matrices whose columns are the principal axes, (n, k, d, d)."""
    n, k, d = centre.shape
    if d != 2:
        return np.broadcast_to(np.eye(d), (n, k, d, d))
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([cos, -sin], axis=-1), np.stack([sin, cos], axis=-1)], axis=-2)


# Instances drawn from a drifting mixture, with the predictions of its optimal classifier.


BLOCK = 500
"""Number of instances drawn at a time, so that a stream does not depend on its requested length."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Consecutive instances of a stream."""

    first: int
    """Number of the first instance, 0-based."""
    x: Floats
    """Attributes, (n, d)."""
    true_class: Indices
    """Classes by index in the mixture's `labels`, (n,)."""
    posterior: Floats
    """P(class | x) at that time, (n, classes)."""

    @property
    def optimal_class(self) -> Indices:
        """Predictions of the optimal (Bayes) classifier, (n,)."""
        return self.posterior.argmax(axis=1)

    @property
    def optimal_risk(self) -> Floats:
        """Probability that the optimal classifier is wrong, given x; (n,). Its mean is the optimal error."""
        return 1.0 - self.posterior.max(axis=1)

    @property
    def instances(self) -> Indices:
        """Numbers of the instances, (n,)."""
        return np.arange(self.first, self.first + len(self.x))


def blocks(mixture: Mixture, seed: int) -> Iterator[Drawn]:
    """Yield an endless stream, `BLOCK` instances at a time; equal seeds give equal streams."""
    rng = np.random.default_rng(seed)
    for first in itertools.count(0, BLOCK):
        instances = np.arange(first, first + BLOCK)
        x, true_class = mixture.draw(instances, rng)
        yield Drawn(first, x, true_class, mixture.posterior(instances, x))


def draw(mixture: Mixture, outcomes: int, seed: int) -> Drawn:
    """Draw the first instances of a stream.

    Raises
    ------
    ValueError
        If `outcomes` is below 1.
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
