"""`streamwatch state reset`: begins a part of a state anew."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from streamwatch.assembly import specs
from streamwatch.assembly.state import build_overflow
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.cold.store import ColdChanges
from streamwatch.core.pipeline.checkpoint import MADE_UNDER, PIPELINE, SETTINGS, Checkpoint
from streamwatch.core.pipeline.pipeline import Pipeline, PipelineState, decoded
from streamwatch.core.pipeline.sections import StartOver, settings_of_estimators
from streamwatch.core.records.events import model_of, shown_name
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.stores.kind import StateDamaged, StateRefused, damage_named
from streamwatch.edge.stores.rocksdb.inspect import Inspection
from streamwatch.edge.stores.rocksdb.opening import RocksSpec
from streamwatch.edge.stores.rocksdb.store import RocksStore, empty
from streamwatch.settings import Settings
from streamwatch.settings.differences import Unreadable, document_of, settings_of
from streamwatch.settings.sections import StateSection

JOIN: Final = "join"
ALL_ESTIMATORS: Final = "estimators"
COMPARISONS: Final = "comparisons"
WHY: Final = "state reset"


@dataclass(frozen=True, slots=True)
class Reset:
    """Part of a state that is to begin anew.

    Raises
    ------
    StateRefused
        If `everything` is given together with a model or a section, or none of them is given, or a model
        together with a section that all models share.
    """

    model: str | None = None
    """Model whose estimators begin anew, with its folds; None: all models."""
    section: str | None = None
    """`join`, `estimators`, `comparisons`, or an estimator by its description; None: all estimators of
    `model`."""
    everything: bool = False
    """Whether the whole state begins anew."""

    def __post_init__(self) -> None:
        if self.everything == bool(self.model or self.section):
            raise StateRefused("name what is to begin anew: --model, --section or both, or else --all")
        if self.section in (JOIN, COMPARISONS) and self.model is not None:
            raise StateRefused(f"there is one of all models: give --section {self.section} without --model")


@dataclass(frozen=True, slots=True)
class _Contents:
    """Contents of a state that a reset needs."""

    settings: Settings | None
    """Settings under which the state was made; None if this version cannot read them."""
    pipeline: PipelineState | None
    """None for a state without commits, or of results."""
    names: Sequence[str]
    """Names of models, or of folds, that have estimators or predicted."""
    sections: Collection[str]
    """Descriptions of the estimators."""


def lost(directory: Path, reset: Reset) -> list[str]:
    """Describe what a reset would lose, one line each; changes nothing.

    Raises
    ------
    StateRefused
        If there is no state, or it has no such model or section.
    StateDamaged
        If it cannot be decoded, unless all of it is to begin anew.
    """
    try:
        contents = _read(directory)
    except StateDamaged as error:
        if not reset.everything:
            raise
        return [f"all that the state holds, which cannot be listed: {error}"]
    if not reset.everything:
        _require(contents, reset)
    state = contents.pipeline
    if state is None:
        return ["all that the state holds" if reset.everything else "nothing: the state holds no evaluation"]
    if reset.everything:
        return [
            _join_lost(state),
            f"estimates and verdicts of {_models(contents.names)}, their history and their alarms",
            "positions in all topics: they are read again, from kafka.start_from on",
        ]
    if reset.section == JOIN:
        return [_join_lost(state)]
    if reset.section == COMPARISONS:
        return ["comparisons of all pairs of models, and their verdicts"]
    what = (
        "estimates, verdicts and history"
        if reset.section in (None, ALL_ESTIMATORS)
        else f"what {reset.section} has counted"
    )
    chosen = [name for name in contents.names if reset.model in (None, model_of(name))]
    return [f"{what} of {_models(chosen)}; outcomes of before are not kept, and are not evaluated again"]


def _models(names: Sequence[str]) -> str:
    models = sorted({model_of(name) for name in names})
    return ", ".join(models) if len(models) <= 5 else f"{len(models):,} models"


def _join_lost(state: PipelineState) -> str:
    join = state.join
    pending = sum(model.pending for model in join.join_models.models())
    labels = join.early + join.unmatched + join.retained
    settled = join.dedup.opened.count + sum(each.count for each in join.dedup.closed)
    held = sum(model.held for model in join.join_models.models())
    return (
        f"{pending:,} predictions and {labels:,} labels that wait, {settled:,} dedup entries, {held:,} "
        "outcomes held for their order, and the counters of the join; labels of these predictions count as "
        "from before the start"
    )


def perform(directory: Path, reset: Reset) -> None:
    """Begin a part anew, in one commit.

    Raises
    ------
    StateRefused
        If there is no state, it has no such model or section, a daemon has it open, or this version cannot
        read the settings under which it was made (then only all of it can begin anew).
    StateDamaged
        If it cannot be decoded; of all of it, only if its files cannot be opened.
    StateFailed
        If the disk fails.
    """
    if reset.everything:
        empty(RocksSpec(directory))
        return
    contents = _read(directory)
    _require(contents, reset)
    if contents.pipeline is None:
        return
    if contents.settings is None:
        raise StateRefused(
            f"the state in {directory} was made under settings that this version cannot read: only the whole "
            "of it can begin anew (--all)"
        )
    state = StateSection(directory=directory)
    _commit(contents.settings.model_copy(update={"state": state}), reset, contents)


def _commit(settings: Settings, reset: Reset, contents: _Contents) -> None:
    store = RocksStore.open(RocksSpec(settings.state.directory))
    try:
        saved = store.load()
        estimators = specs.monitors_spec(settings)
        monitors = EstimatorSet(estimators)
        begins = reset.section == JOIN
        with damage_named(settings.state.directory):
            overflow = None if begins else build_overflow(settings, saved)
        pipeline = Pipeline(specs.join_spec(settings), monitors, bytes_of_keys, overflow)
        checkpoint = Checkpoint(
            pipeline, monitors, estimators, settings.state.journal_outcomes, document_of(settings)
        )
        keys = [key for key, _ in saved.columns] if begins else []
        if begins:
            saved = replace(saved, columns=())
        with damage_named(settings.state.directory):
            checkpoint.restore(saved, over=_over(reset, contents))
        batch = checkpoint.changes({})
        if begins:
            removed: dict[bytes, bytes | None] = dict.fromkeys(keys)
            batch = replace(batch, columns={**removed, **batch.columns}, runs=_no_runs())
        store.commit(batch)
        store.flush()
    finally:
        store.close()


def _no_runs() -> ColdChanges:
    """Return the change that removes every entry outside the join's table."""
    return ColdChanges(removed=[(b"", b"\xff" * 64)])


