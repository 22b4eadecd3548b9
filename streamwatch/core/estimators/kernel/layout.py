"""Layout of a model's record, derived from the configuration.

A record holds scalars only: a header, the totals of every mechanism (a *column* each), and, per kind of
estimator, an array of records of configured length (possibly 0). Parameters are stored separately, in
parameter rows shared by all models. Columns are ordered fading | sliding | ADWIN windows | landmark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors import KINDS, DetectorKind
from streamwatch.core.estimators.forgetting.adwin import PARAMETERS as WINDOW_PARAMETERS
from streamwatch.core.estimators.forgetting.adwin import SMALL_OUTCOMES, WINDOW
from streamwatch.core.estimators.forgetting.drift_weighted import (
    NOBODY,
    WEIGHTING,
    WEIGHTING_PARAMETERS,
)
from streamwatch.core.estimators.forgetting.label_drift import LABEL_DRIFT, LABEL_DRIFT_PARAMETERS
from streamwatch.core.estimators.forgetting.mechanisms import (
    DEFERRED,
    FADING,
    FADING_PARAMETERS,
    SLIDING_PARAMETERS,
)
from streamwatch.core.estimators.kernel.checks import EXTRA_CLASSES, SIGNALS, check, kind_of
from streamwatch.core.estimators.kernel.shadow import SHADOW
from streamwatch.core.estimators.memory.ring import entry_type
from streamwatch.core.estimators.memory.totals import SUMS
from streamwatch.core.estimators.recovery.state import (
    RECOVERY,
    RECOVERY_PARAMETERS,
    recovery_parameters,
    watched_of,
)
from streamwatch.core.estimators.verdicts.costs import CostTable, cost_table_of, stacked
from streamwatch.core.estimators.verdicts.deferred import WAITING
from streamwatch.core.estimators.verdicts.opponents import LABEL_COUNTS, MAJORITY, OPPONENT_PARAMETERS
from streamwatch.core.estimators.verdicts.state import PACE, VERDICT, VERDICT_PARAMETERS, verdict_parameters
from streamwatch.core.estimators.verdicts.steps import LONGEST
from streamwatch.core.estimators.verdicts.utility import ACCURACY, BALANCED, COSTS
from streamwatch.core.specs import (
    HEADLINE,
    OPPONENTS,
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    MonitorsSpec,
    SlidingSpec,
    UtilitySpec,
)

Records: TypeAlias = NDArray[np.void]

LINE = 64


@dataclass(frozen=True, slots=True)
class Layout:
    """Estimators of a model, in the order of its record, with record types and parameters."""

    fading: tuple[FadingSpec, ...]
    sliding: tuple[SlidingSpec, ...]
    windows: tuple[AdwinSpec, ...]
    landmark: bool
    columns: int
    column_of: tuple[int, ...]
    """Column of each configured forgetting mechanism; equal mechanisms share a column."""
    ring_size: int
    ring: np.dtype[Any]
    """Type of the ring's entries."""
    shadow_classes: int
    """Largest number of classes of a model with shadow classifiers; 0 for no shadow classifiers."""
    max_classes: int
    """`max_classes` of the specification plus `EXTRA_CLASSES`."""
    opponents: tuple[str, ...]
    costs: Mapping[UtilitySpec, CostTable]
    """Cost tables by utility, in the order of `utilities`."""
    utilities: NDArray[np.float64]
    """Utilities by (table, true class, answer)."""
    model: np.dtype[np.void]
    parameters: Records
    """Parameter rows, shape (1 + number of `detectors_by_model`,).

    The first row is for all models; of the others only the parameters of detectors and ADWIN windows are
    used.
    """


def window_of(drift_weighted: DriftWeightedSpec) -> AdwinSpec:
    """ADWIN window of the loss whose drifts restart a drift-weighted accuracy; not used for `labels`."""
    return AdwinSpec(delta=drift_weighted.delta)


def label_drifts_of(drift_weightings: Sequence[DriftWeightedSpec]) -> tuple[float, ...]:
    """Confidences δ of the label drifts that weightings need; equal ones are shared."""
    return tuple(dict.fromkeys(w.delta for w in drift_weightings if w.drift_signal == "labels"))


