"""Contents of a state directory, decoded without a daemon."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.outbox import Entry
from streamwatch.core.alerting.rules import AlarmsSpec
from streamwatch.core.estimators.comparisons.set import ComparisonSet, without
from streamwatch.core.estimators.past import MINUTE_S, NONE, NOTHING, STRETCH, PastView
from streamwatch.core.estimators.set import decode
from streamwatch.core.join.cold.contents import entries_outside, examine
from streamwatch.core.join.cold.overflow import Overflow, OverflowSpec
from streamwatch.core.join.durable.restoring import WaitingEntries, read_values
from streamwatch.core.join.layout import PREDICTIONS
from streamwatch.core.pipeline.checkpoint import ESTIMATORS, PAIRS, PIPELINE, SETTINGS, ModelCheckpoint
from streamwatch.core.pipeline.journal import JournalPosition, unfolded
from streamwatch.core.pipeline.pipeline import NoEvaluation, Pipeline
from streamwatch.core.pipeline.sections import settings_of_estimators, spec_of
from streamwatch.core.publishing.publications import Publication
from streamwatch.core.publishing.publications import decoded as decoded_publication
from streamwatch.core.records.events import model_of
from streamwatch.core.specs import JoinSpec, MonitorsSpec
from streamwatch.daemon import POSITIONS, SourcePositions, decode_positions
from streamwatch.daemon.alerting import ALARMS
from streamwatch.edge.keys import digest_bytes
from streamwatch.edge.stores.kind import StateDamaged
from streamwatch.edge.stores.rocksdb.inspect import Inspection, ReadRuns

SECTIONS = (PIPELINE, ESTIMATORS, SETTINGS, POSITIONS)
"""Sections that every state with a commit has."""

UNREADABLE = (ValueError, LookupError, TypeError, OverflowError, RecursionError)
"""Errors that decoders raise for bytes that they cannot read."""

_KEPT = msgspec.msgpack.Decoder(ModelCheckpoint)
_ENTRY = msgspec.msgpack.Decoder(Entry)


@contextmanager
def decoding(what: str, faults: Faults) -> Generator[None]:
    """Add a fault if the block raises an error of decoding; `what` is being decoded."""
    try:
        yield
    except UNREADABLE as error:
        faults.add(f"{what} cannot be decoded ({type(error).__name__}: {error})")


@contextmanager
def reading(directory: Path) -> Generator[Inspection]:
    """Open a state, which a daemon may have open, and close it after the block.

    Raises
    ------
    StateRefused, StateFailed
        If the state cannot be read; as StateDamaged, if the block raises an error of decoding.
    """
    state = Inspection(directory)
    try:
        yield state
    except UNREADABLE as error:
        raise StateDamaged(
            f"the state in {directory} cannot be decoded ({type(error).__name__}: {error}): "
            "`streamwatch state verify` says where"
        ) from error
    finally:
        state.close()


class Faults:
    """Collects faults: their number, and descriptions of the first ones."""

    SHOWN: Final = 5

    def __init__(self) -> None:
        self.named: list[str] = []
        self.count = 0

    def add(self, what: str) -> None:
        """Count a fault, and keep its description if it is one of the first `SHOWN`."""
        self.count += 1
        if self.count <= self.SHOWN:
            self.named.append(what)


def check_entries(state: Inspection, faults: Faults) -> str:
    """Restore the join, compare its entries with each other and with its totals, and describe them."""
    sizes = [len(key) + len(value) for key, value in state.items("columns")]
    with decoding("the entries of the join", faults):
        runs = ReadRuns(state)
        overflow = Overflow(runs, OverflowSpec(0), clean=False)
        pipeline = Pipeline(JoinSpec(max_models=2**20), NoEvaluation(), digest_bytes, overflow)
        pipeline.restore(state.sections[PIPELINE], state.items("columns"))
        outside = _check_outside(runs, pipeline, overflow, faults)
        for rule in pipeline.identities():
            faults.add(rule)
        waiting = gauge(pipeline, "pending_predictions")
        labels = sum(gauge(pipeline, f"labels_{name}") for name in ("waiting", "retained"))
        settled = gauge(pipeline, "dedup_entries")
        return (
            f"{waiting:,.0f} predictions and {labels:,.0f} labels wait, {settled:,.0f} dedup entries, "
            f"in {len(sizes):,} values of {sum(sizes):,} bytes{outside}"
        )
    return f"{len(sizes):,} values of {sum(sizes):,} bytes"


def _check_outside(runs: ReadRuns, pipeline: Pipeline, overflow: Overflow, faults: Faults) -> str:
    """Compare all entries outside the table with the counts, and describe them; empty text without any."""
    examined = examine(runs, overflow.contents.cold.floor)
    for fault in examined.faults:
        faults.add(fault)
    settled = {generation: count for generation, count in examined.settled.items() if count}
    if settled != overflow.contents.settled:
        faults.add(f"expected cold dedup entries {overflow.contents.settled} by generation, got {settled}")
    unmatched = pipeline.unmatched_outside
    if examined.unmatched != unmatched:
        faults.add(f"expected {unmatched} cold labels that met nobody, got {examined.unmatched}")
    if not overflow.contents.cold.runs:
        return ""
    return f", {examined.by_queue.total():,} of them in {overflow.contents.cold.runs} cold runs"


def pending_by_model(state: Inspection) -> dict[str, NDArray[np.int64]]:
    """Return the record times (ms, int64) of pending predictions by model; raises ValueError."""
    values = read_values(state.items("columns"))
    models, record_ms = WaitingEntries(values).pending()
    for queue, entries in entries_outside(ReadRuns(state), 0):
        if queue == PREDICTIONS:
            models = np.concatenate([models, entries["model"].astype(np.int64)])
            record_ms = np.concatenate([record_ms, entries["record_ms"]])
    return {values.models[number]: record_ms[models == number] for number in np.unique(models).tolist()}


def gauge(pipeline: Pipeline, name: str) -> float:
    """Return the value of a gauge of the join, summed over its series."""
    return next(
        sum(float(value) for _, value in family.samples)  # pyright: ignore[reportArgumentType]
        for family in pipeline.join_families()
        if family.name == name
    )


def positions_of(state: Inspection) -> SourcePositions:
    """Decode the positions of all partitions; raises DecodeError and KeyError."""
    return decode_positions(state.sections[POSITIONS])


def incidents_of(state: Inspection) -> Sequence[Notification]:
    """Decode the open incidents, each as its last notification; raises ValueError."""
    book = AlarmBook(AlarmsSpec(), state.identity)
    if ALARMS in state.sections:
        book.restore(state.sections[ALARMS])
    return book.open_incidents()


def outbox_of(state: Inspection) -> dict[str, Entry]:
    """Decode the notifications to be delivered, by id; raises DecodeError."""
    return {key.decode(): _ENTRY.decode(value) for key, value in state.items("outbox")}


def publications_of(state: Inspection) -> Sequence[Publication]:
    """Decode the publications to be written, in the order of commits; raises PublicationError."""
    return [decoded_publication(value) for value in state.publications().values()]


def kept_of(value: bytes) -> ModelCheckpoint:
    """Decode the checkpoint of one model; raises DecodeError."""
    return _KEPT.decode(value)


def estimators_of(state: Inspection) -> tuple[MonitorsSpec, Mapping[str, str]]:
    """Decode the spec of the estimators, and their descriptions by section; raises ValueError, KeyError."""
    document, sections = settings_of_estimators(state.sections[SETTINGS])
    return spec_of(document)[0], sections


def check_comparisons(state: Inspection, faults: Faults) -> int:
    """Check that the restored snapshot of comparisons gives the same; return its bytes, 0 without one."""
    if PAIRS not in state.sections:
        return 0
    with decoding("what is kept of comparisons", faults):
        spec, written = estimators_of(state)
        comparisons = ComparisonSet(spec)
        now = comparisons.estimators().keys()
        kept = kept_of(state.sections[PAIRS])
        if kept.position.commit > state.manifest.commits:
            faults.add(f"comparisons are of commit {kept.position.commit}, later than the last")
        if spec.comparisons:  # else the snapshot is of earlier settings
            snapshot = kept.snapshot or b""
            comparisons.restore(snapshot)
            restored = without(comparisons.snapshot(), now - written.keys())
            if restored != without(snapshot, written.keys() - now):
                faults.add("the snapshot of comparisons is not what is restored from it")
    return len(state.sections[PAIRS])


@dataclass(frozen=True, slots=True)
class StatePasts:
    """Histories of all models as of the last commit."""

    days: int
    """`monitors.history_days` of the state; 0: no history."""
    views: Mapping[str, tuple[PastView, ...]]
    """Histories by model, one for each fold; hits of no change among the journal's outcomes count as 0."""


