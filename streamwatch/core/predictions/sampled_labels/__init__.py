"""Estimates from labels that are asked for with a known probability (`mapping.label_probability`).

The label of a prediction is asked for with a probability π that is fixed before the outcome is known. Unless
π is the same for all, outcomes are no fair sample of the predictions. Here every label is weighted by 1/π, so
that accuracy and leads are estimated for all predictions with a π.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamwatch.core.predictions.kind import PredictionRegisterKind

if TYPE_CHECKING:
    from streamwatch.core.predictions.sampled_labels.register import SampledLabels

SAMPLED_LABELS_BYTES: Final = 100_000
"""Largest number of bytes of one model without the names of its classes; snapshots are no larger."""


@dataclass(frozen=True, slots=True)
class SampledLabelsSpec:
    """Parameters of estimates from sampled labels."""

    horizon_ms: int = 14 * 86_400_000
    """Longest time that a label may take, at least a second (`JoinSpec.horizon_ms`)."""
    delta: float = 0.05
    """Probability that an interval is wrong at some look while its first labels are in use, in (0, 1)."""
    max_models: int = 1_000
    """Largest number of models, those that predict first with a probability."""


def _build(spec: SampledLabelsSpec) -> SampledLabels:
    from streamwatch.core.predictions.sampled_labels.register import SampledLabels  # noqa: PLC0415

    return SampledLabels(spec)


SAMPLED_LABELS: Final = PredictionRegisterKind("sampled_labels", SampledLabelsSpec, _build)
"""Accuracy and leads of models whose labels are asked for with a known probability."""
