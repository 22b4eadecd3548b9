"""Names of the sections of a model's snapshot: fingerprints of the estimators behind them.

A fingerprint is of kind, parameters, record schema and version. A section is restored only into an estimator
of the same fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.fingerprints import fingerprint
from streamwatch.core.estimators.forgetting.adwin import WINDOW
from streamwatch.core.estimators.forgetting.drift_weighted import WEIGHTING
from streamwatch.core.estimators.forgetting.label_drift import LABEL_DRIFT
from streamwatch.core.estimators.forgetting.mechanisms import FADING
from streamwatch.core.estimators.kernel.implied import label_drifts_of
from streamwatch.core.estimators.kernel.layout import Layout, utility_index
from streamwatch.core.estimators.kernel.verdict_sections import verdict_names
from streamwatch.core.estimators.recovery.state import RECOVERY, recovery_identity, watched_of
from streamwatch.core.estimators.recovery.state import VERSION as RECOVERY_VERSION
from streamwatch.core.specs import LandmarkSpec, MonitorsSpec, UtilitySpec

VERSION = 2
"""Incremented when the meaning of a section of `snapshot` changes."""
COLUMNS_VERSION = 3
"""Incremented when the meaning of a mechanism's totals, or of the outcomes stored with them, changes."""


def section_names(spec: MonitorsSpec, layout: Layout) -> dict[str, str]:
    """Describe the estimator behind each section in words, by section name."""
    shown = [spec.name for spec in (*layout.fading, *layout.sliding, *layout.windows)]
    shown += ["landmark"] * bool(layout.landmark)
    names = dict(zip(column_names(layout), shown, strict=True))
    for group, whose in enumerate(["", *(f" of {each.models}" for each in spec.detectors_by_model)]):
        for kind in KINDS:
            alike = [f"{d.name}{whose}" for d in spec.detectors if isinstance(d, kind.spec)]
            own = (name for name, field, _ in record_names(spec, group) if field == kind.name)
            names = dict(zip(own, alike, strict=True)) | names
    drift_weightings = (name for name, field, _ in record_names(spec) if field == "drift_weighted")
    names |= dict(
        zip(drift_weightings, (f"drift-weighted {w.name}" for w in spec.drift_weighted), strict=True)
    )
    for name, field, _ in record_names(spec):
        if field == "recovery":
            names[name] = f"recovery of the error of {layout.fading[0].name}"
    for u in dict.fromkeys(spec.utilities) or (UtilitySpec(),):
        for opponent, name in zip(
            layout.opponents, verdict_names(spec, layout, utility_index(layout, u)), strict=True
        ):
            names[name] = f"verdict {opponent} by {u.kind}"
    return names


def column_names(layout: Layout) -> Iterator[str]:
    """Yield the section name of every column, in their order."""
    for f in layout.fading:
        yield fingerprint("fading", f, FADING, COLUMNS_VERSION)
    for s in layout.sliding:
        yield fingerprint("sliding", s, layout.ring, COLUMNS_VERSION)
    for w in layout.windows:
        yield fingerprint("adwin", w, WINDOW, (COLUMNS_VERSION, layout.ring.str))
    if layout.landmark:
        yield fingerprint("landmark", LandmarkSpec(), None, COLUMNS_VERSION)


def record_names(spec: MonitorsSpec, detector_row: int = 0) -> Iterator[tuple[str, str, int]]:
    """Yield (section name, field of the model's record, index in the field), where that is a whole estimator.

    `detector_row` is the number of the detectors' parameters (see `ModelTable.add_model`).
    """
    detectors = spec.detectors_by_model[detector_row - 1].detectors if detector_row else spec.detectors
    for kind in KINDS:
        alike = (d for d in detectors if isinstance(d, kind.spec))
        for j, detector in enumerate(alike):
            yield fingerprint(kind.name, detector, kind.state, kind.version), kind.name, j
    for j, delta in enumerate(label_drifts_of(spec.drift_weighted)):
        yield fingerprint("label_drift", delta, LABEL_DRIFT, VERSION), "label_drift", j
    for j, drift_weighted in enumerate(spec.drift_weighted):
        yield fingerprint("drift_weighted", drift_weighted, WEIGHTING, VERSION), "drift_weighted", j
    if watched_of(spec) is not None:
        yield fingerprint("recovery", recovery_identity(spec), RECOVERY, RECOVERY_VERSION), "recovery", 0
