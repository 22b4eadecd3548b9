"""What is kept of a model: the layout of its record, derived from the configuration.

A record holds scalars only: a header, the totals of every mechanism (column), and one array of records per
kind, of configured length (0 allowed). Parameters stand once, in one parameter row. Columns are ordered
fading | sliding | ADWIN windows | landmark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.kernel.adwin import PARAMETERS as WINDOW_PARAMETERS
from streamwatch.core.kernel.adwin import SMALL_OUTCOMES, WINDOW
from streamwatch.core.kernel.detectors import KINDS, DetectorKind
from streamwatch.core.kernel.forgetting import DEFERRED, FADING, FADING_PARAMETERS, SLIDING_PARAMETERS
from streamwatch.core.kernel.label_drift import LABEL_DRIFT, LABEL_DRIFT_PARAMETERS
from streamwatch.core.kernel.ring import MAX_CLASS, entry_type
from streamwatch.core.kernel.shadow import MAX_CLASSES as MAX_SHADOW_CLASSES
from streamwatch.core.kernel.shadow import SHADOW
from streamwatch.core.kernel.totals import SUMS
from streamwatch.core.kernel.weighting import (
    LABELS,
    NOBODY,
    OWN,
    REFERENCE,
    WEIGHTING,
    WEIGHTING_PARAMETERS,
)
from streamwatch.core.specs import (
    AdwinSpec,
    DetectorSpec,
    DriftWeightedSpec,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    MonitorsSpec,
    SlidingSpec,
)

Records: TypeAlias = NDArray[np.void]

LINE = 64
EXTRA_CLASSES = 2
"""Local class indices run to max_classes + 1: classes seen, those beyond the cap, a place to spare."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which estimators a record holds, in which order."""

    fading: tuple[FadingSpec, ...]
    sliding: tuple[SlidingSpec, ...]
    windows: tuple[AdwinSpec, ...]
    landmark: bool
    columns: int
    column_of: tuple[int, ...]
    """Column of each configured forgetting mechanism; equal ones share a column."""
    ring_size: int
    ring: np.dtype[Any]
    """Type of its entries."""
    shadow_classes: int
    """Most classes of a model that has shadow classifiers; 0 for none."""
    max_classes: int
    """Including the extra indices."""
    model: np.dtype[np.void]
    parameters: Records
    """The parameter row, shape (1,)."""


def window_of(weighting: DriftWeightedSpec) -> AdwinSpec:
    """The ADWIN window of the loss whose drifts restart a drift-weighted accuracy, unless labels do."""
    return AdwinSpec(delta=weighting.delta)


def label_drifts_of(weightings: Sequence[DriftWeightedSpec]) -> tuple[float, ...]:
    """Confidences δ of the label drifts that weightings ask for; equal ones are shared."""
    return tuple(dict.fromkeys(w.delta for w in weightings if w.drift_signal == "labels"))


def layout_of(spec: MonitorsSpec) -> Layout:
    """Derive the layout. Windows that only detectors or weightings ask for get a column like any other.

    Raises
    ------
    ValueError
        If a parameter is outside its range.
    """
    fading = tuple(dict.fromkeys(f for f in spec.forgetting if isinstance(f, FadingSpec)))
    sliding = tuple(dict.fromkeys(f for f in spec.forgetting if isinstance(f, SlidingSpec)))
    windows = _windows(spec)
    landmark = any(isinstance(f, LandmarkSpec) for f in spec.forgetting)
    _check(spec, fading, sliding, windows)
    order: list[ForgettingSpec] = [*fading, *sliding, *windows, *([LandmarkSpec()] if landmark else [])]
    columns = len(order)
    model = _model_record(spec, columns, len(fading), len(windows))
    longest = max((s.size + DEFERRED + 2 for s in sliding), default=2)
    buckets = max((SMALL_OUTCOMES + w.clock + 2 for w in windows), default=2)
    return Layout(
        fading=fading,
        sliding=sliding,
        windows=windows,
        landmark=landmark,
        columns=columns,
        column_of=tuple(order.index(f) for f in spec.forgetting),
        ring_size=max(longest, buckets),
        ring=entry_type(spec.max_classes + EXTRA_CLASSES),
        shadow_classes=spec.shadow_max_classes,
        max_classes=spec.max_classes + EXTRA_CLASSES,
        model=model,
        parameters=_parameters(spec, fading, sliding, windows, model),
    )


