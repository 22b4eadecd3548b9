"""Layout of the models' records, and of the parameters they share, derived from the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors import KINDS, DetectorKind
from streamwatch.core.estimators.entries import LEAST_ALPHA
from streamwatch.core.estimators.forgetting.adwin import PARAMETERS as WINDOW_PARAMETERS
from streamwatch.core.estimators.forgetting.adwin import SMALL_OUTCOMES, WINDOW
from streamwatch.core.estimators.forgetting.drift_weighted import (
    LABEL_DRIFT,
    LABEL_DRIFT_PARAMETERS,
    LABELS,
    NOBODY,
    OWN,
    REFERENCE,
    WEIGHTING,
    WEIGHTING_PARAMETERS,
)
from streamwatch.core.estimators.forgetting.mechanisms import (
    DEFERRED,
    FADING,
    FADING_PARAMETERS,
    SLIDING_PARAMETERS,
)
from streamwatch.core.estimators.kernel.shadow import MAX_CLASSES as MAX_SHADOW_CLASSES
from streamwatch.core.estimators.kernel.shadow import SHADOW
from streamwatch.core.estimators.memory import MAX_CLASS, SUMS_ROOM, entry_type
from streamwatch.core.estimators.recovery import (
    RECOVERY,
    RECOVERY_PARAMETERS,
    recovery_parameters,
    watched_of,
)
from streamwatch.core.estimators.verdicts.costs import CostTable, cost_table_of, stacked
from streamwatch.core.estimators.verdicts.detector import ACCURACY, BALANCED, COSTS, LONGEST
from streamwatch.core.estimators.verdicts.leads import LABEL_COUNTS, MAJORITY, OPPONENT_PARAMETERS, WAITING
from streamwatch.core.estimators.verdicts.state import PACE, VERDICT, VERDICT_PARAMETERS, verdict_parameters
from streamwatch.core.specs import (
    HEADLINE,
    OPPONENTS,
    AdwinSpec,
    DetectorSpec,
    DriftWeightedSpec,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    MonitorsSpec,
    SlidingSpec,
    UtilitySpec,
)

# Checks of the estimators' parameters, before records are laid out.


EXTRA_CLASSES = 2
"""Local class indices beyond `max_classes`: one for all further classes, and one for a second of these."""
SIGNALS = {"own": OWN, "reference": REFERENCE, "labels": LABELS}


def kind_of(detector: DetectorSpec) -> DetectorKind:
    """Look up the kind of a detector's specification; raises ValueError for an unknown one."""
    for kind in KINDS:
        if isinstance(detector, kind.spec):
            return kind
    known = ", ".join(kind.spec.__name__ for kind in KINDS)
    raise ValueError(f"a detector's specification must be one of {known}, got {detector!r}")


def check(
    spec: MonitorsSpec,
    fading: tuple[FadingSpec, ...],
    sliding: tuple[SlidingSpec, ...],
    windows: tuple[AdwinSpec, ...],
) -> None:
    """Raise ValueError if a parameter is outside its range."""

    def expect(condition: bool, name: str, expected: str, got: object) -> None:  # noqa: FBT001
        if not condition:
            raise ValueError(f"{name} must be {expected}, got {got!r}")

    for f in fading:
        expect(LEAST_ALPHA <= f.alpha < 1.0, "fading factor alpha", f"in [{LEAST_ALPHA}, 1)", f.alpha)
    for s in sliding:
        expect(1 <= s.size < 1 << 31, "sliding window size", "at least 1", s.size)
    for w in windows:
        expect(0.0 < w.delta < 1.0, "ADWIN delta", "in (0, 1)", w.delta)
        expect(w.min_subwindow >= 5, "ADWIN min_subwindow", "at least 5", w.min_subwindow)
        expect(1 <= w.clock <= 1 << 16, "ADWIN clock", "in [1, 65536]", w.clock)
    names = [(type(d), d.name) for d in spec.detectors]
    for each in spec.detectors_by_model:
        got = [(type(d), d.name) for d in each.detectors]
        expect(got == names, f"detectors of {each.models}", "of the kinds and names of all models'", got)
    for d in (*spec.detectors, *(d for each in spec.detectors_by_model for d in each.detectors)):
        for _, problem in kind_of(d).entry.problems(d):
            raise ValueError(f"{d.name}: {problem}")
    for drift_weighted in spec.drift_weighted:
        expect(drift_weighted.w_avg >= 1.0, "w_avg", "at least 1", drift_weighted.w_avg)
        expect(0.0 < drift_weighted.alpha <= 1.0, "weighting alpha", "in (0, 1]", drift_weighted.alpha)
        expect(
            drift_weighted.drift_signal in SIGNALS,
            "drift_signal",
            "one of own, reference, labels",
            drift_weighted,
        )
    for opponent in spec.opponents:
        expect(opponent in OPPONENTS, "opponent", f"one of {', '.join(OPPONENTS)}", opponent)
        expect(spec.opponents.count(opponent) == 1, "opponents", "named once", opponent)
    expect(0.0 < spec.confidence_delta < 1.0, "confidence_delta", "in (0, 1)", spec.confidence_delta)
    expect(spec.verdict_outcomes >= 1, "verdict_outcomes", "at least 1", spec.verdict_outcomes)
    shadow = spec.shadow_max_classes
    expect(0 <= shadow <= MAX_SHADOW_CLASSES, "shadow_max_classes", f"in [0, {MAX_SHADOW_CLASSES}]", shadow)
    expect(spec.max_models >= 1, "max_models", "at least 1", spec.max_models)
    most = MAX_CLASS + 1 - EXTRA_CLASSES
    expect(1 <= spec.max_classes <= most, "max_classes", f"in [1, {most}]", spec.max_classes)