def layout_of(spec: MonitorsSpec) -> Layout:
    """Derive the layout; ADWIN windows used only by detectors or weightings get a column like any other.

    Raises
    ------
    ValueError
        If a parameter is outside its range.
    """
    fading = tuple(dict.fromkeys(f for f in spec.forgetting if isinstance(f, FadingSpec)))
    sliding = tuple(dict.fromkeys(f for f in spec.forgetting if isinstance(f, SlidingSpec)))
    windows = _windows(spec)
    landmark = any(isinstance(f, LandmarkSpec) for f in spec.forgetting)
    check(spec, fading, sliding, windows)
    order: list[ForgettingSpec] = [*fading, *sliding, *windows, *([LandmarkSpec()] if landmark else [])]
    columns = len(order)
    model = _model_record(spec, columns, len(fading), len(windows))
    costs = {u: cost_table_of(u) for u in spec.utilities if u.kind == "costs"}
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
        opponents=opponents_of(spec),
        costs=costs,
        utilities=stacked(list(costs.values())),
        model=model,
        parameters=_parameters(spec, fading, sliding, windows, model),
    )


def opponents_of(spec: MonitorsSpec) -> tuple[str, ...]:
    """Opponents of every model; those that are shadow classifiers are left out if these are switched off."""
    without = () if spec.shadow_max_classes else ("transition", "temporal_correction")
    return tuple(o for o in spec.opponents if o not in without)


def utility_index(layout: Layout, utility: UtilitySpec) -> int:
    """Number of a utility in the kernel.

    Raises
    ------
    ValueError
        If the specification has no such utility; every one has accuracy.
    """
    match utility.kind:
        case "accuracy":
            return ACCURACY
        case "balanced":
            if layout.opponents and not layout.model["magnitudes"].shape[0]:
                raise ValueError("a model judged by balanced utility needs it in the specification, got none")
            return BALANCED
        case "costs":
            return COSTS + list(layout.costs).index(utility)


def _windows(spec: MonitorsSpec) -> tuple[AdwinSpec, ...]:
    asked: list[AdwinSpec] = [f for f in spec.forgetting if isinstance(f, AdwinSpec)]
    detectors = (*spec.detectors, *(d for each in spec.detectors_by_model for d in each.detectors))
    asked += [w for detector in detectors if (w := kind_of(detector).window(detector))]
    asked += [window_of(w) for w in spec.drift_weighted if w.drift_signal != "labels"]
    return tuple(dict.fromkeys(asked))


