"""Checkpoint of the estimators: their part of every commit, and the restore from it.

A restore loads the snapshots and evaluates the journal after them again ("refolds" it), which makes every
estimator bitwise what it was at the commit. If settings have changed, the journal is evaluated under the old
ones first; then unchanged estimators continue and changed ones start empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import msgspec

from streamwatch.core.estimators.kernel.table import TableFull
from streamwatch.core.estimators.set import EstimatorSet, without
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed import reading
from streamwatch.core.pipeline.journal import (
    COMPARISONS,
    Journal,
    JournalPosition,
    unfolded,
    unfolded_pairs,
)
from streamwatch.core.pipeline.pipeline import PartialResult, Pipeline
from streamwatch.core.pipeline.sections import (
    BEGINNINGS,
    Beginnings,
    DocumentError,
    StartOver,
    document_of,
    settings_of_estimators,
    spec_of,
)
from streamwatch.core.ports import CommitBatch, RecoveredState
from streamwatch.core.records.events import SEPARATOR, Outcome, fold_of, model_of
from streamwatch.core.specs import MonitorsSpec

PIPELINE, ESTIMATORS, SETTINGS, PAIRS = "pipeline", "estimators", "settings", "comparisons"
MADE_UNDER = "made_under"
"""Section with all settings that the state was made under (the caller's document)."""


class ModelCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """Checkpoint of one model: its snapshot (None once retired), and the journal position it covers."""

    position: JournalPosition
    snapshot: bytes | None


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """Outcome of a restore."""

    models: int = 0
    refolded: int = 0
    """Outcomes evaluated again."""
    continued: tuple[str, ...] = ()
    """Estimators that are as before although settings changed or others began anew; else empty."""
    restarted: tuple[str, ...] = ()
    """Estimators that are new, whose parameters changed, or that were to begin anew: they begin at n = 0.

    Those that were to begin anew for some models only are in `continued`, too.
    """
    dropped: tuple[str, ...] = ()
    """Estimators that settings no longer ask for."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Models that could not be taken over, and why: they begin anew."""
    begun: tuple[str, ...] = ()
    """Models, or folds of them, whose estimators begin anew because settings that make outcomes changed."""


_ENCODER = msgspec.msgpack.Encoder()
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
        Outcomes that a start may have to evaluate again before snapshots of models replace them.
    made_under
        Document of the settings under which everything is made; empty to keep none.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        monitors: EstimatorSet,
        spec: MonitorsSpec,
        journal_outcomes: int,
        made_under: bytes = b"",
    ) -> None:
        self.pipeline = pipeline
        self.monitors = monitors
        self._spec = spec
        self._journal = Journal(journal_outcomes)
        self._left: list[tuple[int, str]] = []  # (outcomes before, model) of retired ones
        self._retired: dict[str, int] = {}  # commit in which a model retired, by model in the journal
        self._all_new = False
        self._settings_written = False
        self._made_under: bytes | None = made_under or None  # None once committed
        self._sections: dict[str, bytes] = {}  # as the commits since the start have left them
        self.beginnings = Beginnings()
        """Evaluation epochs of models, and estimators that began anew."""
        self.commits = 0
        """Number of the last commit."""
        self._references = frozenset(
            each.reference for each in spec.drift_weighted if each.drift_signal == "reference"
        )
        self._drifts: dict[str, tuple[int, ...]] = {}  # of the references, as of the last commit

    def take(self, result: PartialResult) -> None:
        """Record a step's outcomes and retired models for the next commit."""
        before = self._journal.open
        self._left += [(before + position, model) for position, model in result.retired]
        for _, model in result.retired:
            self.beginnings.retire(model, self.monitors.models())
        self._journal.add(result.outcomes)

    def changes(
        self, sections: Mapping[str, bytes], outbox: Mapping[str, bytes | None] | None = None
    ) -> CommitBatch:
        """Build the next commit, with the given sections and notifications added to it.

        It assumes that the last one was committed: sections that are the same are left out, so that open
        alarms by the thousand, say, are written only when one of them changes.
        """
        self.commits = number = self.commits + 1
        models: dict[str, bytes | None] = {}
        gone = [model for _, model in self._left]
        for position, model in self._left:
            models[model] = _ENCODER.encode(ModelCheckpoint(JournalPosition(number, position), None))
            self._retired[model] = number
        self._journal.forget(gone)
        self._left = []
        entry = self._journal.close(number)
        drifts = self.monitors.drifts_of_references()
        if self._all_new:
            due = [*self.monitors.models(), COMPARISONS]
        else:
            due = self._with_related(self._journal.overdue(), gone, drifted=drifts != self._drifts)
        self._drifts = drifts
        if gone and COMPARISONS not in due:
            due.append(COMPARISONS)  # the journal does not tell that a comparison ended
        self._all_new = False
        own: dict[str, bytes] = {}
        self._journal.forget(due)
        if COMPARISONS in due and self.monitors.comparisons is not None:
            covered = ModelCheckpoint(JournalPosition(number), self.monitors.comparisons.snapshot())
            own[PAIRS] = _ENCODER.encode(covered)
        alive = set(self.monitors.models()) if due else set[str]()
        chosen = [model for model in due if model in alive]
        snapshots = self.monitors.snapshots(chosen)
        covering = map(ModelCheckpoint, repeat(JournalPosition(number)), snapshots)
        models |= zip(chosen, map(_ENCODER.encode, covering), strict=True)
        if self._retired:
            for model in chosen:
                self._retired.pop(model, None)
        floor = self._journal.floor(number)
        for model in [model for model, gone in self._retired.items() if gone < floor]:
            del self._retired[model]
            models.setdefault(model, None)
        own[PIPELINE], columns = self.pipeline.snapshot(), self.pipeline.join.changes(number)
        runs = self.pipeline.join.run_changes()
        own[ESTIMATORS] = self.monitors.totals()
        own |= self._changed_sections()
        changed = {
            name: value for name, value in {**own, **sections}.items() if self._sections.get(name) != value
        }
        self._sections |= changed
        return CommitBatch(changed, models, entry, floor, outbox or {}, columns, runs)

    def _changed_sections(self) -> dict[str, bytes]:
        """Sections that are encoded only if they may differ from those of the commits before."""
        own: dict[str, bytes] = {}
        if not self._settings_written:
            own[SETTINGS] = _ENCODER.encode((document_of(self._spec), self.monitors.estimators()))
            self._settings_written = True
        if self._made_under is not None:
            own[MADE_UNDER], self._made_under = self._made_under, None
        if (begun := self.beginnings.changes()) is not None:
            own[BEGINNINGS] = begun
        return own

    def _with_related(self, due: Sequence[str], gone: Sequence[str], *, drifted: bool) -> list[str]:
        """Add to the names that are due those whose checkpoints must cover the same journal position.

        The verdict on a model reads all of its folds: if one is due or retired, the others are due. A drift
        of a reference (`drifted`) restarts the weights of the models that follow it: all with outcomes in the
        journal are due, or these would be evaluated again with a drift that came later. All models are due if
        a reference retired, which changes their states at once.
        """
        others: list[str] = []
        if not self._references.isdisjoint(gone):
            others += self.monitors.models()
        elif drifted:
            others += self._journal.models
        chosen = {model_of(name) for name in (*due, *others, *gone) if SEPARATOR in name}
        if chosen:
            others += [
                name
                for name in self.monitors.models()
                if fold_of(name) is not None and model_of(name) in chosen
            ]
        return list(dict.fromkeys((*due, *others)))

    def restore(
        self,
        saved: RecoveredState,
        monitors_of: Callable[[MonitorsSpec], EstimatorSet] = EstimatorSet,
        over: StartOver | None = None,
    ) -> RestoreReport:
        """Continue from the last commit; to be called before the first batch, even of an empty store.

        Parameters
        ----------
        saved
            Contents of the last commit.
        monitors_of
            Makes estimators under the settings of that commit.
        over
            Models and estimators that begin anew in addition to those whose parameters have changed.

        Raises
        ------
        PackedError
            If a part of the state is not what commits write; the message names it.
        """
        self.commits = saved.commits
        self._sections.clear()
        if PIPELINE not in saved.sections:  # there is no state yet, or it was emptied on purpose
            return RestoreReport()
        for name in (SETTINGS, ESTIMATORS):
            if name not in saved.sections:
                raise PackedError(f"expected the section {name!r} beside {PIPELINE!r}, got none")
        over = over or StartOver()
        if over.join:
            self.pipeline.begin_join_anew(saved.sections[PIPELINE])
        else:
            self.pipeline.restore(saved.sections[PIPELINE], saved.columns)
        document, written = settings_of_estimators(saved.sections[SETTINGS])
        before = _spec_before(document)
        changed = before != self._spec
        monitors = monitors_of(before) if changed else self.monitors
        kept = {model: _kept_of(model, entry) for model, entry in saved.models.items()}
        refolded = self._refold(monitors, saved, kept)
        with reading(f"the section {ESTIMATORS!r}"):
            monitors.restore_totals(saved.sections[ESTIMATORS])
        with reading(f"the section {BEGINNINGS!r}"):
            self.beginnings.restore(saved.sections.get(BEGINNINGS))
        if saved.sections.get(MADE_UNDER) == self._made_under:
            self._made_under = None
        gone = self._begin_epochs(monitors, over)
        refused: dict[str, str] = {}
        if changed:
            refused = self._take_over(monitors, same_folds=before.folds == self._spec.folds)
            self.monitors.restore_totals(saved.sections[ESTIMATORS])
        self._left = [(0, model) for model in (*gone, *refused)]  # or a later start would find them again
        self._drifts = self.monitors.drifts_of_references()
        now = self.monitors.estimators()
        self._settings_written = self._all_new = False
        if not changed and now == written and not (over.parts or over.comparisons):
            self._settings_written = True
            return RestoreReport(len(monitors.models()), refolded, begun=gone)
        self._all_new = True
        anew = over.parts & set(now.values())
        continued = {now[name] for name in now.keys() & written.keys()}
        report = RestoreReport(
            len(self.monitors.models()),
            refolded,
            tuple(sorted(continued if over.parts_of is not None else continued - anew)),
            tuple(sorted({*(now[name] for name in now.keys() - written.keys()), *anew})),
            tuple(sorted(set(written.values()) - set(now.values()))),
            refused,
            gone,
        )
        if over.parts_of is None:
            self.beginnings.begin_parts(report.restarted, self.pipeline.clock_ms, report.dropped)
        return report

    def _begin_epochs(self, monitors: EstimatorSet, over: StartOver) -> tuple[str, ...]:
        """Begin the evaluation epochs and estimators of `over` anew; return the names removed as a whole."""
        gone: list[str] = []
        outcomes: dict[str, int] = {}
        described = monitors.estimators()
        sections = {name for name, title in described.items() if title in over.parts}
        for name in monitors.models():
            model = model_of(name)
            outcomes[model] = outcomes.get(model, 0) + monitors.outcomes_of(name)
            if model in over.estimators:
                monitors.retire(name)
                gone.append(name)
            elif sections and (over.parts_of is None or model in over.parts_of):
                monitors.restore(without(monitors.snapshot(name), sections))
            if over.comparisons and monitors.comparisons is not None:
                monitors.comparisons.retire(name)
        for model in over.estimators:
            self.pipeline.begin_anew(model)
        for model, changed in over.epochs.items():
            self.beginnings.begin(
                model,
                changed,
                self.pipeline.clock_ms,
                outcomes.get(model, 0),
                anew=model in over.estimators,
            )
        return tuple(gone)

    def _refold(
        self, monitors: EstimatorSet, saved: RecoveredState, kept: Mapping[str, ModelCheckpoint]
    ) -> int:
        """Restore the snapshots, and evaluate the outcomes after them again; return the number of these."""
        for model, entry in kept.items():
            if entry.snapshot is not None:
                with reading(f"the snapshot of model {model!r}"):
                    monitors.restore(entry.snapshot)
            else:
                self._retired[model] = entry.position.commit
        refolded = 0
        behind = {model: entry.position for model, entry in kept.items()}
        pairs = dict(self._refold_pairs(monitors, saved))
        sizes = {number: len(entry) for number, entry in saved.journal}
        for number, count, outcomes in unfolded(saved.journal, behind):
            monitors.fold_models(outcomes)
            self._journal.note(number, outcomes, count, sizes[number], paired=number in pairs)
            refolded += len(outcomes)
        return refolded

    def _refold_pairs(
        self, monitors: EstimatorSet, saved: RecoveredState
    ) -> Iterator[tuple[int, Sequence[Outcome]]]:
        """Restore the comparisons' snapshot, and evaluate the outcomes after it again.

        Yields the entries of the journal that the next snapshot will cover.
        """
        comparisons = monitors.comparisons
        if comparisons is None:
            return
        position = JournalPosition(-1, -1)
        if PAIRS in saved.sections:
            with reading(f"the section {PAIRS!r}"):
                kept = _KEPT.decode(saved.sections[PAIRS])
                comparisons.restore(kept.snapshot or b"")
            position = kept.position
        for number, outcomes in unfolded_pairs(saved.journal, position):
            if len(outcomes):
                comparisons.fold(outcomes)
                yield number, outcomes

    def _take_over(self, old: EstimatorSet, *, same_folds: bool) -> dict[str, str]:
        """Move every model from estimators under the old settings to the present ones.

        Returns the reason for each model that cannot be moved.
        """
        refused: dict[str, str] = {}
        if old.comparisons is not None and self.monitors.comparisons is not None:
            self.monitors.comparisons.restore(old.comparisons.snapshot())
        # References first: models that follow one that cannot be moved are moved as after its end.
        for model in sorted(old.models(), key=lambda name: name not in self._references):
            if not same_folds and fold_of(model) is not None:
                refused[model] = "folds are validated by another scheme"
                continue
            try:
                self.monitors.restore(old.snapshot(model))
            except (ValueError, TableFull) as error:
                refused[model] = str(error)
                old.retire(model)
        return refused


def _spec_before(document: bytes) -> MonitorsSpec:
    """Decode the settings under which the state was made, without those that this version does not have."""
    try:
        return spec_of(document)[0]
    except DocumentError as error:
        raise PackedError(f"the section {SETTINGS!r} cannot be read: {error}") from error


def _kept_of(model: str, entry: bytes) -> ModelCheckpoint:
    with reading(f"what is kept of model {model!r}"):
        if not model:
            raise PackedError("expected the name of a model, got an empty one")
        return _KEPT.decode(entry)