SIGNALS = {"own": OWN, "reference": REFERENCE, "labels": LABELS}


def _kind_of(detector: DetectorSpec) -> DetectorKind:
    """The kind that a detector's specification is of."""
    for kind in KINDS:
        if isinstance(detector, kind.spec):
            return kind
    raise ValueError(f"a detector must be of a kind in detectors.KINDS, got {detector!r}")


def _windows(spec: MonitorsSpec) -> tuple[AdwinSpec, ...]:
    asked: list[AdwinSpec] = [f for f in spec.forgetting if isinstance(f, AdwinSpec)]
    asked += [w for detector in spec.detectors if (w := _kind_of(detector).window(detector))]
    asked += [window_of(w) for w in spec.weighting if w.drift_signal != "labels"]
    return tuple(dict.fromkeys(asked))


def _check(
    spec: MonitorsSpec,
    fading: tuple[FadingSpec, ...],
    sliding: tuple[SlidingSpec, ...],
    windows: tuple[AdwinSpec, ...],
) -> None:
    def expect(condition: bool, name: str, expected: str, got: object) -> None:  # noqa: FBT001
        if not condition:
            raise ValueError(f"{name} must be {expected}, got {got!r}")

    for f in fading:
        expect(0.0 < f.alpha < 1.0, "fading factor alpha", "in (0, 1)", f.alpha)
    for s in sliding:
        expect(1 <= s.size < 1 << 31, "sliding window size", "at least 1", s.size)
    for w in windows:
        expect(0.0 < w.delta < 1.0, "ADWIN delta", "in (0, 1)", w.delta)
        expect(w.min_subwindow >= 5, "ADWIN min_subwindow", "at least 5", w.min_subwindow)
        expect(1 <= w.clock <= 1 << 16, "ADWIN clock", "in [1, 65536]", w.clock)
    for d in spec.detectors:
        for parameter in _kind_of(d).entry.parameters:
            problem = parameter.problem(getattr(d, parameter.name))
            if problem is not None:
                raise ValueError(f"{d.name}: {problem}")
    for weighting in spec.weighting:
        expect(weighting.w_avg >= 1.0, "w_avg", "at least 1", weighting.w_avg)
        expect(0.0 < weighting.alpha <= 1.0, "weighting alpha", "in (0, 1]", weighting.alpha)
        expect(weighting.drift_signal in SIGNALS, "drift_signal", "one of own, reference, labels", weighting)
    shadow = spec.shadow_max_classes
    expect(0 <= shadow <= MAX_SHADOW_CLASSES, "shadow_max_classes", f"in [0, {MAX_SHADOW_CLASSES}]", shadow)
    expect(spec.max_models >= 1, "max_models", "at least 1", spec.max_models)
    most = MAX_CLASS + 1 - EXTRA_CLASSES
    expect(1 <= spec.max_classes <= most, "max_classes", f"in [1, {most}]", spec.max_classes)


