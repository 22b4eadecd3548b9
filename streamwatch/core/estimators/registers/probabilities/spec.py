"""Parameters of the measures of probabilities, and the mechanisms under which they forget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamwatch.core.specs import (
    AdwinSpec,
    Dependence,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    SlidingSpec,
)


@dataclass(frozen=True, slots=True)
class ProbabilitiesSpec:
    """Parameters of the measures of class scores.

    Mechanisms are given as plain numbers, so that a state's parameters can be read without the classes of
    mechanisms.
    """

    landmark: bool = True
    """Whether to keep sums without forgetting."""
    alphas: tuple[float, ...] = (0.999,)
    """Fading factors."""
    sizes: tuple[int, ...] = (1_000,)
    """Sizes of the sliding windows, in outcomes."""
    windows: tuple[tuple[float, int, int, Dependence], ...] = ((0.05, 5, 32, "followed"),)
    """(delta, min_subwindow, clock, dependence) of each ADWIN window."""
    auc_outcomes: int = 1_000
    """Number of scored outcomes in the window of the area under the ROC curve; 0 for no area."""
    max_auc_classes: int = 16
    """Number of classes, in the order in which a model showed them, with an area and a threshold curve."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Values of the `forgetting` label: landmark, fading, sliding, ADWIN."""
        return (
            *((LandmarkSpec().name,) if self.landmark else ()),
            *(FadingSpec(alpha).name for alpha in self.alphas),
            *(SlidingSpec(size).name for size in self.sizes),
            *(AdwinSpec(*window).name for window in self.windows),
        )


def probabilities_under(
    forgetting: Sequence[ForgettingSpec], auc_outcomes: int = 1_000, max_auc_classes: int = 16
) -> ProbabilitiesSpec:
    """Specify measures of probabilities under these mechanisms."""
    return ProbabilitiesSpec(
        landmark=any(isinstance(f, LandmarkSpec) for f in forgetting),
        alphas=tuple(f.alpha for f in forgetting if isinstance(f, FadingSpec)),
        sizes=tuple(f.size for f in forgetting if isinstance(f, SlidingSpec)),
        windows=tuple(
            (f.delta, f.min_subwindow, f.clock, f.dependence) for f in forgetting if isinstance(f, AdwinSpec)
        ),
        auc_outcomes=auc_outcomes,
        max_auc_classes=max_auc_classes,
    )
