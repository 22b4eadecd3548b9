"""Estimators that a specification implies: windows and label drifts that others need, and opponents."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.estimators.kernel.checks import kind_of
from streamwatch.core.specs import AdwinSpec, DriftWeightedSpec, MonitorsSpec


def window_of(drift_weighted: DriftWeightedSpec) -> AdwinSpec:
    """ADWIN window of the loss whose drifts restart a drift-weighted accuracy; not used for `labels`."""
    return AdwinSpec(delta=drift_weighted.delta)


def label_drifts_of(drift_weightings: Sequence[DriftWeightedSpec]) -> tuple[float, ...]:
    """Confidences δ of the label drifts that weightings need; equal ones are shared."""
    return tuple(dict.fromkeys(w.delta for w in drift_weightings if w.drift_signal == "labels"))


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