def _model_record(spec: MonitorsSpec, columns: int, fading: int, windows: int) -> np.dtype[np.void]:
    """The record of one model, what every outcome touches first; when empty, all zero but the units."""
    detectors = [
        (kind.name, kind.state, (sum(isinstance(d, kind.spec) for d in spec.detectors),)) for kind in KINDS
    ]
    fields: list[Any] = [
        ("outcomes", "i8"),
        ("errors", "i8"),
        ("cells", "i8"),  # first row of its span of class rows
        ("classes", "i4"),  # highest class index seen + 1
        ("head", "i4"),  # where in its ring the next outcome goes
        ("last", "i4"),  # label of the previous outcome
        ("last_missed", "i4"),  # whether it was wrong
        ("pending", "i4", (windows,)),  # outcomes since each window's last check, not yet in buckets
        ("totals", "f8", (SUMS, columns)),
        ("fading", FADING, (fading,)),  # units are 1 at first
        ("shadow", SHADOW, (int(spec.shadow_max_classes > 0),)),  # its unit is 1 at first, too
        ("weighting", WEIGHTING, (len(spec.weighting),)),
        *detectors,
        ("label_drift", LABEL_DRIFT, (len(label_drifts_of(spec.weighting)),)),
        ("windows", WINDOW, (windows,)),
    ]
    packed = np.dtype(fields, align=True)
    return np.dtype(
        {
            "names": [name for name, *_ in fields],
            "formats": [field[1:] if len(field) == 3 else field[1] for field in fields],
            "offsets": [_offset(packed, name) for name, *_ in fields],
            "itemsize": -(-packed.itemsize // LINE) * LINE,
        },
        align=True,
    )


def _hot_bytes(model: np.dtype[np.void], detectors: dict[DetectorKind, int]) -> int:
    """Bytes of a record up to the last that every outcome touches."""
    ends = [_offset(model, KINDS[0].name)]
    for kind, number in detectors.items():
        if number and kind.hot_bytes:
            ends.append(_offset(model, kind.name) + (number - 1) * kind.state.itemsize + kind.hot_bytes)
    return max(ends)


def _offset(record: np.dtype[np.void], name: str) -> int:
    fields: Any = record.fields
    return int(fields[name][1]) if fields else 0


def _parameters(
    spec: MonitorsSpec,
    fading: tuple[FadingSpec, ...],
    sliding: tuple[SlidingSpec, ...],
    windows: tuple[AdwinSpec, ...],
    model: np.dtype[np.void],
) -> Records:
    detectors = {
        kind: [
            kind.row(d, i, windows.index) for i, d in enumerate(spec.detectors) if isinstance(d, kind.spec)
        ]
        for kind in KINDS
    }
    fields: list[Any] = [
        ("hot_bytes", "i8"),  # of a model's record: what every outcome touches
        ("window_bytes", "i8"),
        ("shadow_classes", "i8"),
        ("fading", FADING_PARAMETERS, (len(fading),)),
        ("sliding", SLIDING_PARAMETERS, (len(sliding),)),
        ("windows", WINDOW_PARAMETERS, (len(windows),)),
        ("weighting", WEIGHTING_PARAMETERS, (len(spec.weighting),)),
        ("label_drift", LABEL_DRIFT_PARAMETERS, (len(label_drifts_of(spec.weighting)),)),
        *[(kind.name, kind.parameters, (len(rows),)) for kind, rows in detectors.items()],
    ]
    row = np.zeros(1, np.dtype(fields, align=True))
    row["hot_bytes"] = _hot_bytes(model, {kind: len(rows) for kind, rows in detectors.items()})
    row["window_bytes"] = WINDOW.itemsize
    row["shadow_classes"] = spec.shadow_max_classes
    row["fading"]["alpha"] = [f.alpha for f in fading]
    row["sliding"]["size"] = [s.size for s in sliding]
    for j, w in enumerate(windows):
        row["windows"][0, j] = (w.delta, w.min_subwindow, w.clock)
    for j, weighting in enumerate(spec.weighting):
        labels = weighting.drift_signal == "labels"
        watched = label_drifts_of(spec.weighting) if labels else windows
        window = watched.index(weighting.delta if labels else window_of(weighting))
        signal = SIGNALS[weighting.drift_signal]
        row["weighting"][0, j] = (weighting.w_avg, weighting.alpha, signal, window, NOBODY)
    row["label_drift"]["delta"] = label_drifts_of(spec.weighting)
    for kind, rows in detectors.items():
        for j, parameters in enumerate(rows):
            row[kind.name][0, j] = parameters
    return row
