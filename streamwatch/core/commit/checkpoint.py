"""Checkpoint of the estimators: their part of every commit, and the restore from it.

A restore loads the snapshots and evaluates the journal after them again ("refolds" it), which makes every
estimator bitwise what it was at the commit. If settings have changed, the journal is evaluated under the old
ones first; then unchanged estimators continue and changed ones start empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from streamwatch.core.commit.batch import CommitBatch, RecoveredState
from streamwatch.core.commit.journal import (
    COMPARISONS,
    Journal,
    JournalPosition,
    unfolded,
    unfolded_pairs,
)
from streamwatch.core.commit.sections import DocumentError, document_of, spec_of
from streamwatch.core.estimators.kernel.rows import TableFull
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.events import Outcome
from streamwatch.core.fold_names import fold_of, model_of
from streamwatch.core.join.compiled.cold.store import ColdChanges
from streamwatch.core.join.working_set import BatchResult
from streamwatch.core.pipelines.column_pipeline import ColumnPipeline
from streamwatch.core.pipelines.partial_result import PartialResult
from streamwatch.core.pipelines.pipeline import Pipeline
from streamwatch.core.specs import MonitorsSpec

PIPELINE, ESTIMATORS, SETTINGS, PAIRS = "pipeline", "estimators", "settings", "comparisons"


class ModelCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """Checkpoint of one model: its snapshot (None once retired), and the journal position it covers."""

    place: JournalPosition
    snapshot: bytes | None


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """Outcome of a restore."""

    models: int = 0
    refolded: int = 0
    """Outcomes evaluated again."""
    continued: tuple[str, ...] = ()
    """Estimators that settings changed around; empty if nothing changed."""
    restarted: tuple[str, ...] = ()
    """Estimators that are new, or whose parameters changed: they begin at n = 0."""
    dropped: tuple[str, ...] = ()
    """Estimators that settings no longer ask for."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Models that could not be taken over, and why: they begin anew."""


_ENCODER = msgspec.msgpack.Encoder()
_SETTINGS = msgspec.msgpack.Decoder(tuple[bytes, dict[str, str]])
_KEPT = msgspec.msgpack.Decoder(ModelCheckpoint)