def _over(reset: Reset, contents: _Contents) -> StartOver:
    if reset.section == JOIN:
        return StartOver(join=True)
    if reset.section == COMPARISONS:
        return StartOver(comparisons=True)
    chosen = frozenset({model_of(name) for name in contents.names} if reset.model is None else {reset.model})
    if reset.section in (None, ALL_ESTIMATORS):
        return StartOver(dict.fromkeys(chosen, (WHY,)), chosen)
    return StartOver(parts=frozenset({reset.section}), parts_of=None if reset.model is None else chosen)


def _read(directory: Path) -> _Contents:
    state = Inspection(directory)
    try:
        if PIPELINE not in state.sections:
            return _Contents(None, None, (), ())
        with damage_named(directory):
            pipeline = decoded(state.sections[PIPELINE])
            _, estimators = settings_of_estimators(state.sections[SETTINGS])
        joined = [model.name for model in pipeline.join.join_models.models()]
        kept = [key.decode() for key, _ in state.items("models")]
        try:
            settings = settings_of(state.sections.get(MADE_UNDER, b""))
        except Unreadable:
            settings = None
        names = sorted({*joined, *kept}, key=shown_name)
        return _Contents(settings, pipeline, names, sorted(set(estimators.values())))
    finally:
        state.close()


def _require(contents: _Contents, reset: Reset) -> None:
    """Raise StateRefused for a model or a section that the state does not have."""
    models = sorted({model_of(name) for name in contents.names})
    if reset.model is not None and reset.model not in models:
        raise StateRefused(f"--model: the state has no model {reset.model!r}; it has {_listed(models)}")
    sections = [JOIN, ALL_ESTIMATORS, COMPARISONS, *contents.sections]
    if reset.section is not None and reset.section not in sections:
        raise StateRefused(
            f"--section: the state has none called {reset.section!r}; it has {_listed(sections)}"
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
