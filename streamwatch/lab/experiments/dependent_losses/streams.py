"""Dependent losses of a known error, without and with one step of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.lab.experiments.detection.scoring import Change
from streamwatch.lab.experiments.detection.streams import CALM, SPAN, Losses, together
from streamwatch.lab.streams.sticky import StickySpec, sticky

LOW: Final = 0.2
HIGH: Final = 0.3
CHANGE: Final = Change(CALM, SPAN)
"""The step from `LOW` to `HIGH`."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Losses that depend on those before in one way."""

    name: str
    correlation: float
    """Of a loss with the one before, while the error is `LOW`."""
    drawn: Callable[[NDArray[np.float64], np.random.Generator], Losses]
    """Error of each outcome, (n,), → losses, (n,)."""


def by_class(errors: tuple[float, float], repeat: float, priors: tuple[float, float]) -> float:
    """Correlation of a loss with the one before where a classifier errs by class only.

    Labels repeat the one before with probability `repeat`, else are drawn from `priors`; given its class,
    every outcome is wrong with probability `errors`, independently. Then cov(l_t, l_{t−1}) = repeat · π_A ·
    π_B · (e_A − e_B)², over p(1 − p) with p = π_A·e_A + π_B·e_B: it is 0 under the first two conditions of
    Proposition 8 of Žliobaitė et al. 2015 (repeat = 0, or equal errors). NaN where p is 0 or 1.
    """
    p = priors[0] * errors[0] + priors[1] * errors[1]
    if not 0.0 < p < 1.0:
        return float("nan")
    return repeat * priors[0] * priors[1] * (errors[0] - errors[1]) ** 2 / (p * (1.0 - p))


def losses_by_class(
    errors: NDArray[np.float64], repeat: float, priors: tuple[float, float], rng: np.random.Generator
) -> Losses:
    """Losses of a classifier that errs by class only; errors (n, 2) by outcome and class."""
    labels = sticky(StickySpec(repeat=repeat, priors=priors), rng, len(errors)).true_class
    return rng.random(len(errors)) < errors[np.arange(len(errors)), labels]


_REPEAT: Final = 0.95
_PRIORS: Final = (0.6, 0.4)
_APART: Final = 0.375
"""Difference of the errors of the two classes."""


def _of_classes(error: NDArray[np.float64], rng: np.random.Generator) -> Losses:
    first = error - _PRIORS[1] * _APART
    return losses_by_class(np.stack([first, first + _APART], axis=1), _REPEAT, _PRIORS, rng)


def _of_chain(rho: float) -> Callable[[NDArray[np.float64], np.random.Generator], Losses]:
    def drawn(error: NDArray[np.float64], rng: np.random.Generator) -> Losses:
        return together("", error, rho, ()).draw(rng)

    return drawn


_FIRST: Final = LOW - _PRIORS[1] * _APART
KINDS: Final = (
    Kind("losses repeat, ρ = .5", 0.5, _of_chain(0.5)),
    Kind("losses repeat, ρ = .8", 0.8, _of_chain(0.8)),
    Kind(
        "labels repeat, classes err unequally",
        by_class((_FIRST, _FIRST + _APART), _REPEAT, _PRIORS),
        _of_classes,
    ),
)
