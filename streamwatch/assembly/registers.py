"""Settings → what is kept of every model beside its estimators, and which detectors see which order."""

from __future__ import annotations

from streamwatch.core.estimators.registers.late_labels.register import LateLabelsSpec
from streamwatch.core.estimators.registers.prediction_clock.spec import PredictionClockSpec
from streamwatch.core.estimators.registers.probabilities.spec import probabilities_under
from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.predictions.early_hints import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.state import BUCKETS
from streamwatch.core.predictions.label_delays import LabelDelaysSpec
from streamwatch.core.specs import DetectorSpec, ModelDetectors, RegisterSpec
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.monitors.detectors import model_detectors
from streamwatch.settings.monitors.monitors import MonitorsSection
from streamwatch.settings.sections import OnExpiry


def label_detectors(settings: Settings) -> tuple[DetectorSpec, ...]:
    """Detectors that see outcomes in the order of their evaluation.

    All of them with `join.order: prediction_time`, as that is the order of predictions already.

    Raises
    ------
    SettingsError
        The clock of predictions, and models that predict in folds.
    """
    monitors, clocks = settings.monitors, settings.monitors.detector_clocks
    if "prediction" not in clocks.values() or settings.join.order == "prediction_time":
        return monitors.detectors
    if settings.folds.scheme is not None:
        raise SettingsError(
            f"monitors.detector_clocks: expected label where models predict in folds (folds.scheme), "
            f"got {clocks}"
        )
    return tuple(each for each in monitors.detectors if clocks.get(each.name) != "prediction")


def detectors_by_model(
    monitors: MonitorsSection, detectors: tuple[DetectorSpec, ...]
) -> tuple[ModelDetectors, ...]:
    """Give parameters by model of some of the detectors; none where there are no such detectors."""
    names = {each.name for each in detectors}
    by_model = model_detectors(monitors.detectors, monitors.detectors_by_model) if detectors else ()
    return tuple(
        ModelDetectors(each.models, tuple(own for own in each.detectors if own.name in names))
        for each in by_model
    )


def segment_names(settings: Settings) -> frozenset[str]:
    """Names of the segments of predictions of any topic."""
    return frozenset(
        name
        for topic in settings.topics.predictions
        for mapping in topic.all_mappings
        for name in mapping.segments
    )


def prediction_registers(settings: Settings) -> tuple[RegisterSpec, ...]:
    """Give what is kept of models' predictions as they arrive: they have to be those that count later."""
    found: list[RegisterSpec] = []
    hints = settings.monitors.early_hints
    if settings.join.conflicts == "last":
        for key, given, expected in (
            ("early_hints", hints is not None, "null"),
            ("label_delays", settings.monitors.label_delays, "false"),
        ):
            if given:
                raise SettingsError(
                    f"monitors.{key}: expected {expected} with join.conflicts: last, as it looks at "
                    "predictions when they arrive, which others may replace"
                )
    if hints is not None:
        bucket_ms = -(-3 * settings.join.horizon // (2 * BUCKETS))  # as those of late labels
        found.append(EarlyHintsSpec(hints.predictions, hints.delta, hints.reach, hints.max_models, bucket_ms))
    if settings.monitors.label_delays:
        found.append(LabelDelaysSpec(settings.join.horizon))
    return tuple(found)


def outcome_registers(settings: Settings) -> tuple[RegisterSpec, ...]:
    """Give what is kept of every model beside its estimators."""
    monitors = settings.monitors
    assumes = isinstance(settings.join.on_expiry, OnExpiry)
    found: list[RegisterSpec] = [LateLabelsSpec(settings.join.horizon, assumes)]
    if (scores := monitors.probabilities) is not None:
        found.append(probabilities_under(monitors.forgetting, scores.auc_outcomes, scores.max_auc_classes))
    if segment_names(settings):
        chosen = monitors.segments
        found.append(
            SegmentsSpec(
                chosen.alpha, chosen.max_values, chosen.measures, monitors.max_classes, chosen.max_total
            )
        )
    if settings.join.conflicts == "both":
        found.append(RevisionsSpec(settings.join.horizon, monitors.revisions.alpha))
    label = label_detectors(settings)
    if late := tuple(each for each in monitors.detectors if each not in label):
        found.append(
            PredictionClockSpec(
                settings.join.horizon, late, detectors_by_model(monitors, late), monitors.max_unsettled
            )
        )
    return tuple(found)
