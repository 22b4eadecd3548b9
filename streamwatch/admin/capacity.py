"""The memory and the disk that limits in the settings allow, from what one of each was measured to take."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.admin.model_room import Part, model_bytes
from streamwatch.admin.register_room import register_parts
from streamwatch.admin.series_room import model_series
from streamwatch.core.estimators.comparisons.table import comparison_bytes
from streamwatch.core.past import past_bytes
from streamwatch.core.specs import (
    COLUMN_ENTRY_BYTES,
    OUTSIDE_ENTRY_BYTES,
    JoinSpec,
    MonitorsSpec,
    columns_suffice,
    join_entries,
)
from streamwatch.edge.stores.rocksdb import RocksSpec
from streamwatch.edge.web.routes.history import MAX_VALUES

# Resident bytes each: measured over 200,000 of them with ids of 36 characters (260 to 295), and raised for
# ids of 128 and for the doubling of a dictionary.
PROCESS_BYTES = 270_000_000
OBJECT_BYTES = 420
ENTRY_BYTES = 160
"""Of the compiled join: 64 and up to 26 in its table, and 64 more while entries move to twice the room."""
HOT_BYTES = 1_200
"""An id with the predictions of three models and their label: 990 were measured, 550 with those of one."""
REORDERED_BYTES = 240
"""An outcome held for its order: 120 in arrays that are doubled when they are full."""
SERIES_BYTES = 600
"""Value, label texts and the last rendering of one series."""
SAMPLE_BYTES = 200
"""Value and label values of one series in a report."""
CLASS_BYTES = 40
"""All per-class series of a class in a report."""

HISTORY_BYTES = 4 * MAX_VALUES

# Bytes on disk each, after compaction (tests/bench/store.py); a label that waits is kept as a prediction is.
DISK_PENDING_BYTES = DISK_LABEL_BYTES = 50
DISK_DEDUP_ENTRY_BYTES = 45
DISK_COLUMN_BYTES = 40
"""Bytes of any entry of the compiled join (tests/bench/packed.py, tests/bench/cold.py)."""
DISK_OUTCOME_BYTES = 100
"""Bytes of an outcome in the journal, or waiting for its order."""
UNMERGED = 0.5
"""Of all these, what is overwritten or removed and not merged away yet, and what is being merged."""


@dataclass(frozen=True, slots=True)
class DiskSpec:
    """State on disk: memory does not grow with what is pending, unless it is joined in columns."""

    store: RocksSpec
    commit_events: int
    journal_outcomes: int
    in_columns: bool = False
    """Whether the join is compiled, and has entries in a table in memory."""
    table_entries: int = 0
    """So many of them; the others lie on disk."""

    @property
    def uncommitted(self) -> int:
        """Events that may wait for a commit: reading goes on while one is flushed."""
        return 2 * self.commit_events


def worst_case(join: JoinSpec, monitors: MonitorsSpec, disk: DiskSpec | None = None) -> list[Part]:
    """Memory with every bounded thing at its bound, the largest first; `disk` is None for state in memory."""
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
        *(_all_in_memory(join) if disk is None else _hot(join, disk)),
    ]
    if join.order == "prediction_time":
        held = f"{join.max_reordered:,} outcomes held for their order (join.max_reordered)"
        parts.append(Part(held, join.max_reordered * REORDERED_BYTES))
    return sorted(parts, key=lambda part: -part.bytes)


def _report_bytes(monitors: MonitorsSpec) -> int:
    """One model in a report, which is whole whatever `max_series` says."""
    each = model_series(monitors)
    return (each.total - each.of_class * each.classes) * SAMPLE_BYTES + each.classes * CLASS_BYTES


def _comparisons(monitors: MonitorsSpec) -> list[Part]:
    """Pairs of models, where any are compared; their snapshot is made whole."""
    if not monitors.comparisons:
        return []
    size = 2 * monitors.max_comparisons * comparison_bytes(monitors)
    return [Part(f"{monitors.max_comparisons:,} comparisons (monitors.max_comparisons)", size)]


def _pasts(monitors: MonitorsSpec) -> list[Part]:
    """What is kept of each model's past: on disk as in memory."""
    if not monitors.history_days:
        return []
    days, models = monitors.history_days, monitors.max_models
    size = models * past_bytes(days)
    return [Part(f"{days} days of the past of {models:,} models (monitors.history_days, max_models)", size)]


