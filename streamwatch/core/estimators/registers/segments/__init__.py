"""Segments: chosen measures of a model for each value of a field of its predictions.

A segment value is evaluated like a model that made only these predictions, except that No Change uses the
previous label of the model's whole stream, whatever value that outcome had. At most `max_values` values of a
segment have estimates of their own. Each outcome of a model counts for exactly one of these, or for all other
values together (`__other__`). So the outcomes of all values add up to those of the model, apart from outcomes
whose prediction did not have the field, those left out at `max_total`, and those of values that were replaced
by more frequent ones.
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
_OF_SHADOWS: Final = "kappa_majority_prequential"
"""Measure that needs a shadow classifier, which values do not have."""
AVAILABLE: Final = tuple(measure for measure in MEASURES if measure.name != _OF_SHADOWS)
"""Measures that can be exported."""
MEASURED: Final = ("accuracy_ratio", "kappa_persistent")
"""Measures that are exported by default."""
_FAST: Final = 0.99
"""Fading factor of the *recent* error, by which a change is located."""


@dataclass(frozen=True, slots=True)
class SegmentsSpec:
    """Parameters of estimates by segment."""

    alpha: float = 0.999
    """Fading factor in (0, 1), per outcome of the value."""
    max_values: int = 50
    """Largest number of values of a segment of one model with estimates of their own."""
    measures: tuple[str, ...] = MEASURED
    """Names of measures, of `AVAILABLE`."""
    max_classes: int = 1_000
    """As in `MonitorsSpec`."""
    max_total: int = 20_000
    """Most values with estimates of their own over all segments and models, each `__other__` included."""
    folds_share_stream: bool = False
    """As `JoinSpec.folds_share_stream`."""
    names: frozenset[str] | None = None
    """Names of the segments that mappings define; others are not restored and not shown. None: any."""


def table_spec(spec: SegmentsSpec) -> MonitorsSpec:
    """Specify the table of the values' estimates, one row each, which all models share.

    Its mechanisms are landmark, fading by `spec.alpha`, and fast fading, in this order.
    """
    # The number of mechanisms is always the same, so that the same compiled code serves all settings.
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
    """Build an empty register; compiled code is imported only here."""
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
        for m in AVAILABLE
    ),
)

SEGMENTS: Final = RegisterKind("segments", SegmentsSpec, METRICS, _build)