# Estimators that a specification implies: windows and label drifts that others need, and opponents.


def window_of(drift_weighted: DriftWeightedSpec) -> AdwinSpec:
    """ADWIN window of the loss whose drifts restart a drift-weighted accuracy; not used for `labels`."""
    return AdwinSpec(delta=drift_weighted.delta, dependence=drift_weighted.dependence)


def label_drifts_of(drift_weightings: Sequence[DriftWeightedSpec]) -> tuple[tuple[float, bool], ...]:
    """Confidence δ of label drifts that weightings need, and whether they follow dependence; each once."""
    return tuple(dict.fromkeys(label_drift_of(w) for w in drift_weightings if w.drift_signal == "labels"))


def label_drift_of(drift_weighted: DriftWeightedSpec) -> tuple[float, bool]:
    """Confidence δ, and whether dependence is followed."""
    return drift_weighted.delta, drift_weighted.dependence == "followed"


def windows_of(spec: MonitorsSpec) -> tuple[AdwinSpec, ...]:
    """ADWIN windows of mechanisms, of detectors and of weightings, each once."""
    asked: list[AdwinSpec] = [f for f in spec.forgetting if isinstance(f, AdwinSpec)]
    detectors = (*spec.detectors, *(d for each in spec.detectors_by_model for d in each.detectors))
    asked += [w for detector in detectors if (w := kind_of(detector).window(detector))]
    asked += [window_of(w) for w in spec.drift_weighted if w.drift_signal != "labels"]
    return tuple(dict.fromkeys(asked))


def opponents_of(spec: MonitorsSpec) -> tuple[str, ...]:
    """Opponents of every model; those that are shadow classifiers are left out if these are switched off."""
    without = () if spec.shadow_max_classes else ("transition", "temporal_correction")
    return tuple(o for o in spec.opponents if o not in without)


# Type of a model's record.
#
# A record holds scalars only: a header, the totals of every mechanism (a *column* each), and, per kind of
# estimator, an array of records of configured length (possibly 0).


Records: TypeAlias = NDArray[np.void]

LINE = 64


def model_record(spec: MonitorsSpec, columns: int, fading: int, windows: int) -> np.dtype[np.void]:
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
        ("utility", "i4"),  # number of the utility, see `utility_index`
        ("detector_row", "i4"),  # parameter row of the model's detectors
        ("unadded", "i8", (2,)),  # sums of the latest outcomes that only the totals of fading have yet
        ("waiting", WAITING, (int(bool(opponents_of(spec))),)),  # deferred steps, see `verdicts.state`
        ("labels", LABEL_COUNTS, (int(bool(opponents_of(spec))),)),  # units are 1 at first
        ("leads", "u1", (noted,)),  # leads noted at each outcome of `waiting`
        ("totals", "f8", (columns, SUMS_ROOM)),  # starts at a cache line
        ("pending", "i4", (windows,)),  # outcomes since each ADWIN window's last check, not in buckets yet
        ("follow_at", "i8"),  # the outcome at which `recovery` looks next, unless there is an alarm
        ("fading", FADING, (fading,)),  # units are 1 at first
        ("shadow", SHADOW, (int(spec.shadow_max_classes > 0),)),  # unit is 1 at first
        ("drift_weighted", WEIGHTING, (len(spec.drift_weighted),)),
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
            "offsets": [offset_of(packed, name) for name, *_ in fields],
            "itemsize": -(-packed.itemsize // LINE) * LINE,
        },
        align=True,
    )


def offset_of(record: np.dtype[np.void], name: str) -> int:
    """Byte offset of a field of a record type."""
    fields: Any = record.fields
    return int(fields[name][1]) if fields else 0


