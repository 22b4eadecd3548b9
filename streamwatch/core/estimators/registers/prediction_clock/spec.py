"""What is chosen of detectors in the order of predictions, and the table of their states."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.core.estimators.detectors.page_hinkley import PageHinkleySpec
from streamwatch.core.specs import DAY_MS, DetectorSpec, LandmarkSpec, ModelDetectors, MonitorsSpec


@dataclass(frozen=True, slots=True)
class PredictionClockSpec:
    """Detectors that see outcomes in the order of their predictions.

    Attributes
    ----------
    horizon_ms
        The longest that a label may take (`JoinSpec.horizon_ms`).
    detectors
        At least one; names differ from those of `MonitorsSpec.detectors`.
    detectors_by_model
        Other parameters of these for some models; the first whose pattern matches holds.
    max_unsettled
        Outcomes of a model held back at most.
    """

    horizon_ms: int = 14 * DAY_MS
    detectors: tuple[DetectorSpec, ...] = (PageHinkleySpec(),)
    detectors_by_model: tuple[ModelDetectors, ...] = ()
    max_unsettled: int = 100_000


def table_spec(spec: PredictionClockSpec, capacity: int) -> MonitorsSpec:
    """Specify the table of detectors, a row for each model: classes 0 and 1, of which 0 is the truth."""
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
