"""Measures of the class scores that predictions carry: losses, calibration, areas, threshold curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamwatch.core.estimators.registers.kind import RegisterKind
from streamwatch.core.metrics.metric import DECAY, counter, gauge
from streamwatch.core.specs import (
    AdwinSpec,
    Dependence,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    SlidingSpec,
)

if TYPE_CHECKING:
    from streamwatch.core.estimators.registers.probabilities.register import Probabilities


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


def _build(spec: ProbabilitiesSpec, capacity: int) -> Probabilities:
    """Build an empty register; compiled code is imported only here."""
    from streamwatch.core.estimators.registers.probabilities.register import Probabilities  # noqa: PLC0415

    return Probabilities(spec, capacity)


_PER_FORGETTING: Final = ("forgetting", "model")
METRICS: Final = (
    counter("scored_outcomes_total", "Outcomes with usable class scores", "model"),
    gauge("log_loss", f"Mean of −ln of the true class's score ({DECAY})", *_PER_FORGETTING),
    gauge("auc_ratio", "Area under the ROC curve over the latest scored outcomes; ties count half", "model"),
    gauge(
        "calibration_error_ratio",
        "Expected calibration error of the predicted class's score, in ten bins, faded by 0.999",
        "model",
    ),
    gauge(
        "brier_score",
        f"Mean of Σ(score − 1[true class])²; for two classes, twice scikit-learn's value ({DECAY})",
        *_PER_FORGETTING,
    ),
    gauge(
        "scored_effective_sample_size",
        "Effective number of outcomes of log loss and Brier score, (Σw)²/Σw² of those with usable "
        f"scores ({DECAY})",
        *_PER_FORGETTING,
    ),
    counter(
        "scores_unusable_total",
        "Outcomes whose scores were unusable: not probabilities (invalid), or without the true class",
        "model",
        "reason",
    ),
    counter(
        "scores_unnormalized_total",
        "Outcomes with valid scores that did not sum to 1 within 0.001; scores are divided by their sum",
        "model",
    ),
)
"""Metrics, the most important first."""

PROBABILITIES: Final = RegisterKind("probabilities", ProbabilitiesSpec, METRICS, _build)
