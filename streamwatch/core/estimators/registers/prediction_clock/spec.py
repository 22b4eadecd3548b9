"""Parameters of detectors in prediction order, and the specification of their table."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.core.estimators.detectors.page_hinkley import PageHinkleySpec
from streamwatch.core.specs import DAY_MS, DetectorSpec, LandmarkSpec, ModelDetectors, MonitorsSpec


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
