"""Label delays: the share of predictions labelled by every age, those that still wait being censored.

A delay distribution of labels alone flatters: what has no label yet is not in it. Here every prediction that
the join accepts counts from the moment it comes.
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
    """The longest that a label may take."""
    max_classes: int = 8
    """Predicted classes of a model with a curve of their own, the first to come; others have one together."""


def _build(spec: LabelDelaysSpec) -> LabelDelays:
    from streamwatch.core.predictions.label_delays.register import LabelDelays  # noqa: PLC0415

    return LabelDelays(spec)


LABEL_DELAYS: Final = PredictionRegisterKind("label_delays", LabelDelaysSpec, _build)
"""Share of predictions labelled by age, of each model, outcome kind and predicted class."""
