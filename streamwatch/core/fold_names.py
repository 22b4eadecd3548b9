"""Names under which the folds of a model are monitored: each fold as a model of its own.

The name of fold f of model m is m, a control character that no valid name contains, and f in decimal. Join,
estimators, journal and store know nothing else of folds. Reports join the folds of a model; users never see
these names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SEPARATOR: Final = "\x1f"


def fold_name(model: str, fold: int) -> str:
    """Name of a fold."""
    return f"{model}{SEPARATOR}{fold}"


def model_of(name: str) -> str:
    """Model of a fold; any other name is its own model."""
    return name.partition(SEPARATOR)[0]


def fold_of(name: str) -> int | None:
    """Number of a fold; None of any other name."""
    fold = name.partition(SEPARATOR)[2]
    return int(fold) if fold else None


def shown_name(name: str) -> str:
    """Name as a person may read it."""
    fold = fold_of(name)
    return name if fold is None else f"{model_of(name)} (fold {fold})"


def folds_by_model(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of the folds of each model that has any, by number."""
    found: dict[str, list[str]] = {}
    for name in names:
        if SEPARATOR in name:
            found.setdefault(model_of(name), []).append(name)
    return {model: sorted(folds, key=_number) for model, folds in found.items()}


def _number(name: str) -> int:
    return fold_of(name) or 0
