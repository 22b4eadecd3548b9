"""Agreement totals: the sums per model from which every measure is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


def _not_kept() -> Floats:
    """Return an empty array, which `Totals` replaces by NaNs, for optional sums that are not given."""
    return np.empty(0)


@dataclass(frozen=True, slots=True)
class Totals:
    """Agreement totals of m models under one forgetting mechanism, in units of outcomes, all float64.

    All fields have shape (m,), except `true_class`, `predicted_class` and `agreed`, which have shape (m, K)
    and are zero where a model has fewer classes. `repeats` counts outcomes whose label equals the previous
    one, `pairs` those that have a previous label: all but the model's first. `n_eff` is (Σw)²/Σw².

    The sums from `lost_twice` on are optional. Without them they are NaN, and so is every measure that needs
    them.
    """

    n: Floats
    hits: Floats
    repeats: Floats
    pairs: Floats
    n_eff: Floats
    true_class: Floats
    predicted_class: Floats
    agreed: Floats
    lost_twice: Floats = field(default_factory=_not_kept)
    """Pairs in which this outcome and the previous one were both wrong, Σ x_t·x_{t-1}."""
    label_at_prediction_repeats: Floats = field(default_factory=_not_kept)
    """Outcomes whose label equals the last one known when the prediction was made."""
    label_at_prediction_pairs: Floats = field(default_factory=_not_kept)
    """Outcomes for which a label was known when the prediction was made."""
    corrected: Floats = field(default_factory=_not_kept)
    """Hits of Temporal Correction."""
    scored: Floats = field(default_factory=_not_kept)
    """Outcomes that carried class scores, which Temporal Correction needs."""
    augmented: Floats = field(default_factory=_not_kept)
    """Hits of the Temporally Augmented classifier."""
    augmented_n: Floats = field(default_factory=_not_kept)
    """Outcomes that the Temporally Augmented classifier predicted."""
    transition: Floats = field(default_factory=_not_kept)
    """Hits of the most frequent successor of the previous label."""
    transition_n: Floats = field(default_factory=_not_kept)
    """Outcomes for which the most frequent successor was predicted."""
    majority: Floats = field(default_factory=_not_kept)
    """Hits of the prequential majority: the class that had occurred most often before the outcome."""
    majority_n: Floats = field(default_factory=_not_kept)
    """Outcomes that the prequential majority predicted."""
    known: dict[Callable[[Totals], Any], Any] = field(
        default_factory=dict[Callable[["Totals"], Any], Any], init=False, repr=False, compare=False
    )
    """Results of functions of these totals that are computed `once`."""

    def __post_init__(self) -> None:
        """Replace optional sums that were not given by NaN, one per model."""
        absent: Floats | None = None
        for name in OPTIONAL_SUMS:
            if getattr(self, name).shape != self.n.shape:
                absent = np.full(self.n.shape, np.nan) if absent is None else absent
                object.__setattr__(self, name, absent)


OPTIONAL_SUMS = tuple(f.name for f in fields(Totals) if f.init)[8:]
"""Names of the optional sums of `Totals`."""

Result = TypeVar("Result", Floats, Flags)


def once(function: Callable[[Totals], Result]) -> Callable[[Totals], Result]:
    """Decorate a function of totals: the result for a `Totals` object is computed once and kept, read-only.

    A report asks for some thirty measures of the same totals, most of which need accuracy, shares or chance.
    """

    @wraps(function)
    def kept(totals: Totals) -> Result:
        found = totals.known.get(function)
        if found is None:
            found = totals.known[function] = function(totals)
            found.flags.writeable = False
        return found

    return kept