def _all_in_memory(join: JoinSpec) -> list[Part]:
    each = ENTRY_BYTES if columns_suffice(join) else OBJECT_BYTES
    return [
        Part(f"{join.max_pending:,} pending predictions (join.max_pending)", join.max_pending * each),
        Part(f"{join.max_labels:,} waiting labels (join.max_labels)", join.max_labels * each),
        Part(
            f"{join.max_dedup_entries:,} resolved predictions remembered (join.max_dedup_entries)",
            join.max_dedup_entries * each,
        ),
    ]


def _hot(join: JoinSpec, disk: DiskSpec) -> list[Part]:
    """Ids in memory: those touched last, those due next of three kinds, those of the next commits."""
    store = disk.store
    blocks = Part(
        "blocks read from disk, and what is to be written", store.cache_bytes + store.write_buffer_bytes
    )
    if disk.in_columns:
        entries = join_entries(join)
        # More than the limit may be in it while a batch is joined: a table doubles when it is full.
        table = min(entries, 2 * disk.table_entries)
        outside = max(0, entries - disk.table_entries)
        return [
            Part(f"{table:,} entries of the join (state.join_memory_megabytes)", table * COLUMN_ENTRY_BYTES),
            Part(f"filters of {outside:,} entries on disk (limits of join)", outside * OUTSIDE_ENTRY_BYTES),
            blocks,
        ]
    return [
        Part(
            f"{store.cache_entries:,} ids served from memory (state.cache_entries), and those due next",
            (store.cache_entries + 3 * store.expiry_cache_entries) * HOT_BYTES,
        ),
        Part(
            f"{disk.uncommitted:,} events between commits (2 x state.commit_events)",
            disk.uncommitted * OBJECT_BYTES,
        ),
        blocks,
    ]


def worst_case_disk(join: JoinSpec, monitors: MonitorsSpec, disk: DiskSpec) -> list[Part]:
    """Disk with every bounded thing at its bound, the largest first."""
    models = monitors.max_models
    held = join.max_reordered if join.order == "prediction_time" else 0
    each = (DISK_PENDING_BYTES, DISK_LABEL_BYTES, DISK_DEDUP_ENTRY_BYTES)
    pending, label, dedup = (DISK_COLUMN_BYTES,) * 3 if disk.in_columns else each
    parts = [
        Part(f"{join.max_pending:,} pending predictions (join.max_pending)", join.max_pending * pending),
        Part(f"{join.max_labels:,} waiting labels (join.max_labels)", join.max_labels * label),
        Part(
            f"{join.max_dedup_entries:,} resolved predictions remembered (join.max_dedup_entries)",
            join.max_dedup_entries * dedup,
        ),
        *_comparisons(monitors),
        *_pasts(monitors),
        *register_parts(join, monitors),
        Part(f"snapshots of {models:,} models (monitors.max_models)", models * model_bytes(monitors)),
        Part(
            f"{disk.journal_outcomes + held:,} outcomes (state.journal_outcomes, join.max_reordered)",
            (disk.journal_outcomes + held) * DISK_OUTCOME_BYTES,
        ),
    ]
    unmerged = round(UNMERGED * sum(part.bytes for part in parts))
    parts.append(Part("what is overwritten and not merged away yet", unmerged))
    parts.append(Part("the write-ahead log", 2 * disk.store.write_buffer_bytes))
    return sorted(parts, key=lambda part: -part.bytes)