def state_pasts(directory: Path) -> StatePasts:
    """Read the history of every model from a state, which a daemon may have open.

    It consists of the model's snapshot and of later outcomes in the journal.

    Raises
    ------
    StateRefused, StateFailed
        If the state cannot be read; as StateDamaged, if it cannot be decoded.
    """
    with reading(directory) as state:
        return _read(state)


def _read(state: Inspection) -> StatePasts:
    if not state.manifest.commits:
        return StatePasts(0, {})
    days = estimators_of(state)[0].history_days
    settled: dict[str, np.ndarray] = {}
    behind: dict[str, JournalPosition] = {}
    for key, value in state.items("models"):
        name, kept = key.decode(), kept_of(value)
        behind[name] = kept.position
        if kept.snapshot is not None:
            past = decode(kept.snapshot).past
            settled[name] = NONE if past is None else np.frombuffer(past.stretches, STRETCH)
    later: dict[str, dict[int, list[int]]] = {}
    for _, _, outcomes in unfolded(list(state.journal()), behind):
        for outcome in outcomes:
            minutes = later.setdefault(outcome.model, {})
            counts = minutes.setdefault(outcome.event_ms // (1_000 * MINUTE_S), [0, 0])
            counts[0] += 1
            counts[1] += outcome.true_class == outcome.predicted_class
    views: dict[str, tuple[PastView, ...]] = {}
    for name in sorted(settled.keys() | later.keys()):
        rows = [(minute, *counts, 0) for minute, counts in later.get(name, {}).items()]
        gathered = np.array(rows, np.int64) if rows else NOTHING
        view = PastView(settled.get(name, NONE), gathered)
        views[model_of(name)] = (*views.get(model_of(name), ()), view)
    return StatePasts(days, views)
