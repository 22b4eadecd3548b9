"""Checks of the estimators' parameters, before records are laid out."""

from __future__ import annotations

from streamwatch.core.estimators.detectors import KINDS, DetectorKind
from streamwatch.core.estimators.forgetting.drift_weighted import LABELS, OWN, REFERENCE
from streamwatch.core.estimators.kernel.shadow import MAX_CLASSES as MAX_SHADOW_CLASSES
from streamwatch.core.estimators.memory.ring import MAX_CLASS
from streamwatch.core.estimators.parameters import LEAST_ALPHA
from streamwatch.core.specs import (
    OPPONENTS,
    AdwinSpec,
    DetectorSpec,
    FadingSpec,
    MonitorsSpec,
    SlidingSpec,
)

EXTRA_CLASSES = 2
"""Local class indices beyond `max_classes`: one for all further classes, and one for a second of these."""
SIGNALS = {"own": OWN, "reference": REFERENCE, "labels": LABELS}


def kind_of(detector: DetectorSpec) -> DetectorKind:
    """Look up the kind of a detector's specification; raises ValueError for an unknown one."""
    for kind in KINDS:
        if isinstance(detector, kind.spec):
            return kind
    raise ValueError(f"a detector must be of a kind in detectors.KINDS, got {detector!r}")


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
        for parameter in kind_of(d).entry.parameters:
            problem = parameter.problem(getattr(d, parameter.name))
            if problem is not None:
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