class Checkpoint:
    """Builds the estimators' part of every commit, and restores them from it.

    Parameters
    ----------
    pipeline, monitors
        Pipeline and estimators whose state is committed.
    spec
        Configuration that `monitors` was built from.
    journal_outcomes
        Outcomes that the journal may hold before snapshots of models shorten it.
    """

    def __init__(
        self,
        pipeline: Pipeline | ColumnPipeline,
        monitors: EstimatorSet,
        spec: MonitorsSpec,
        journal_outcomes: int,
    ) -> None:
        self.pipeline = pipeline
        self.monitors = monitors
        self._spec = spec
        self._journal = Journal(journal_outcomes)
        self._left: list[tuple[int, str]] = []  # who retired since the last commit, after how many outcomes
        self._retired: dict[str, int] = {}  # the commit in which each model went whose outcomes are kept yet
        self._all_new = False
        self._settings_told = False
        self.commits = 0
        """Number of the last commit."""

    def take(self, result: BatchResult | PartialResult) -> None:
        """Record a batch's outcomes and retired models for the next commit."""
        before = self._journal.open
        self._left += [(before + position, model) for position, model in result.retired]
        self._journal.add(result.outcomes)

    def changes(
        self, sections: Mapping[str, bytes], outbox: Mapping[str, bytes | None] | None = None
    ) -> CommitBatch:
        """Build the next commit, with `sections` and `outbox` added as other parts give them."""
        self.commits = number = self.commits + 1
        models: dict[str, bytes | None] = {}
        gone = [model for _, model in self._left]
        for position, model in self._left:
            models[model] = _ENCODER.encode(ModelCheckpoint(JournalPosition(number, position), None))
            self._retired[model] = number
            self._journal.forget(model)
        self._left = []
        entry = self._journal.close(number)
        if self._all_new:
            due = [*self.monitors.models(), COMPARISONS]
        else:
            due = self._with_folds(self._journal.overdue(), gone)
        if gone and COMPARISONS not in due:
            due.append(COMPARISONS)  # the journal does not say where a comparison ended
        self._all_new = False
        own: dict[str, bytes] = {}
        alive = set(self.monitors.models()) if due else set[str]()
        for model in due:
            self._journal.forget(model)
            if model == COMPARISONS and self.monitors.comparisons is not None:
                covered = ModelCheckpoint(JournalPosition(number), self.monitors.comparisons.snapshot())
                own[PAIRS] = _ENCODER.encode(covered)
            elif model in alive:
                models[model] = _ENCODER.encode(
                    ModelCheckpoint(JournalPosition(number), self.monitors.snapshot(model))
                )
                self._retired.pop(model, None)
        floor = self._journal.floor(number)
        for model in [model for model, gone in self._retired.items() if gone < floor]:
            del self._retired[model]
            models.setdefault(model, None)
        held: Mapping[bytes, bytes | None] = {}
        columns: Mapping[bytes, bytes | None] = {}
        runs: ColdChanges | None = None
        if isinstance(self.pipeline, ColumnPipeline):
            own[PIPELINE], columns = self.pipeline.snapshot(), self.pipeline.changes(number)
            runs = self.pipeline.run_changes()
        else:
            own[PIPELINE], held = self.pipeline.snapshot(held=False), self.pipeline.order.changes()
        own[ESTIMATORS] = self.monitors.totals()
        if not self._settings_told:
            own[SETTINGS] = _ENCODER.encode((document_of(self._spec), self.monitors.estimators()))
            self._settings_told = True
        return CommitBatch({**own, **sections}, models, entry, floor, held, outbox or {}, columns, runs)

    def _with_folds(self, due: Sequence[str], gone: Sequence[str]) -> list[str]:
        """Add the other folds of models some of whose folds are due, or are gone.

        The verdict on a model looks at all of its folds: evaluated once more, they must stand at one place.
        """
        chosen = {model_of(name) for name in (*due, *gone) if fold_of(name) is not None}
        if not chosen:
            return list(due)
        others = [
            name for name in self.monitors.models() if fold_of(name) is not None and model_of(name) in chosen
        ]
        return list(dict.fromkeys((*due, *others)))

    def restore(
        self, saved: RecoveredState, monitors_of: Callable[[MonitorsSpec], EstimatorSet] = EstimatorSet
    ) -> RestoreReport:
        """Continue from the last commit; to be called before the first batch, even of an empty store.

        Raises
        ------
        msgspec.DecodeError
            If the state is not of this version.
        PackedError
            If entries in columns are not what commits write.
        """
        if not isinstance(self.pipeline, ColumnPipeline):
            self.pipeline.order.changes()  # from here on it keeps account of them
        if saved.commits == 0:
            return RestoreReport()
        self.commits = saved.commits
        if isinstance(self.pipeline, ColumnPipeline):
            self.pipeline.restore(saved.sections[PIPELINE], saved.columns)
        else:
            self.pipeline.restore(saved.sections[PIPELINE])
            self.pipeline.order.take_back(saved.held)
        document, written = _SETTINGS.decode(saved.sections[SETTINGS])
        before = _spec_before(document)
        changed = before != self._spec
        monitors = monitors_of(before) if changed else self.monitors
        kept = {model: _KEPT.decode(entry) for model, entry in saved.models.items()}
        refolded = self._refold(monitors, saved, kept)
        monitors.restore_totals(saved.sections[ESTIMATORS])
        refused: dict[str, str] = {}
        if changed:
            refused = self._take_over(monitors, same_folds=before.folds == self._spec.folds)
            self._left = [(0, model) for model in refused]  # or a later start would find them again
            self.monitors.restore_totals(saved.sections[ESTIMATORS])
        now = self.monitors.estimators()
        self._settings_told = self._all_new = False
        if not changed and now == written:
            self._settings_told = True
            return RestoreReport(len(monitors.models()), refolded)
        self._all_new = True
        return RestoreReport(
            len(self.monitors.models()),
            refolded,
            tuple(sorted(now[name] for name in now.keys() & written.keys())),
            tuple(sorted(now[name] for name in now.keys() - written.keys())),
            tuple(sorted(set(written.values()) - set(now.values()))),
            refused,
        )

    def _refold(
        self, monitors: EstimatorSet, saved: RecoveredState, kept: Mapping[str, ModelCheckpoint]
    ) -> int:
        """Snapshots, then what came after them."""
        for model, entry in kept.items():
            if entry.snapshot is not None:
                monitors.restore(entry.snapshot)
            else:
                self._retired[model] = entry.place.commit
        refolded = 0
        behind = {model: entry.place for model, entry in kept.items()}
        pairs = dict(self._refold_pairs(monitors, saved))
        for number, outcomes in unfolded(saved.journal, behind):
            monitors.fold_models(outcomes)
            self._journal.note(number, outcomes, paired=number in pairs)
            refolded += len(outcomes)
        return refolded

    def _refold_pairs(
        self, monitors: EstimatorSet, saved: RecoveredState
    ) -> Iterator[tuple[int, Sequence[Outcome]]]:
        """The comparisons' snapshot, then what came after it; entries that the next snapshot will cover."""
        comparisons = monitors.comparisons
        if comparisons is None:
            return
        place = JournalPosition(-1, -1)
        if PAIRS in saved.sections:
            kept = _KEPT.decode(saved.sections[PAIRS])
            place = kept.place
            comparisons.restore(kept.snapshot or b"")
        for number, outcomes in unfolded_pairs(saved.journal, place):
            if len(outcomes):
                comparisons.fold(outcomes)
                yield number, outcomes

    def _take_over(self, old: EstimatorSet, *, same_folds: bool) -> dict[str, str]:
        """Move every model from monitors under the old settings into those under the new ones."""
        refused: dict[str, str] = {}
        for model in old.models():
            if not same_folds and fold_of(model) is not None:
                refused[model] = "folds are validated by another scheme"
                continue
            try:
                self.monitors.restore(old.snapshot(model))
            except (ValueError, TableFull) as error:
                refused[model] = str(error)
        if old.comparisons is not None and self.monitors.comparisons is not None:
            self.monitors.comparisons.restore(old.comparisons.snapshot())
        return refused


def _spec_before(document: bytes) -> MonitorsSpec:
    """The settings the state was made under, without what this version does not have."""
    try:
        return spec_of(document)[0]
    except DocumentError as error:
        raise msgspec.DecodeError(str(error)) from error
