"""Roles of folds in k-fold distributed prequential validation (Bifet et al. 2015, §3).

Trainers and the monitor agree without communication on which fold tests and which trains on an event: the
role is a function of the event's id, the fold and the scheme alone. With

    h = BLAKE2b, 8-byte digest of  utf8(scheme) 0x00 utf8(id) 0x00 utf8(fold),  read as little-endian integer

where 0x00 is one zero byte, the fold is decimal ASCII, and is empty (the bytes end with 0x00) under
cross-validation and split-validation:

    cross-validation    fold f tests if f = h mod k, else trains
    split-validation    fold f trains if f = h mod k, else tests
    bootstrap           fold f trains with weight #{j : CDF_j ≤ u}, u = (h >> 11)·2⁻⁵³, CDF of Poisson(1);
                        tests if the weight is 0

Under the prequential form, the default, every fold tests every event first, then trains as the table says.
`docs/folds/test-vectors.json` has roles to check other implementations against. The module imports the
standard library only, so that trainers can copy it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple, TypeAlias, get_args

Validation: TypeAlias = Literal["cross-validation", "split-validation", "bootstrap"]

_POISSON = (
    3313563428353948,
    6627126856707896,
    8283908570884870,
    8836169142277195,
    8974234285125276,
    9001847313694892,
    9006449485123162,
    9007106938184343,
    9007189119816991,
    9007198251109507,
    9007199164238759,
    9007199247250509,
    9007199254168155,
    9007199254700281,
    9007199254738290,
    9007199254740824,
    9007199254740983,
)
"""⌈CDF_j·2⁵³⌉ of Poisson(1), j = 0 … 16: CDF_j ≤ u if and only if h >> 11 is at least this. Later CDF_j are
larger than every u."""


class Role(NamedTuple):
    """Role of a fold on an event: whether it tests, and with which weight it trains afterwards."""

    tests: bool
    weight: int
    """Number of times the fold trains on the event."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """Scheme that decides which folds test and which train on an event.

    Raises
    ------
    ValueError
        If `validation` is not one of the three or `folds` is below 2 (for bootstrap, below 1).
    """

    validation: Validation = "bootstrap"
    folds: int = 10
    """k ≥ 2; folds are 0 … k − 1. Under bootstrap k affects no role and may be 1."""
    prequential: bool = True

    def __post_init__(self) -> None:
        if self.validation not in get_args(Validation):
            allowed = ", ".join(get_args(Validation))
            raise ValueError(f"validation must be one of {allowed}, got {self.validation!r}")
        least = 1 if self.validation == "bootstrap" else 2
        if self.folds < least:
            raise ValueError(f"folds must be at least {least} under {self.validation}, got {self.folds!r}")


def roles(event_id: str, fold: int, scheme: Scheme) -> Role:
    """Return the role of a fold on the event with this id.

    Raises
    ------
    ValueError
        If the fold is not in 0 … k − 1; UnicodeEncodeError (a ValueError) if the id is not valid Unicode.
    """
    if not 0 <= fold < scheme.folds:
        raise ValueError(f"fold must be in 0 … {scheme.folds - 1}, got {fold!r}")
    if scheme.validation == "bootstrap":
        weight = bisect_right(_POISSON, _hash(scheme.validation, event_id, str(fold)) >> 11)
        return Role(scheme.prequential or weight == 0, weight)
    chosen = _hash(scheme.validation, event_id, "") % scheme.folds == fold
    trains = chosen if scheme.validation == "split-validation" else not chosen
    return Role(scheme.prequential or not trains, int(trains))


def _hash(validation: str, event_id: str, fold: str) -> int:
    text = f"{validation}\0{event_id}\0{fold}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")
