"""List of the models of a fleet that are worse than an opponent, of which few are listed falsely.

With 1,000 models, some verdicts are false however rarely one is. So beside its verdict each pair of a model
and an opponent has an e-value: a number whose expectation is at most 1, at any time fixed in advance, while
the model has never been worse (Shafer 2021, Vovk and Wang 2021). It is the mean over λ of

    L_λ ← ((1 − η)·L_λ + η)·Π,    η = n/N

at each cohort, with Π as for the verdict that the model is worse (`claims`); no claim resets it. The list has
the k largest e-values, k the largest number for which the k-th is at least K/(k·δ), with K the number of all
pairs (e-BH: Wang and Ramdas 2022).

In each list made at a time fixed in advance, taken alone, the expected share of pairs that have never been
worse is at most δ, however models depend on each other. That is not promised of all lists together, nor of a
moment that somebody chooses after seeing evidence, and a model that has recovered may be listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Listed(NamedTuple):
    """A pair of a model and an opponent with its e-value."""

    model: str
    opponent: str
    e_value: float


def worse_pairs(pairs: Iterable[Listed], number: int, delta: float) -> list[Listed]:
    """List the pairs that are worse, the largest e-value first.

    Parameters
    ----------
    pairs
        All pairs that have an e-value.
    number
        K, the number of all pairs, with those that have none yet.
    delta
        δ, the largest expected share of falsely listed pairs, in (0, 1).
    """
    ordered = sorted(pairs, key=lambda pair: (-pair.e_value, pair.model, pair.opponent))
    listed = 0
    for k, pair in enumerate(ordered, 1):
        if pair.e_value >= number / (k * delta):
            listed = k
    return ordered[:listed]
