"""Worst-case memory and disk that the limits of the settings allow, from measured sizes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from streamwatch.admin.kafka_check import CheckResult
from streamwatch.admin.series_count import model_series
from streamwatch.admin.sizes import size_text
from streamwatch.core.estimators.comparisons.cohorts import pair_cohort_bytes
from streamwatch.core.estimators.comparisons.table import comparison_bytes
from streamwatch.core.estimators.kernel.layout import layout_of
from streamwatch.core.estimators.kernel.shadow import shadow_words
from streamwatch.core.estimators.memory import HEADER
from streamwatch.core.estimators.past import past_bytes
from streamwatch.core.estimators.registers.cohorts import CohortsSpec, bytes_of
from streamwatch.core.estimators.registers.late_labels.register import LATE_LABELS_BYTES, LateLabelsSpec
from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.estimators.registers.prediction_clock import table_spec as table_of_clock
from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.estimators.registers.probabilities.observe import empty
from streamwatch.core.estimators.registers.revisions import REVISIONS_BYTES, RevisionsSpec
from streamwatch.core.estimators.registers.segments import SegmentsSpec, table_spec
from streamwatch.core.estimators.registers.segments.observe import CANDIDATES
from streamwatch.core.join.names import MOST_SEGMENTS
from streamwatch.core.pipeline.journal import ROOM, limit_of
from streamwatch.core.predictions.early_hints import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.observe import CLASSES, EARLY
from streamwatch.core.predictions.label_delays import BUCKETS, LabelDelaysSpec
from streamwatch.core.predictions.sampled_labels import SAMPLED_LABELS_BYTES, SampledLabelsSpec
from streamwatch.core.predictions.sampled_labels.observe import CLASSES as SAMPLED_CLASSES
from streamwatch.core.specs import (
    COLUMN_ENTRY_BYTES,
    OUTSIDE_ENTRY_BYTES,
    JoinSpec,
    MonitorsSpec,
    join_entries,
    side_bytes,
)
from streamwatch.edge.stores.kind import StateRefused
from streamwatch.edge.stores.rocksdb import RocksSpec
from streamwatch.edge.stores.rocksdb.database import SCHEMA, size_on_disk, translated
from streamwatch.edge.stores.rocksdb.opening import (
    LOCK,
    holder,
    read_format,
    require_schema,
    unexpected_files,
)
from streamwatch.edge.web.routes.history import MAX_VALUES

BLOCK_ROWS = 22
BLOCKS_PER_ROW = 6
"""Rows, and large buckets in each, for which an ADWIN window of up to 2^31 outcomes keeps class counts."""


@dataclass(frozen=True, slots=True)
class Part:
    """One consumer of memory or disk at its limit."""

    what: str
    """Description with the settings that limit it."""
    bytes: int


def model_bytes(spec: MonitorsSpec) -> int:
    """Bytes of a model with `max_classes` classes, never drifted: record, ring, counts, buckets, shadow."""
    layout = layout_of(spec)
    span = 1 << (layout.max_classes - 1).bit_length()
    buckets = len(layout.windows) * BLOCK_ROWS * BLOCKS_PER_ROW * 4 * (HEADER + 3 * span)
    shadow = 8 * shadow_words(min(layout.shadow_classes, layout.max_classes))
    ring = layout.ring.itemsize * layout.ring_size
    return layout.model.itemsize + ring + 24 * layout.columns * span + buckets + shadow


NAME_BYTES: Final = 200
"""Bytes of a name of a class or of a segment's value, with its entry in a dictionary."""
VALUE_BYTES: Final = 600
"""Bytes of a segment's value beside its estimates: its counts, name and index entry."""
CANDIDATE_BYTES: Final = 400
"""Bytes of a segment's value that is only counted: its count and name, and the name of an unused value."""
COMBINATION_BYTES: Final = 600
"""Bytes of a combination of segments' values: text, number, and the parsed values."""
STRETCH_BYTES: Final = 600
"""Bytes of the counts of label delays for a stretch of time, with the dictionary entry (557 measured)."""
UNSETTLED_BYTES: Final = 16
"""Bytes of an outcome held back for detectors in prediction time."""
_STRETCHES: Final = 2 * BUCKETS - 1
"""Most stretches of prediction time, before and after the newest record."""


