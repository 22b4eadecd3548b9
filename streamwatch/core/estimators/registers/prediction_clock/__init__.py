"""Detectors that take outcomes in the order of their predictions (`monitors.detector_clocks`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamwatch.core.estimators.detectors.page_hinkley import PageHinkleySpec
from streamwatch.core.estimators.registers.kind import RegisterKind
from streamwatch.core.metrics.metric import counter, gauge
from streamwatch.core.specs import DAY_MS, DetectorSpec, LandmarkSpec, ModelDetectors, MonitorsSpec

if TYPE_CHECKING:
    from streamwatch.core.estimators.registers.prediction_clock.register import PredictionClock


@dataclass(frozen=True, slots=True)
class PredictionClockSpec:
    """Parameters of detectors that take outcomes in the order of their predictions.

    Attributes
    ----------
    horizon_ms
        Longest time that a label may take (`JoinSpec.horizon_ms`).
    detectors
        At least one; names differ from those of `MonitorsSpec.detectors`.
    detectors_by_model
        Other parameters of these detectors for some models; the first matching pattern applies.
    max_unsettled
        Largest number of outcomes of a model held.
    """

    horizon_ms: int = 14 * DAY_MS
    detectors: tuple[DetectorSpec, ...] = (PageHinkleySpec(),)
    detectors_by_model: tuple[ModelDetectors, ...] = ()
    max_unsettled: int = 100_000


def table_spec(spec: PredictionClockSpec, capacity: int) -> MonitorsSpec:
    """Specify the table of detectors, one row per model.

    Class 0 is the true class, 0 or 1 the predicted one.
    """
    return MonitorsSpec(
        (LandmarkSpec(),),
        spec.detectors,
        (),
        max_models=capacity,
        max_classes=2,
        per_class="",
        shadow_max_classes=0,
        opponents=(),
        detectors_by_model=spec.detectors_by_model,
    )


def _build(spec: PredictionClockSpec, capacity: int) -> PredictionClock:
    """Build an empty register; compiled code is imported only here."""
    from streamwatch.core.estimators.registers.prediction_clock.register import (  # noqa: PLC0415
        PredictionClock,
    )

    return PredictionClock(spec, capacity)


SETTLED_UNTIL: Final = "prediction_clock_settled_until_timestamp_seconds"
METRICS: Final = (
    gauge(
        "prediction_clock_waiting_outcomes",
        "Outcomes held back from detectors in prediction order until all earlier predictions are settled",
        "model",
    ),
    gauge(
        SETTLED_UNTIL,
        "Time of the newest prediction whose outcome has reached detectors in prediction order",
        "model",
    ),
    counter(
        "prediction_clock_outcomes_total", "Outcomes that detectors in prediction order have seen", "model"
    ),
    counter(
        "prediction_clock_disordered_total",
        "Outcomes that detectors in prediction order saw after newer ones (late), or too early "
        "because more than monitors.max_unsettled were held back (overflowed)",
        "model",
        "reason",
    ),
)

PREDICTION_CLOCK: Final = RegisterKind("prediction_clock", PredictionClockSpec, METRICS, _build)
