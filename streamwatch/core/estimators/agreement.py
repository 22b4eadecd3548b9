"""Agreement totals: the one vector per model that every measure is a function of."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


def _not_kept() -> Floats:
    """Stands for sums a caller does not keep, until the number of models is known."""
    return np.empty(0)


@dataclass(frozen=True, slots=True)
class Totals:
    """Agreement totals of m models under one forgetting mechanism, in units of outcomes, all float64.

    All fields have shape (m,), but `true_class`, `predicted_class` and `agreed` (m, K), zero where a model
    has fewer classes. `repeats` counts labels equal to the previous one; `pairs` is its own weight, without
    the model's first outcome, which has no previous label. `n_eff` is (Σw)²/Σw².

    The sums from `lost_twice` on may be left out; they are NaN then, and so is what is computed from them.
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
    """Pairs in which this outcome and the one before were both wrong, Σ x_t·x_{t-1}."""
    label_at_prediction_repeats: Floats = field(default_factory=_not_kept)
    """Labels equal to the last one that was known when the prediction was made."""
    label_at_prediction_pairs: Floats = field(default_factory=_not_kept)
    """Outcomes for which there was such a label."""
    corrected: Floats = field(default_factory=_not_kept)
    """Hits of Temporal Correction."""
    scored: Floats = field(default_factory=_not_kept)
    """Outcomes that carried the class scores it needs."""
    augmented: Floats = field(default_factory=_not_kept)
    """Hits of the Temporally Augmented classifier."""
    augmented_n: Floats = field(default_factory=_not_kept)
    """Outcomes it predicted."""
    transition: Floats = field(default_factory=_not_kept)
    """Hits of the most frequent successor of the previous label."""
    transition_n: Floats = field(default_factory=_not_kept)
    """Outcomes it predicted."""
    majority: Floats = field(default_factory=_not_kept)
    """Hits of the class that had come most often so far (the prequential majority)."""
    majority_n: Floats = field(default_factory=_not_kept)
    """Outcomes it predicted."""

    def __post_init__(self) -> None:
        """Give sums that are not kept a NaN per model."""
        absent: Floats | None = None
        for name in OPTIONAL_SUMS:
            if getattr(self, name).shape != self.n.shape:
                absent = np.full(self.n.shape, np.nan) if absent is None else absent
                object.__setattr__(self, name, absent)


OPTIONAL_SUMS = tuple(f.name for f in fields(Totals))[8:]
"""Sums that `Totals` may be without."""
