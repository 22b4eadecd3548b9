"""What is kept of a model: the layout of its record, derived from the configuration.

A record holds scalars only: a header, the totals of every mechanism (column), and one array of records per kind,
of configured length (0 allowed). Parameters stand once, in one parameter row. Columns are ordered
fading | sliding | ADWIN windows | landmark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.kernel.adwin import PARAMETERS as WINDOW_PARAMETERS
from streamwatch.core.kernel.adwin import SMALL_OUTCOMES, WINDOW
from streamwatch.core.kernel.detectors import KINDS
from streamwatch.core.kernel.forgetting import FADING, FADING_PARAMETERS, SLIDING_PARAMETERS
from streamwatch.core.kernel.ring import MAX_CLASS
from streamwatch.core.kernel.weighting import WEIGHTING, WEIGHTING_PARAMETERS
from streamwatch.core.specs import (
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)

Records: TypeAlias = NDArray[np.void]

LINE = 64
EXTRA_CLASSES = 2
"""Local class indices run to max_classes + 1: the classes seen, those beyond the cap, and a place to spare."""


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
    max_classes: int
    """Including the extra indices."""
    model: np.dtype[np.void]
    parameters: Records
    """The parameter row, shape (1,)."""


def window_of(weighting: DriftWeightedSpec) -> AdwinSpec:
    """The ADWIN window whose drifts restart a drift-weighted accuracy."""
    return AdwinSpec(delta=weighting.delta)


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
    longest = max((s.size + 2 for s in sliding), default=2)
    buckets = max((SMALL_OUTCOMES + w.clock + 2 for w in windows), default=2)
    return Layout(
        fading=fading,
        sliding=sliding,
        windows=windows,
        landmark=landmark,
        columns=columns,
        column_of=tuple(order.index(f) for f in spec.forgetting),
        ring_size=max(longest, buckets),
        max_classes=spec.max_classes + EXTRA_CLASSES,
        model=model,
        parameters=_parameters(spec, fading, sliding, windows, model),
    )


def _windows(spec: MonitorsSpec) -> tuple[AdwinSpec, ...]:
    asked: list[AdwinSpec] = [f for f in spec.forgetting if isinstance(f, AdwinSpec)]
    for detector in spec.detectors:
        asked += [w for kind in KINDS if isinstance(detector, kind.spec) and (w := kind.window(detector))]
    asked += [window_of(w) for w in spec.weighting]
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
        if isinstance(d, PageHinkleySpec):
            expect(0.0 < d.alpha <= 1.0, "Page-Hinkley alpha", "in (0, 1]", d.alpha)
            expect(d.threshold > 0.0, "Page-Hinkley threshold", "positive", d.threshold)
            expect(d.min_outcomes >= 1, "Page-Hinkley min_outcomes", "at least 1", d.min_outcomes)
    for weighting in spec.weighting:
        expect(weighting.w_avg >= 1.0, "w_avg", "at least 1", weighting.w_avg)
    expect(1 <= spec.max_models, "max_models", "at least 1", spec.max_models)
    most = MAX_CLASS + 1 - EXTRA_CLASSES
    expect(1 <= spec.max_classes <= most, "max_classes", f"in [1, {most}]", spec.max_classes)


def _model_record(spec: MonitorsSpec, columns: int, fading: int, windows: int) -> np.dtype[np.void]:
    """The record of one model, what every outcome touches first; all zero but the units is its empty state."""
    detectors = [
        (kind.name, kind.state, (sum(isinstance(d, kind.spec) for d in spec.detectors),)) for kind in KINDS
    ]
    fields: list[Any] = [
        ("outcomes", "i8"),
        ("errors", "i8"),
        ("cells", "i8"),  # first row of its span of class rows
        ("span", "i4"),  # class rows it owns, 0 or a power of two
        ("classes", "i4"),  # highest class index seen + 1
        ("head", "i4"),  # where in its ring the next outcome goes
        ("last", "i4"),  # label of the previous outcome
        ("live", "i4"),
        ("pending", "i4", (windows,)),  # outcomes since each window's last check, not yet in buckets
        ("units", "f8", (columns,)),
        ("totals", "f8", (4, columns)),
        ("fading", FADING, (fading,)),
        ("weighting", WEIGHTING, (len(spec.weighting),)),
        *detectors,
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


def _offset(record: np.dtype[np.void], name: str) -> int:
    fields = record.fields
    return fields[name][1] if fields else 0


def _parameters(
    spec: MonitorsSpec,
    fading: tuple[FadingSpec, ...],
    sliding: tuple[SlidingSpec, ...],
    windows: tuple[AdwinSpec, ...],
    model: np.dtype[np.void],
) -> Records:
    detectors = {
        kind: [kind.row(d, i, windows.index) for i, d in enumerate(spec.detectors) if isinstance(d, kind.spec)]
        for kind in KINDS
    }
    fields: list[Any] = [
        ("hot_bytes", "i8"),
        ("fading", FADING_PARAMETERS, (len(fading),)),
        ("sliding", SLIDING_PARAMETERS, (len(sliding),)),
        ("windows", WINDOW_PARAMETERS, (len(windows),)),
        ("weighting", WEIGHTING_PARAMETERS, (len(spec.weighting),)),
        *[(kind.name, kind.parameters, (len(rows),)) for kind, rows in detectors.items()],
    ]
    row = np.zeros(1, np.dtype(fields, align=True))
    row["hot_bytes"] = _offset(model, "windows")
    row["fading"]["alpha"] = [f.alpha for f in fading]
    row["sliding"]["size"] = [s.size for s in sliding]
    for j, w in enumerate(windows):
        row["windows"][0, j] = (w.delta, w.min_subwindow, w.clock)
    for j, weighting in enumerate(spec.weighting):
        row["weighting"][0, j] = (weighting.w_avg, windows.index(window_of(weighting)))
    for kind, rows in detectors.items():
        for j, parameters in enumerate(rows):
            row[kind.name][0, j] = parameters
    return row
