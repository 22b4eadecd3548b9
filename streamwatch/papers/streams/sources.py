"""Streams of the literature: SEA concepts, labels with temporal dependence, waveforms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamwatch.papers.streams.gaussians import Floats, Indices

# The SEA concepts (Street, Kim 2001): abrupt drifts that differ in size.
#
# Three attributes uniform in [0, 10], of which two matter: class 1 if x1 + x2 ≤ θ. A tenth of the labels is
# wrong.


THRESHOLDS = (8.0, 9.0, 7.0, 9.5)
NOISE = 0.1


def sea(
    rng: np.random.Generator, per_concept: int = 15_000, thresholds: tuple[float, ...] = THRESHOLDS
) -> tuple[Floats, Indices]:
    """Draw attributes (n, 3) and classes (n,), with `per_concept` instances for each threshold."""
    n = per_concept * len(thresholds)
    x = 10.0 * rng.random((n, 3))
    true_class = (x[:, 0] + x[:, 1] <= np.repeat(thresholds, per_concept)) ^ (rng.random(n) < NOISE)
    return x, true_class.astype(np.int64)


def drifts(per_concept: int = 15_000, thresholds: tuple[float, ...] = THRESHOLDS) -> tuple[int, ...]:
    """Return the instances (0-based) at which each concept but the first begins."""
    return tuple(per_concept * k for k in range(1, len(thresholds)))


# Labels of known temporal dependence, and attributes that depend on them.


@dataclass(frozen=True, slots=True)
class StickySpec:
    """Parameters of a stream of two classes with one Gaussian attribute of variance 1.

    Raises
    ------
    ValueError
        If `repeat` is not in [0, 1), or priors are not positive or do not sum to 1.
    """

    repeat: float = 0.8
    """Probability in [0, 1) with which a label repeats the previous one; else it is drawn from `priors`."""
    priors: tuple[float, float] = (0.6, 0.4)
    apart: float = 1.5
    """Distance of the class centres."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.repeat < 1.0:
            raise ValueError(f"repeat must be in [0, 1), got {self.repeat}")
        if abs(sum(self.priors) - 1.0) > 1e-9 or min(self.priors) <= 0.0:
            raise ValueError(f"priors must be positive and sum to 1, got {self.priors}")


@dataclass(frozen=True, slots=True)
class StickyDrawn:
    """Stream with the probabilities of its labels."""

    x: Floats
    """Attribute, (n, 1)."""
    true_class: Indices
    """Classes, (n,)."""
    posterior: Floats
    """P(y | x), (n, 2)."""
    informed: Floats
    """P(y | x, previous label), (n, 2)."""


def sticky(spec: StickySpec, rng: np.random.Generator, outcomes: int) -> StickyDrawn:
    """Draw labels and attributes."""
    priors = np.array(spec.priors)
    fresh = (rng.random(outcomes) >= priors[0]).astype(np.int64)
    repeats = rng.random(outcomes) < spec.repeat
    repeats[0] = False
    true_class = fresh[np.maximum.accumulate(np.where(repeats, 0, np.arange(outcomes)))]
    centres = np.array([0.0, spec.apart])
    x = centres[true_class] + rng.standard_normal(outcomes)
    likelihood = np.exp(-0.5 * (x[:, None] - centres) ** 2)
    transition = spec.repeat * np.eye(2) + (1.0 - spec.repeat) * priors
    before = np.concatenate([priors[None, :], transition[true_class[:-1]]])
    return StickyDrawn(x[:, None], true_class, _shares(likelihood * priors), _shares(likelihood * before))


def _shares(weights: Floats) -> Floats:
    return weights / weights.sum(axis=1, keepdims=True)


# The waveforms of Breiman, Friedman, Olshen, Stone 1984: three classes, 21 attributes, optimal error 14 %.
#
# Class k is a mixture of two of three triangular waves with a random weight, plus noise of variance 1.


OPTIMAL_ERROR = 0.14
"""Error of the optimal classifier in the literature."""
_POSITIONS = np.arange(1, 22)
_WAVES = np.stack([np.maximum(6 - abs(_POSITIONS - centre), 0) for centre in (11, 15, 7)]).astype(np.float64)
_PAIRS = np.array([(0, 1), (0, 2), (1, 2)])
CLASSES = 3


def waveform(rng: np.random.Generator, outcomes: int) -> tuple[Floats, Indices]:
    """Draw attributes (n, 21) and classes (n,)."""
    true_class = rng.integers(CLASSES, size=outcomes)
    mix = rng.random((outcomes, 1))
    first, second = _WAVES[_PAIRS[true_class, 0]], _WAVES[_PAIRS[true_class, 1]]
    return mix * first + (1.0 - mix) * second + rng.standard_normal((outcomes, 21)), true_class


def drifting_waveform(
    rng: np.random.Generator, per_concept: int, concepts: int = 3
) -> tuple[Floats, Indices]:
    """Draw waveforms whose classes are permuted cyclically at every new concept, an abrupt drift.

    Concepts begin at multiples of `per_concept` (0-based). Returns attributes (n, 21) and classes (n,).
    """
    x, true_class = waveform(rng, per_concept * concepts)
    return x, (true_class + np.repeat(np.arange(concepts), per_concept)) % CLASSES