def _model_record(spec: MonitorsSpec, columns: int, fading: int, windows: int) -> np.dtype[np.void]:
    """Build the type of a model's record, most used fields first.

    An empty record is zero except for units.
    """
    detectors = [
        (kind.name, kind.state, (sum(isinstance(d, kind.spec) for d in spec.detectors),)) for kind in KINDS
    ]
    noted = LONGEST if opponents_of(spec) else 0
    balanced = any(u.kind == "balanced" for u in spec.utilities)
    fields: list[Any] = [
        ("outcomes", "i8"),
        ("errors", "i8"),
        ("class_counts", "i8"),  # first row of the model's span of class rows
        ("classes", "i4"),  # highest class index seen + 1
        ("head", "i4"),  # position of the next outcome in the ring
        ("last", "i4"),  # label of the previous outcome
        ("last_missed", "i4"),  # whether the previous outcome was wrong
        ("utility", "i4"),  # number of the utility, see `verdicts.utility`
        ("detector_row", "i4"),  # parameter row of the model's detectors
        ("waiting", WAITING, (int(bool(opponents_of(spec))),)),  # deferred steps, see `verdicts.deferred`
        ("leads", "u1", (noted,)),  # … what is noted of each outcome
        ("labels", LABEL_COUNTS, (int(bool(opponents_of(spec))),)),  # units are 1 at first
        ("pending", "i4", (windows,)),  # outcomes since each ADWIN window's last check, not in buckets yet
        ("totals", "f8", (SUMS, columns)),
        ("fading", FADING, (fading,)),  # units are 1 at first
        ("shadow", SHADOW, (int(spec.shadow_max_classes > 0),)),  # unit is 1 at first
        ("drift_weighted", WEIGHTING, (len(spec.drift_weighted),)),
        ("follow_at", "i8"),  # the outcome at which `recovery` looks next, unless there is an alarm
        *detectors,
        ("label_drift", LABEL_DRIFT, (len(label_drifts_of(spec.drift_weighted)),)),
        ("windows", WINDOW, (windows,)),
        ("noted_ms", "i8", (noted,)),  # event times of the outcomes in `leads`
        ("magnitudes", "f8", (noted if balanced else 0,)),  # |d| at them, where not all leads are ±1 or 0
        ("pace", PACE, (len(opponents_of(spec)),)),
        ("verdicts", VERDICT, (len(opponents_of(spec)),)),
        ("recovery", RECOVERY, (int(fading > 0),)),
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
    """Number of bytes at the start of a record up to the last one that every outcome accesses."""
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
    groups = [spec.detectors, *(each.detectors for each in spec.detectors_by_model)]
    detectors = {
        kind: [
            [kind.row(d, i, windows.index) for i, d in enumerate(group) if isinstance(d, kind.spec)]
            for group in groups
        ]
        for kind in KINDS
    }
    fields: list[Any] = [
        ("hot_bytes", "i8"),  # bytes at the start of a model's record that every outcome accesses
        ("window_bytes", "i8"),
        ("shadow_classes", "i8"),
        ("counts_majority", "i8"),
        ("kinds", "i8"),  # one bit per kind of opponent: it is configured
        ("times_start", "i8"),  # offset of `noted_ms` in a model's record
        ("verdict_start", "i8"),  # offset of `verdicts` in a model's record
        ("verdict_bytes", "i8"),  # size of one record of `verdicts`
        ("folds_share", "i8"),  # whether a fold's label at prediction is the previous one of its stream
        ("verdict", VERDICT_PARAMETERS, (2,)),  # for a model, and for a fold, which never claims on its own
        ("opponents", OPPONENT_PARAMETERS, (len(opponents_of(spec)),)),
        ("fading", FADING_PARAMETERS, (len(fading),)),
        ("sliding", SLIDING_PARAMETERS, (len(sliding),)),
        ("windows", WINDOW_PARAMETERS, (len(windows),)),
        ("drift_weighted", WEIGHTING_PARAMETERS, (len(spec.drift_weighted),)),
        ("label_drift", LABEL_DRIFT_PARAMETERS, (len(label_drifts_of(spec.drift_weighted)),)),
        ("recovery", RECOVERY_PARAMETERS, (int(watched_of(spec) is not None),)),
        *[(kind.name, kind.parameters, (len(rows),)) for kind, (rows, *_) in detectors.items()],
    ]
    row = np.zeros(len(groups), np.dtype(fields, align=True))
    row["hot_bytes"] = _hot_bytes(model, {kind: len(rows) for kind, (rows, *_) in detectors.items()})
    row["window_bytes"] = WINDOW.itemsize
    row["shadow_classes"] = spec.shadow_max_classes
    kinds = [OPPONENTS.index(opponent) for opponent in opponents_of(spec)]
    row["counts_majority"] = MAJORITY in kinds
    row["kinds"] = sum(1 << kind for kind in kinds)
    row["times_start"] = _offset(model, "noted_ms")
    row["verdict_start"] = _offset(model, "verdicts")
    row["verdict_bytes"] = VERDICT.itemsize
    row["folds_share"] = spec.folds_share_stream
    row["verdict"] = verdict_parameters(spec.verdict_outcomes, spec.confidence_delta)
    row["verdict"]["threshold"][0, 1] = np.inf
    for j, kind in enumerate(kinds):
        notifies = len(spec.detectors) + j + 1 if OPPONENTS[kind] == HEADLINE else 0
        row["opponents"][0, j] = (kind, notifies)
    row["fading"]["alpha"] = [f.alpha for f in fading]
    row["sliding"]["size"] = [s.size for s in sliding]
    for j, w in enumerate(windows):
        row["windows"][:, j] = (w.delta, w.min_subwindow, w.clock)
    for j, drift_weighted in enumerate(spec.drift_weighted):
        labels = drift_weighted.drift_signal == "labels"
        watched = label_drifts_of(spec.drift_weighted) if labels else windows
        window = watched.index(drift_weighted.delta if labels else window_of(drift_weighted))
        signal = SIGNALS[drift_weighted.drift_signal]
        row["drift_weighted"][0, j] = (drift_weighted.w_avg, drift_weighted.alpha, signal, window, NOBODY)
    row["label_drift"]["delta"] = label_drifts_of(spec.drift_weighted)
    if (watched := watched_of(spec)) is not None:
        row["recovery"] = recovery_parameters(watched.alpha, spec.confidence_delta, spec.verdict_outcomes)
    for kind, by_group in detectors.items():
        for group, rows in enumerate(by_group):
            for j, parameters in enumerate(rows):
                row[kind.name][group, j] = parameters
    return row
