"""Segments: every chosen measure of a model, for each value of a field of its predictions.

A segment value's estimates are those of a model that made only these predictions: no change then is the
previous label of the same value. At most `max_values` values of a segment have estimates of their own; each
outcome of a model counts in exactly one, that of its value or that of all others together (`__other__`). So
sums over values are the model's, apart from outcomes whose prediction did not have the field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamwatch.core.estimators.measures.catalogue import MEASURES
from streamwatch.core.estimators.registers.kind import RegisterKind
from streamwatch.core.metrics import Metric
from streamwatch.core.specs import FadingSpec, LandmarkSpec, MonitorsSpec

if TYPE_CHECKING:
    from streamwatch.core.estimators.registers.segments.register import Segments

_LABELS: Final = ("model", "segment", "value")
MEASURED: Final = ("accuracy_ratio", "kappa_persistent")
"""Measures that are exported unless settings choose others."""
_FAST: Final = 0.99
"""Fading factor of the error *of late*, by which a change is located."""


@dataclass(frozen=True, slots=True)
class SegmentsSpec:
    """Parameters of estimates by segment."""

    alpha: float = 0.999
    """Fading factor in (0, 1), an outcome of the value being a step."""
    max_values: int = 50
    """Values of a segment of one model with estimates of their own."""
    measures: tuple[str, ...] = MEASURED
    """Names of measures of the catalogue."""
    max_classes: int = 1_000
    """As in `MonitorsSpec`."""
    max_total: int = 20_000
    """Values of all segments of all models with estimates of their own, `__other__` of each segment among
    them."""


def table_spec(spec: SegmentsSpec) -> MonitorsSpec:
    """Specify the table of values' estimates, a row each, which all models share.

    It forgets nothing, by `spec.alpha`, and fast, in this order.
    """
    # As many mechanisms whatever the settings, so that the same compiled code serves them.
    return MonitorsSpec(
        (LandmarkSpec(), FadingSpec(spec.alpha), FadingSpec(_FAST)),
        (),
        (),
        max_models=spec.max_total,
        max_classes=spec.max_classes,
        per_class="",
        shadow_max_classes=0,
        opponents=(),
    )


def _build(spec: SegmentsSpec, capacity: int) -> Segments:
    """Build an empty register; what is compiled is loaded here."""
    from streamwatch.core.estimators.registers.segments.register import Segments  # noqa: PLC0415

    return Segments(spec, capacity)


METRICS: Final = (
    Metric(
        "segment_outcomes_total",
        "counter",
        "Outcomes of a value of a segment; __other__ combines values without estimates of their own",
        _LABELS,
    ),
    Metric(
        "segment_outcomes_left_out_total",
        "counter",
        "Outcomes that count for no value of a segment, because monitors.segments.max_total was reached",
        ("model", "segment"),
    ),
    Metric(
        "segment_extra_errors_ratio",
        "gauge",
        "Share of the model's recent extra errors that fall on this value, relative to its past error",
        _LABELS,
    ),
    *(
        Metric(f"segment_{m.name}", "gauge", f"{m.help}, in a segment's value ({m.formula})", _LABELS)
        for m in MEASURES
    ),
)

SEGMENTS: Final = RegisterKind("segments", SegmentsSpec, METRICS, _build)
