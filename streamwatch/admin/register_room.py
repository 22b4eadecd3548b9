"""The memory, and likewise the disk, that registers of models and of predictions may take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from streamwatch.admin.model_room import Part, model_bytes
from streamwatch.core.estimators.registers.late_labels.register import LATE_LABELS_BYTES, LateLabelsSpec
from streamwatch.core.estimators.registers.prediction_clock.spec import PredictionClockSpec
from streamwatch.core.estimators.registers.prediction_clock.spec import table_spec as table_of_clock
from streamwatch.core.estimators.registers.probabilities.spec import ProbabilitiesSpec
from streamwatch.core.estimators.registers.probabilities.state import empty
from streamwatch.core.estimators.registers.revisions import REVISIONS_BYTES, RevisionsSpec
from streamwatch.core.estimators.registers.segments import SegmentsSpec, table_spec
from streamwatch.core.estimators.registers.segments.values import CANDIDATES
from streamwatch.core.join.compiled.names import MOST_SEGMENTS
from streamwatch.core.predictions.early_hints import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.state import CLASSES, EARLY
from streamwatch.core.predictions.label_delays import LabelDelaysSpec
from streamwatch.core.predictions.label_delays.register import BUCKETS
from streamwatch.core.specs import JoinSpec, MonitorsSpec, columns_suffice

NAME_BYTES: Final = 200
"""Name of a class or of a segment's value, and its place in a dictionary."""
VALUE_BYTES: Final = 600
"""What is counted of a segment's value beside its estimates, its name, and where it is found."""
CANDIDATE_BYTES: Final = 400
"""A value that is counted, with its name, and that of one that is not needed any more."""
COMBINATION_BYTES: Final = 600
"""Text of the values of all segments of a prediction, its number, and what it was last read as."""
STRETCH_BYTES: Final = 600
"""What the counts of a stretch of label delays take with its place in a dictionary: 557 were measured."""
UNSETTLED_BYTES: Final = 16
"""An outcome held back for detectors in prediction time."""
_STRETCHES: Final = 2 * BUCKETS - 1
"""Of prediction time, behind the newest record and ahead of it."""


def register_parts(join: JoinSpec, monitors: MonitorsSpec) -> Iterator[Part]:
    """Say what each register of the settings takes at its limit, in memory and on disk alike."""
    models = monitors.max_models
    for spec in monitors.registers:
        match spec:
            case LateLabelsSpec():
                yield Part(
                    f"late labels of {models:,} models (monitors.max_models)", models * LATE_LABELS_BYTES
                )
            case ProbabilitiesSpec():
                yield Part(
                    f"probabilities of {models:,} models (monitors.max_models, probabilities)",
                    models * probabilities_bytes(spec, monitors.max_classes),
                )
            case RevisionsSpec():
                yield Part(f"revisions of {models:,} models (monitors.max_models)", models * REVISIONS_BYTES)
            case SegmentsSpec():
                yield from _segments(spec, join)
            case PredictionClockSpec():
                yield Part(
                    f"outcomes held back for detectors in prediction time, {models:,} models "
                    f"(monitors.max_models, max_unsettled)",
                    models * (UNSETTLED_BYTES * spec.max_unsettled + model_bytes(table_of_clock(spec, 1))),
                )
            case _:
                raise TypeError(f"expected a register whose memory is known, got {spec!r}")
    for spec in join.prediction_registers:
        match spec:
            case EarlyHintsSpec():
                yield Part(
                    f"early hints of {spec.max_models:,} models (monitors.early_hints.max_models)",
                    spec.max_models * EARLY_HINTS_BYTES,
                )
            case LabelDelaysSpec():
                yield Part(
                    f"label delays of {join.max_models:,} models (monitors.max_models)",
                    join.max_models * label_delays_bytes(spec),
                )
            case _:
                raise TypeError(f"expected a register of predictions whose memory is known, got {spec!r}")


def probabilities_bytes(spec: ProbabilitiesSpec, max_classes: int) -> int:
    """Bytes of a model whose outcomes have had scores of `max_classes` classes."""
    kept = empty(spec)
    kept.make_room(max_classes, spec.max_auc_classes)
    arrays = (kept.state, kept.landmark, kept.fading, kept.windows, kept.ring, kept.labels, kept.scores)
    return sum(array.nbytes for array in (*arrays, kept.reliability, kept.curve))


EARLY_HINTS_BYTES: Final = EARLY.itemsize + CLASSES * NAME_BYTES
"""Bytes of one model."""


def label_delays_bytes(spec: LabelDelaysSpec) -> int:
    """Bytes of a model with all its predicted classes, predictions in every stretch of time."""
    return (spec.max_classes + 1) * (_STRETCHES * STRETCH_BYTES + NAME_BYTES)


def _segments(spec: SegmentsSpec, join: JoinSpec) -> Iterator[Part]:
    """Rows of the table that all models share, and the values that predictions wait with."""
    limits = "monitors.segments.max_total, max_values"
    yield Part(
        f"{spec.max_total:,} values of segments, {spec.max_classes:,} classes each ({limits}, max_classes)",
        spec.max_total * (model_bytes(table_spec(spec)) + VALUE_BYTES),
    )
    # Others are counted only where a segment has as many values of its own as it may.
    others = spec.max_total // spec.max_values * CANDIDATES
    yield Part(
        f"{others:,} values of segments that are counted to come in the place of others ({limits})",
        others * CANDIDATE_BYTES,
    )
    if columns_suffice(join):
        yield Part(
            f"{MOST_SEGMENTS:,} combinations of segments' values that predictions wait with",
            MOST_SEGMENTS * COMBINATION_BYTES,
        )


def reachable(spec: SegmentsSpec, segments: int, models: int) -> SegmentsSpec:
    """Lower the limit of all values together to what so many models with so many segments can reach."""
    return replace(spec, max_total=min(spec.max_total, models * segments * (spec.max_values + 1)))
