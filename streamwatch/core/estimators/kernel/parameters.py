"""Parameters of estimators as rows that models share, apart from the models' records."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamwatch.core.estimators.detectors import KINDS, DetectorKind
from streamwatch.core.estimators.forgetting.adwin import PARAMETERS as WINDOW_PARAMETERS
from streamwatch.core.estimators.forgetting.adwin import WINDOW
from streamwatch.core.estimators.forgetting.drift_weighted import NOBODY, WEIGHTING_PARAMETERS
from streamwatch.core.estimators.forgetting.label_drift import LABEL_DRIFT_PARAMETERS
from streamwatch.core.estimators.forgetting.mechanisms import FADING_PARAMETERS, SLIDING_PARAMETERS
from streamwatch.core.estimators.kernel.checks import SIGNALS
from streamwatch.core.estimators.kernel.implied import label_drifts_of, opponents_of, window_of
from streamwatch.core.estimators.kernel.record import Records, offset_of
from streamwatch.core.estimators.recovery.state import RECOVERY_PARAMETERS, recovery_parameters, watched_of
from streamwatch.core.estimators.verdicts.opponents import MAJORITY, OPPONENT_PARAMETERS
from streamwatch.core.estimators.verdicts.state import VERDICT, VERDICT_PARAMETERS, verdict_parameters
from streamwatch.core.specs import HEADLINE, OPPONENTS, AdwinSpec, FadingSpec, MonitorsSpec, SlidingSpec


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
        ("windows_start", "i8"),  # offset of `windows` in a model's record
        ("window_bytes", "i8"),  # size of one record of `windows`
        ("shadow_classes", "i8"),
        ("counts_majority", "i8"),
        ("kinds", "i8"),  # one bit per kind of opponent: it is configured
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


def _hot_bytes(model: np.dtype[np.void], detectors: dict[DetectorKind, int]) -> int:
    """Number of bytes at the start of a record up to the last one that every outcome accesses."""
    ends = [offset_of(model, KINDS[0].name)]
    for kind, number in detectors.items():
        if number and kind.hot_bytes:
            ends.append(offset_of(model, kind.name) + (number - 1) * kind.state.itemsize + kind.hot_bytes)
    return max(ends)