# Parameters of estimators as rows that models share, apart from the models' records.


def parameter_rows(
    spec: MonitorsSpec,
    fading: tuple[FadingSpec, ...],
    sliding: tuple[SlidingSpec, ...],
    windows: tuple[AdwinSpec, ...],
    model: np.dtype[np.void],
) -> Records:
    """Build the parameter rows: the first for all models, one more for each of `detectors_by_model`."""
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
        ("used_totals", "i8"),  # … of which the part up to here, and that from
        ("totals_end", "i8"),  # here on: each outcome changes only the totals of fading
        ("windows_start", "i8"),  # offset of `windows` in a model's record
        ("window_bytes", "i8"),  # size of one record of `windows`
        ("shadow_classes", "i8"),
        ("counts_majority", "i8"),
        ("kinds", "i8"),  # bit mask of the configured kinds of opponents
        ("times_start", "i8"),  # offset of `noted_ms` in a model's record
        ("pace_start", "i8"),  # offset of `pace` in a model's record
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
    used = len(fading) + len(sliding)
    row["used_totals"] = offset_of(model, "totals") + used * 8 * SUMS_ROOM - LINE * bool(sliding)
    row["totals_end"] = offset_of(model, "pending")
    row["windows_start"] = offset_of(model, "windows")
    row["window_bytes"] = WINDOW.itemsize
    row["shadow_classes"] = spec.shadow_max_classes
    kinds = [OPPONENTS.index(opponent) for opponent in opponents_of(spec)]
    row["counts_majority"] = MAJORITY in kinds
    row["kinds"] = sum(1 << kind for kind in kinds)
    row["times_start"] = offset_of(model, "noted_ms")
    row["pace_start"] = offset_of(model, "pace")
    row["verdict_start"] = offset_of(model, "verdicts")
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
        row["windows"][:, j] = (w.delta, w.min_subwindow, w.clock, w.dependence == "followed", 0)
    for j, drift_weighted in enumerate(spec.drift_weighted):
        labels = drift_weighted.drift_signal == "labels"
        watched = label_drifts_of(spec.drift_weighted) if labels else windows
        window = watched.index(label_drift_of(drift_weighted) if labels else window_of(drift_weighted))
        signal = SIGNALS[drift_weighted.drift_signal]
        row["drift_weighted"][0, j] = (drift_weighted.w_avg, drift_weighted.alpha, signal, window, NOBODY)
    for j, watched_labels in enumerate(label_drifts_of(spec.drift_weighted)):
        row["label_drift"][:, j] = watched_labels
    if (watched := watched_of(spec)) is not None:
        row["recovery"] = recovery_parameters(watched.alpha, spec.confidence_delta, spec.verdict_outcomes)
    for kind, by_group in detectors.items():
        for group, rows in enumerate(by_group):
            for j, parameters in enumerate(rows):
                row[kind.name][group, j] = parameters
    return row


def _hot_bytes(model: np.dtype[np.void], detectors: dict[DetectorKind, int]) -> int:
    """Number of bytes at the start of a record up to the last one that every outcome accesses."""
    ends = [offset_of(model, KINDS[0].name)]
    for kind, number in detectors.items():
        if number and kind.hot_bytes:
            ends.append(offset_of(model, kind.name) + (number - 1) * kind.state.itemsize + kind.hot_bytes)
    return max(ends)


# Layout of the models' records, derived from the configuration.
#
# The record of a model is described in `model_record`; parameters are stored separately, in parameter rows
# shared by all models (`parameter_rows`). Columns are ordered fading | sliding | ADWIN windows | landmark.


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


def layout_of(spec: MonitorsSpec) -> Layout:
    """Derive the layout; ADWIN windows used only by detectors or weightings get a column like any other.

    Raises
    ------
    ValueError
        If a parameter is outside its range.
    """
    fading = tuple(dict.fromkeys(f for f in spec.forgetting if isinstance(f, FadingSpec)))
    sliding = tuple(dict.fromkeys(f for f in spec.forgetting if isinstance(f, SlidingSpec)))
    windows = windows_of(spec)
    landmark = any(isinstance(f, LandmarkSpec) for f in spec.forgetting)
    check(spec, fading, sliding, windows)
    order: list[ForgettingSpec] = [*fading, *sliding, *windows, *([LandmarkSpec()] if landmark else [])]
    columns = len(order)
    model = model_record(spec, columns, len(fading), len(windows))
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
        parameters=parameter_rows(spec, fading, sliding, windows, model),
    )


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
                raise ValueError(
                    "expected a balanced utility among the utilities of the specification, as a model is "
                    "judged by it; got none"
                )
            return BALANCED
        case "costs":
            return COSTS + list(layout.costs).index(utility)
