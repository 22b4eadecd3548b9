"""Label delays: share of predictions labelled by age, with predictions still waiting as censored.

The distribution of the delays of labels alone would be too favourable, as it lacks predictions without a
label. Here every accepted prediction counts from its arrival on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamwatch.core.predictions.kind import PredictionRegisterKind

if TYPE_CHECKING:
    from streamwatch.core.predictions.label_delays.register import LabelDelays


@dataclass(frozen=True, slots=True)
class LabelDelaysSpec:
    """Parameters of label delays."""

    horizon_ms: int = 14 * 86_400_000
    """Longest time that a label may take."""
    max_classes: int = 8
    """Number of predicted classes of a model with curves of their own, the first to occur.

    Others share one.
    """


def _build(spec: LabelDelaysSpec) -> LabelDelays:
    from streamwatch.core.predictions.label_delays.register import LabelDelays  # noqa: PLC0415

    return LabelDelays(spec)


LABEL_DELAYS: Final = PredictionRegisterKind("label_delays", LabelDelaysSpec, _build)
"""Share of predictions labelled by age, for each model, outcome kind and predicted class."""
