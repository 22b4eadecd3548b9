"""Contents of a state, read without a daemon by the decoders of its parts."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.outbox import Entry
from streamwatch.core.alerting.rules import AlarmsSpec
from streamwatch.core.commit.checkpoint import ESTIMATORS, PAIRS, PIPELINE, SETTINGS, ModelCheckpoint
from streamwatch.core.commit.outcome_columns import read
from streamwatch.core.commit.sections import spec_of
from streamwatch.core.estimators.comparisons.set import ComparisonSet, without
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.events import Alarm, Outcome
from streamwatch.core.join.compiled.durable.restoring import WaitingEntries, read_values
from streamwatch.core.join.compiled.layout import PREDICTIONS
from streamwatch.core.join.compiled.outside.examining import entries_outside, examine
from streamwatch.core.join.compiled.outside.overflow import Overflow
from streamwatch.core.join.compiled.outside.spec import OverflowSpec
from streamwatch.core.merge import MergeProgress
from streamwatch.core.pipelines.column_pipeline import ColumnPipeline
from streamwatch.core.pipelines.pipeline import Pipeline
from streamwatch.core.series import Family
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.daemon import MERGE, POSITIONS, SourcePositions, decode_positions, restored_progress
from streamwatch.daemon.alerting import ALARMS
from streamwatch.edge.keys import digest_bytes
from streamwatch.edge.stores.rocksdb.reading.inspect import Inspection
from streamwatch.edge.stores.rocksdb.reading.runs_read import ReadRuns
from streamwatch.edge.stores.rocksdb.reading.verify import Faults

SECTIONS = (PIPELINE, ESTIMATORS, SETTINGS, POSITIONS)
"""Without these nobody goes on from a commit."""

UNREADABLE = (ValueError, LookupError, TypeError)
"""What decoders raise about bytes that are not theirs."""

_SETTINGS = msgspec.msgpack.Decoder(tuple[bytes, dict[str, str]])
_KEPT = msgspec.msgpack.Decoder(ModelCheckpoint)
_ENTRY = msgspec.msgpack.Decoder(Entry)


@contextmanager
def decoding(what: str, faults: Faults) -> Generator[None]:
    """Count what cannot be decoded in the block as a fault."""
    try:
        yield
    except UNREADABLE as error:
        faults.add(f"{what} cannot be decoded ({type(error).__name__}: {error})")


class _Nobody:
    """Stands where the estimators stand: nothing is evaluated here."""

    @property
    def records_over_limit(self) -> Mapping[str, int]:
        return {}

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        raise AssertionError(f"only looked at: {len(outcomes)} outcomes are not evaluated")

    def retire(self, model: str) -> None:
        raise AssertionError(f"only looked at: {model} is not retired")

    def models(self) -> Sequence[str]:
        return ()

    def families(self) -> list[Family]:
        return []


def pipeline_of(state: Inspection) -> Pipeline:
    """Join without entries, counters and record time as the last commit left them, in columns or not.

    Raises DecodeError and KeyError.
    """
    pipeline = Pipeline(JoinSpec(), _Nobody())
    pipeline.restore(state.sections[PIPELINE])
    pipeline.order.take_back(dict(state.items("held")))
    return pipeline


def check_columns(state: Inspection, faults: Faults) -> str:
    """Restore a compiled join from its values, which compares them with each other and with its totals."""
    sizes = [len(key) + len(value) for key, value in state.items("columns")]
    with decoding("the entries in columns", faults):
        runs = ReadRuns(state)
        overflow = Overflow(runs, OverflowSpec(0), clean=False)
        pipeline = ColumnPipeline(JoinSpec(max_models=2**20), _Nobody(), digest_bytes, overflow)
        pipeline.restore(state.sections[PIPELINE], state.items("columns"))
        outside = _check_outside(runs, pipeline, overflow, faults)
        for rule in pipeline.identities():
            faults.add(rule)
        waiting = sum(gauge(pipeline, "pending_predictions").values())
        labels = sum(gauge(pipeline, f"labels_{name}")[()] for name in ("waiting", "retained"))
        settled = gauge(pipeline, "dedup_entries")[()]
        return (
            f"{waiting:,.0f} predictions and {labels:,.0f} labels wait, {settled:,.0f} dedup entries, "
            f"in {len(sizes):,} values of {sum(sizes):,} bytes{outside}"
        )
    return f"{len(sizes):,} values of {sum(sizes):,} bytes"


def _check_outside(runs: ReadRuns, pipeline: ColumnPipeline, overflow: Overflow, faults: Faults) -> str:
    """Read all entries outside the table and compare them with what is counted; in words, if any."""
    examined = examine(runs, overflow.cold.floor)
    for fault in examined.faults:
        faults.add(fault)
    settled = {generation: count for generation, count in examined.settled.items() if count}
    if settled != overflow.settled:
        faults.add(f"expected cold dedup entries {overflow.settled} by generation, got {settled}")
    unmatched = pipeline.unmatched_outside
    if examined.unmatched != unmatched:
        faults.add(f"expected {unmatched} cold labels that met nobody, got {examined.unmatched}")
    if not overflow.cold.runs:
        return ""
    return f", {examined.by_queue.total():,} of them in {overflow.cold.runs} cold runs"


def pending_in_columns(state: Inspection) -> dict[str, NDArray[np.int64]]:
    """Record times of predictions that wait, by model; raises ValueError."""
    values = read_values(state.items("columns"))
    models, record_ms = WaitingEntries(values).pending()
    for queue, entries in entries_outside(ReadRuns(state), 0):
        if queue == PREDICTIONS:
            models = np.concatenate([models, entries["model"].astype(np.int64)])
            record_ms = np.concatenate([record_ms, entries["record_ms"]])
    return {values.models[number]: record_ms[models == number] for number in np.unique(models).tolist()}


def gauge(pipeline: Pipeline | ColumnPipeline, name: str) -> dict[tuple[str, ...], float]:
    """A series of the join by its labels."""
    return next(
        {labels: float(value) for labels, value in family.samples}  # pyright: ignore[reportArgumentType]
        for family in pipeline.join_families()
        if family.name == name
    )


def places_of(state: Inspection) -> SourcePositions:
    """Read the positions at which reading goes on; raises DecodeError and KeyError."""
    return decode_positions(state.sections[POSITIONS])


def progress_of(state: Inspection) -> MergeProgress:
    """Read how far the merged sequence was evaluated; raises DecodeError and KeyError."""
    return restored_progress(state.sections[MERGE])


def incidents_of(state: Inspection) -> Sequence[Notification]:
    """Open incidents, each as its last notification; raises ValueError."""
    book = AlarmBook(AlarmsSpec(), state.identity)
    if ALARMS in state.sections:
        book.restore(state.sections[ALARMS])
    return book.open_incidents()


def outbox_of(state: Inspection) -> dict[str, Entry]:
    """Notifications owed, by id; raises DecodeError."""
    return {key.decode(): _ENTRY.decode(value) for key, value in state.items("outbox")}


def kept_of(value: bytes) -> ModelCheckpoint:
    """Decode the checkpoint of one model; raises DecodeError."""
    return _KEPT.decode(value)


def outcomes_of(value: bytes) -> Sequence[Outcome]:
    """An entry of the journal; raises ValueError."""
    return read(value)


def estimators_of(state: Inspection) -> tuple[MonitorsSpec, Mapping[str, str]]:
    """The settings of the estimators, and the sections of their snapshots; raises ValueError, KeyError."""
    document, sections = _SETTINGS.decode(state.sections[SETTINGS])
    return spec_of(document)[0], sections


def monitors_of(state: Inspection, spec: MonitorsSpec) -> EstimatorSet:
    """Estimators under the settings of the state, with what is remembered of all models together."""
    monitors = EstimatorSet(spec)
    monitors.restore_totals(state.sections[ESTIMATORS])
    return monitors


def check_comparisons(state: Inspection, faults: Faults) -> int:
    """Put the snapshot of comparisons back: it must come out the same; its size in bytes, 0 without one."""
    if PAIRS not in state.sections:
        return 0
    with decoding("what is kept of comparisons", faults):
        spec, written = estimators_of(state)
        comparisons = ComparisonSet(spec)
        now = comparisons.estimators().keys()
        kept = kept_of(state.sections[PAIRS])
        if kept.place.commit > state.manifest.commits:
            faults.add(f"comparisons are of commit {kept.place.commit}, later than the last")
        if spec.comparisons:  # else it is left from settings that asked for some
            snapshot = kept.snapshot or b""
            comparisons.restore(snapshot)
            restored = without(comparisons.snapshot(), now - written.keys())
            if restored != without(snapshot, written.keys() - now):
                faults.add("the snapshot of comparisons is not what is restored from it")
    return len(state.sections[PAIRS])
