"""Labels that repeat, and attributes that tell something of them: temporal dependence, known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamwatch.lab.streams.gaussians import Floats, Indices


@dataclass(frozen=True, slots=True)
class StickySpec:
    """Two classes with one Gaussian attribute of variance 1."""

    repeat: float = 0.8
    """Probability in [0, 1) with which a label repeats the one before outright; else it is drawn anew."""
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
    """A stream with the probabilities by which it was drawn."""

    x: Floats
    """(n, 1)."""
    true_class: Indices
    """(n,)."""
    posterior: Floats
    """P(y | x), (n, 2)."""
    informed: Floats
    """P(y | x, label before), (n, 2)."""


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