def register_parts(join: JoinSpec, monitors: MonitorsSpec) -> Iterator[Part]:
    """Yield what each register of the settings takes at its limit, in memory as well as on disk."""
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
            case CohortsSpec():
                yield Part(
                    f"verdicts by cohorts of {models:,} models (monitors.max_models, max_classes)",
                    models * bytes_of(spec.max_classes + 1, by_costs=bool(spec.cost_utilities())),
                )
            case SegmentsSpec():
                yield from _segments(spec)
            case PredictionClockSpec():
                yield Part(
                    f"outcomes held back for detectors in prediction time, {models:,} models "
                    f"(monitors.max_models, max_unsettled)",
                    models * (UNSETTLED_BYTES * spec.max_unsettled + model_bytes(table_of_clock(spec, 1))),
                )
            case _:
                raise TypeError(f"expected a register whose memory is known, got {spec!r}")
    yield from _prediction_parts(join)


def _prediction_parts(join: JoinSpec) -> Iterator[Part]:
    """Yield what each register of predictions takes at its limit."""
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
            case SampledLabelsSpec():
                yield Part(
                    f"sampled labels of {spec.max_models:,} models (monitors.max_models)",
                    spec.max_models * (SAMPLED_LABELS_BYTES + SAMPLED_CLASSES * NAME_BYTES),
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
"""Bytes of the early hints of a model."""


def label_delays_bytes(spec: LabelDelaysSpec) -> int:
    """Bytes of the label delays of a model with predictions of all classes in every stretch of time."""
    return (spec.max_classes + 1) * (_STRETCHES * STRETCH_BYTES + NAME_BYTES)


def _segments(spec: SegmentsSpec) -> Iterator[Part]:
    """Yield what segments take: values with estimates, counted values, and combinations of values."""
    limits = "monitors.segments.max_total, max_values"
    yield Part(
        f"{spec.max_total:,} values of segments, {spec.max_classes:,} classes each ({limits}, max_classes)",
        spec.max_total * (model_bytes(table_spec(spec)) + VALUE_BYTES),
    )
    # Further values are counted only once a segment has `max_values` of its own.
    others = spec.max_total // spec.max_values * CANDIDATES
    yield Part(
        f"{others:,} values of segments that are counted to replace others ({limits})",
        others * CANDIDATE_BYTES,
    )
    yield Part(
        f"{MOST_SEGMENTS:,} combinations of segments' values that predictions wait with",
        MOST_SEGMENTS * COMBINATION_BYTES,
    )


def reachable(spec: SegmentsSpec, segments: int, models: int) -> SegmentsSpec:
    """Lower `max_total` to the number of values that `models` models with `segments` segments can reach."""
    return replace(spec, max_total=min(spec.max_total, models * segments * (spec.max_values + 1)))


PROCESS_BYTES = 270_000_000
"""Bytes of the process without models and entries."""
ENTRY_BYTES = 160
"""Bytes of an entry of the join in memory: 64 and up to 26 in its table, 64 more while the table grows."""
REORDERED_BYTES = 250
"""Bytes of an outcome held for its order: 124, in arrays that double when they are full."""
PAIR_BYTES = 24
"""Bytes of a pair of a held outcome: 12, in a pool that doubles; there are fewer pairs than outcomes."""
SERIES_BYTES = 600
"""Bytes of a series in a scrape: value, label texts and the last rendering."""
SAMPLE_BYTES = 200
"""Bytes of a series in a report: value and label values."""
CLASS_BYTES = 40
"""Bytes of all per-class series of a class in a report."""

SECTION_BYTES = 4_000
"""Bytes of a model in the sections that a commit is compared with: its activity, and its open incidents, of
which one takes 2,200 with the longest name."""

HISTORY_BYTES = 4 * MAX_VALUES

DISK_ENTRY_BYTES = 40
"""Bytes on disk of any entry of the join (tests/bench/packed.py, tests/bench/cold.py)."""
DISK_OUTCOME_BYTES = 20
"""Bytes of an outcome without scores: 7 to 10 in the journal, 19 while it waits for its order
(tests/admin/test_journal_room.py). Each score takes 1 to 8 more; settings do not say how many there are."""
JOURNAL_BYTES = ROOM + DISK_OUTCOME_BYTES
"""Bytes of the journal for each outcome of its limit: those that snapshots cover stay while there is room,
and then all are replaced while as much as the limit is added."""
UNMERGED = 0.5
"""Share of the live data on disk that overwritten data and running merges may take in addition."""


@dataclass(frozen=True, slots=True)
class DiskSpec:
    """Limits of a state on disk."""

    store: RocksSpec
    journal_outcomes: int
    """Most outcomes of the journal that are evaluated again at a start, of up to `journal.MODELS` models."""
    table_entries: int
    """Entries of the join that stay in memory; the others are on disk."""


def worst_case(join: JoinSpec, monitors: MonitorsSpec, disk: DiskSpec | None = None) -> list[Part]:
    """List the memory of each part at its limit, the largest first; `disk` is None for state in memory."""
    models = monitors.max_models
    parts = [
        Part("the process itself", PROCESS_BYTES),
        Part(
            f"{models:,} models of {monitors.max_classes:,} classes each (monitors.max_models, max_classes)",
            models * model_bytes(monitors),
        ),
        *_comparisons(monitors),
        Part(f"{monitors.max_series:,} series (monitors.max_series)", monitors.max_series * SERIES_BYTES),
        Part(
            f"reports of all series of {models:,} models (monitors.max_models, max_classes)",
            2 * models * _report_bytes(monitors),
        ),
        Part("the recent past of models, for the status page", HISTORY_BYTES),
        *_pasts(monitors),
        *register_parts(join, monitors),
        _sections(join, monitors),
        *(_entries(join, ENTRY_BYTES + 2 * side_bytes(join)) if disk is None else _table(join, disk)),
    ]
    if join.order == "prediction_time":
        held = f"{join.max_reordered:,} outcomes held for their order (join.max_reordered)"
        each = REORDERED_BYTES + PAIR_BYTES * len({compared.champion for compared in join.comparisons})
        parts.append(Part(held, join.max_reordered * each))
    return sorted(parts, key=lambda part: -part.bytes)


def _sections(join: JoinSpec, monitors: MonitorsSpec) -> Part:
    """Return the part of the sections of the last commit, which the next is compared with."""
    models = monitors.max_models
    registers = sum(part.bytes for part in _prediction_parts(join))
    compared = sum(part.bytes for part in _comparisons(monitors)) // 2
    return Part(
        f"sections of the last commit, to write what changes, of {models:,} models (monitors.max_models)",
        models * SECTION_BYTES + registers + compared,
    )


def _report_bytes(monitors: MonitorsSpec) -> int:
    """Bytes of one model in a report, which has all series, regardless of `max_series`."""
    each = model_series(monitors)
    return (each.total - each.of_class * each.classes) * SAMPLE_BYTES + each.classes * CLASS_BYTES


def _comparisons(monitors: MonitorsSpec) -> list[Part]:
    """Return the part of compared pairs, twice for their snapshot; empty without comparisons."""
    if not monitors.comparisons:
        return []
    cohorts = (pair_cohort_bytes(each) for each in monitors.registers if isinstance(each, CohortsSpec))
    each = comparison_bytes(monitors) + sum(cohorts)
    size = 2 * monitors.max_comparisons * each
    return [Part(f"{monitors.max_comparisons:,} comparisons (monitors.max_comparisons)", size)]


def _pasts(monitors: MonitorsSpec) -> list[Part]:
    """Return the part of the models' past, the same on disk as in memory; empty without a history."""
    if not monitors.history_days:
        return []
    days, models = monitors.history_days, monitors.max_models
    size = models * past_bytes(days)
    return [Part(f"{days} days of the past of {models:,} models (monitors.history_days, max_models)", size)]


def _entries(join: JoinSpec, each: int) -> list[Part]:
    """Return the parts of the join's entries, if each entry has that many bytes."""
    return [
        Part(f"{join.max_pending:,} pending predictions (join.max_pending)", join.max_pending * each),
        Part(f"{join.max_labels:,} waiting labels (join.max_labels)", join.max_labels * each),
        Part(
            f"{join.max_dedup_entries:,} resolved predictions remembered (join.max_dedup_entries)",
            join.max_dedup_entries * each,
        ),
    ]


def _table(join: JoinSpec, disk: DiskSpec) -> list[Part]:
    """Return the parts of a join with entries on disk: its table, filters of the others, RocksDB's memory."""
    store, entries = disk.store, join_entries(join)
    # A full table doubles, so that it may have twice the limit while a batch is joined.
    table = min(entries, 2 * disk.table_entries)
    outside = max(0, entries - disk.table_entries)
    return [
        Part(
            f"{table:,} entries of the join (state.join_memory_megabytes)",
            table * (COLUMN_ENTRY_BYTES + side_bytes(join)),
        ),
        Part(f"filters of {outside:,} entries on disk (limits of join)", outside * OUTSIDE_ENTRY_BYTES),
        Part(
            "blocks read from disk, and what is to be written", store.cache_bytes + store.write_buffer_bytes
        ),
    ]


def worst_case_disk(join: JoinSpec, monitors: MonitorsSpec, disk: DiskSpec) -> list[Part]:
    """List the disk of each part at its limit, the largest first."""
    models = monitors.max_models
    held = join.max_reordered if join.order == "prediction_time" else 0
    again = limit_of(disk.journal_outcomes, models)
    parts = [
        *_entries(join, DISK_ENTRY_BYTES),
        *_comparisons(monitors),
        *_pasts(monitors),
        *register_parts(join, monitors),
        Part(f"snapshots of {models:,} models (monitors.max_models)", models * model_bytes(monitors)),
        Part(
            f"the journal, with {again:,} outcomes without scores to be evaluated again "
            f"(state.journal_outcomes{', monitors.max_models' if again > disk.journal_outcomes else ''})",
            again * JOURNAL_BYTES,
        ),
        *_held(held),
    ]
    unmerged = round(UNMERGED * sum(part.bytes for part in parts))
    parts.append(Part("what is overwritten and not merged away yet", unmerged))
    parts.append(Part("the write-ahead log", 2 * disk.store.write_buffer_bytes))
    return sorted(parts, key=lambda part: -part.bytes)


def _held(outcomes: int) -> list[Part]:
    what = f"{outcomes:,} outcomes without scores that wait for their order (join.max_reordered)"
    return [Part(what, outcomes * DISK_OUTCOME_BYTES)] if outcomes else []


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of memory and disk."""

    join: JoinSpec
    monitors: MonitorsSpec
    disk: DiskSpec | None
    """Limits of a state on disk; None if it is in memory."""
    directory: Path
    """Directory of the state on disk."""
    min_free_bytes: int
    """Free bytes on the disk below which reading pauses."""


def check_worst_case(limits: Limits) -> CheckResult:
    """Report the most memory that the limits allow; never a failure."""
    return _worst("memory", worst_case(limits.join, limits.monitors, limits.disk))


def check_worst_case_disk(limits: Limits, disk: DiskSpec) -> CheckResult:
    """Report the most disk that the limits allow; never a failure."""
    return _worst("disk", worst_case_disk(limits.join, limits.monitors, disk))


def _worst(what: str, parts: Sequence[Part]) -> CheckResult:
    total = sum(part.bytes for part in parts)
    return CheckResult(
        f"worst-case {what}: {size_text(total)}, if every limit is reached at once",
        good=True,
        details=tuple(f"{size_text(part.bytes):>8}  {part.what}" for part in parts),
        folded=True,
    )


class DirectoryCheck(NamedTuple):
    """Result of the check of a state directory."""

    result: CheckResult
    room: int = 0
    """Bytes that the state can have before reading pauses; 0 if the directory cannot be used."""


def check_directory(directory: Path | None, least_free: int) -> DirectoryCheck:
    """Check that a state can be opened or begun in a directory, and that its disk has room.

    Parameters
    ----------
    directory
        Directory of the state; None if the state is in memory.
    least_free
        Free bytes below which reading pauses.
    """
    if directory is None:
        return DirectoryCheck(CheckResult("state in memory: a restart reads the topics again", good=True))
    try:
        found = state_dir_status(directory)
    except StateRefused as error:
        return DirectoryCheck(CheckResult(str(error), good=False))
    nearest = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        problem = f"state.directory: {nearest} cannot be written by user {os.getuid()}"
        return DirectoryCheck(CheckResult(problem, good=False))
    usage = shutil.disk_usage(nearest)
    if not usage.total:
        problem = (
            f"state.directory: {nearest} is on no disk: expected a directory on a file system with space"
        )
        return DirectoryCheck(CheckResult(problem, good=False))
    free = usage.free
    pauses = f"reading pauses below {size_text(least_free)} (state.min_free_megabytes)"
    if free < least_free:
        short = f"state.directory: {size_text(free)} are free on the disk of {nearest}, {pauses}"
        return DirectoryCheck(CheckResult(short, good=False))
    details = (f"{size_text(free)} are free; {pauses}",)
    what = f"state in {directory}: {found.text}"
    return DirectoryCheck(CheckResult(what, good=True, details=details), free + found.bytes - least_free)


def check_state(limits: Limits) -> Sequence[CheckResult]:
    """Check that the state can be opened or begun, that the disk has room, and report the worst case."""
    disk = limits.disk
    result, room = check_directory(None if disk is None else limits.directory, limits.min_free_bytes)
    if disk is None:
        return [result]
    worst = check_worst_case_disk(limits, disk)
    largest = sum(part.bytes for part in worst_case_disk(limits.join, limits.monitors, disk))
    if result.good and largest > room:
        less = f"less than the worst case: reading would pause when the state takes {size_text(room)}"
        result = replace(result, details=(*result.details, less))
    return [result, worst]


@dataclass(frozen=True, slots=True)
class StateDirStatus:
    """Status of a state directory before a start."""

    text: str
    """Description of what a start does with it."""
    bytes: int = 0
    """Size of the existing state."""


def state_dir_status(directory: Path) -> StateDirStatus:
    """Examine a state directory without opening the state.

    Raises
    ------
    StateRefused
        If a daemon could neither begin nor continue a state there.
    """
    if not directory.exists():
        return StateDirStatus("begins anew")
    try:
        written = read_format(directory)
        if written is not None:
            require_schema(directory, written, converts=True)
    except StateRefused as error:
        raise StateRefused(f"state.directory: {error}") from error
    except OSError as error:
        raise StateRefused(f"state.directory: {translated(error, directory)}") from error
    if written is None:
        unexpected = unexpected_files(directory)
        if unexpected and not (directory / LOCK).exists():
            raise StateRefused(
                f"state.directory: {directory} is not empty and holds no state (there is {min(unexpected)!r})"
            )
        return StateDirStatus("begins anew")
    size = size_on_disk(directory)
    text = f"goes on from {written.identity}, {size_text(size)}"
    if written.schema < SCHEMA:
        text += f", and converts it from schema {written.schema} to {SCHEMA}"
    process = holder(directory)
    if process is not None:
        text += f"; in use by process {process} now" if process else "; in use now"
    return StateDirStatus(text, size)
