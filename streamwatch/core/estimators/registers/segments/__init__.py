"""Segments: chosen measures of a model for each value of a field of its predictions.

A segment value is evaluated like a model that made only these predictions, except that No Change uses the
previous label of the model's whole stream, whatever value that outcome had. At most `max_values` values of a
segment have estimates of their own. Each outcome of a model counts for exactly one of these, or for all other
values together (`__other__`). So the outcomes of all values add up to those of the model, apart from outcomes
whose prediction did not have the field, those left out at `max_total`, and those of values that were replaced
by more frequent ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.measures.catalogue import MEASURES
from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.core.estimators.registers.kind import RegisterKind
from streamwatch.core.metrics.metric import counter, gauge
from streamwatch.core.records.events import Name
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
    """Names of the segments that mappings define; others count no more, and are not restored. None: any."""


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
    counter(
        "segment_outcomes_total",
        "Outcomes of a value of a segment; __other__ combines values without estimates of their own",
        *_LABELS,
    ),
    counter(
        "segment_outcomes_left_out_total",
        "Outcomes that count for no value of a segment, because monitors.segments.max_total was reached",
        "model",
        "segment",
    ),
    gauge(
        "segment_extra_errors_ratio",
        "Share of the model's recent extra errors that fall on this value, relative to its past error",
        *_LABELS,
    ),
    *(
        gauge(f"segment_{m.name}", f"{m.help}, in a segment's value ({m.formula})", *_LABELS)
        for m in AVAILABLE
    ),
)

SEGMENTS: Final = RegisterKind("segments", SegmentsSpec, METRICS, _build)


# Estimates of all values of a segment, as arrays.


class SegmentEstimates(NamedTuple):
    """Estimates of a segment's values; arrays of shape (n,)."""

    values: Sequence[str]
    outcomes: NDArray[np.int64]
    weights: NDArray[np.float64]
    before: NDArray[np.float64]
    now: NDArray[np.float64]
    shares: NDArray[np.float64]
    measured: Mapping[str, NDArray[np.float64]]

    def document(self, k: int) -> dict[str, object]:
        """Build the JSON object of one value for the API; undefined values are absent."""
        numbers = {name: float(values[k]) for name, values in self.measured.items()}
        numbers |= {
            "traffic_ratio": float(self.weights[k] / self.weights.sum()),
            "error_before_ratio": float(self.before[k]),
            "error_now_ratio": float(self.now[k]),
            "extra_errors_ratio": float(self.shares[k]),
        }
        return {
            "value": self.values[k],
            "outcomes": int(self.outcomes[k]),
            **{name: number for name, number in numbers.items() if math.isfinite(number)},
        }


def with_previous_of_stream(totals: Totals) -> Totals:
    """Replace the previous label of the same value by that of the model's stream.

    Outcomes of segments carry the latter in place of the label known at prediction, whose sums are NaN in
    the result. The autocorrelation of the loss stays that of the value's own successive outcomes:
    `lost_twice` is scaled to the new weight of pairs, which differs by the first outcome at most.
    """
    absent = np.full(totals.n.shape, np.nan)
    pairs = totals.label_at_prediction_pairs
    scale = np.divide(pairs, totals.pairs, out=absent.copy(), where=totals.pairs > 0)
    return replace(
        totals,
        repeats=totals.label_at_prediction_repeats,
        pairs=pairs,
        lost_twice=totals.lost_twice * scale,
        label_at_prediction_repeats=absent,
        label_at_prediction_pairs=absent,
    )


# Attribution of a changed error to the values of a segment: share of each in the additional errors.


EXPLAINS: Final = 0.5
"""Share of the additional errors from which a value is named."""
_BEYOND_TRAFFIC: Final = 1.5
"""Least ratio of that share to the share of traffic; it is about 1 if all values changed alike."""
_MIN_OUTCOMES: Final = 30
"""Number of outcomes of a value below which its error counts as unchanged."""


class SegmentChange(msgspec.Struct, frozen=True):
    """Segment value with most of a model's additional errors."""

    segment: Name
    value: Name
    share: float
    """Share in the model's additional errors, in (0, 1]."""
    traffic: float
    """Share in the model's recent outcomes, in (0, 1]."""
    before: float
    """Error of the value over its whole past."""
    now: float
    """Recent error of the value."""


def extra_errors(
    weights: NDArray[np.float64],
    outcomes: NDArray[np.int64],
    before: NDArray[np.float64],
    now: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Compute each value's share of the additional errors of a segment, shape (n,).

    Parameters
    ----------
    weights
        Faded outcomes of each value, with one step per outcome of the segment.
    outcomes
        Number of all outcomes of each value; with fewer than 30 its error counts as unchanged.
    before, now
        Errors of each value without forgetting, and recently.

    Returns
    -------
    numpy.ndarray
        w·(now − before), where positive, as a share of the sum of these; NaN if no error rose.
    """
    extra = weights * np.maximum(now - before, 0.0)
    extra = np.where((outcomes >= _MIN_OUTCOMES) & np.isfinite(extra), extra, 0.0)
    total = float(extra.sum())
    return extra / total if total > 0 else np.full(len(extra), np.nan)


def named_change(
    segment: str,
    values: Sequence[str],
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    before: NDArray[np.float64],
    now: NDArray[np.float64],
) -> SegmentChange | None:
    """Name the value with the largest share of additional errors.

    None if no share is defined, or it does not exceed what the value's traffic explains.
    """
    if not len(shares) or np.isnan(shares).all():
        return None
    k = int(np.argmax(shares))
    traffic = float(weights[k] / weights.sum())
    share = float(shares[k])
    if share < EXPLAINS or share < _BEYOND_TRAFFIC * traffic:
        return None
    return SegmentChange(segment, values[k], share, traffic, float(before[k]), float(now[k]))
