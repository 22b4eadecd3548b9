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

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from streamwatch.core.records.events import Name

SHARE: Final = 0.05
"""Default of δ."""
RULE: Final = (
    "of the pairs listed, this share at most is expected to have never been worse, in a list made at a time "
    "fixed in advance; not promised of all lists together, nor of a moment chosen after seeing evidence"
)
"""Guarantee of a list, and its limits."""
RIVALS: Final = {"persistent_at_prediction": "no change", "majority": "the majority"}
"""Opponents in words."""
Verdict: TypeAlias = Literal["better", "worse", "open"]
VERDICT_WORDS: Final[Mapping[int, Verdict]] = {1: "better", -1: "worse", 0: "open"}


class HasEvidence(Protocol):
    """A pair of a model and an opponent with its e-value."""

    @property
    def model(self) -> str:
        """Name of the model."""
        ...

    @property
    def opponent(self) -> str:
        """Name of the opponent, a key of `RIVALS`."""
        ...

    @property
    def e_value(self) -> float:
        """Evidence that the model has been worse."""
        ...


class Listed(NamedTuple):
    """A pair of a model and an opponent with its e-value."""

    model: str
    opponent: str
    e_value: float


class WorsePair(msgspec.Struct, frozen=True):
    """A pair of a list with its verdict by cohorts at that time."""

    model: Name
    opponent: Name
    e_value: float
    verdict: Verdict
    """Verdict at that time; not always worse, as the list looks at evidence that no claim resets."""
    since_ms: int | None = None
    """Prediction time since which the verdict is worse; None for another verdict."""
    earliest_ms: int | None = None
    """Start of the 80 % interval of `since_ms`; None if there is none, or before the first judged cohort."""
    latest_ms: int | None = None
    """End of the interval."""


class WorseList(NamedTuple):
    """List of the models that are worse."""

    number: int
    """K, the number of all pairs."""
    pairs: tuple[WorsePair, ...]
    """Pairs listed, the largest e-value first."""


_Pair = TypeVar("_Pair", bound=HasEvidence)


def worse_pairs(pairs: Iterable[_Pair], number: int, delta: float) -> list[_Pair]:
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
