"""Consequences of changed settings for a state: `check` lists them, `run` applies them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from streamwatch.admin.kafka_check import CheckResult
from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.core.pipeline.sections import StartOver
from streamwatch.core.records.events import SEPARATOR, model_of
from streamwatch.edge.stores.kind import StateFailed, StateRefused, damage_named
from streamwatch.edge.stores.rocksdb.opening import read_format
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.differences import (
    Held,
    SettingChange,
    Unreadable,
    changes,
    concerned,
    document_of,
    settings_of,
)
from streamwatch.settings.table_of_changes import RULES, Change
from streamwatch.telemetry import InternalEvent, SettingChanged, SettingsUnknown

if TYPE_CHECKING:
    from streamwatch.core.join.durable.totals import JoinTotals

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class StartPlan:
    """Consequences of changed settings at a start; none by default."""

    changes: Sequence[SettingChange] = ()
    """In the order of the settings."""
    over: StartOver = field(default_factory=StartOver)
    """Parts that begin anew, besides estimators whose parameters have changed."""
    restarted: Sequence[str] = ()
    """Descriptions of estimators that begin with no outcomes, for all models."""
    dropped: Sequence[str] = ()
    """Descriptions of estimators that are no longer configured."""
    added_topics: frozenset[str] = frozenset()
    """Topics that the state does not know; they are read from the state's clock on."""
    waiting: int = 0
    """Waiting predictions of models whose mapping of ids or classes has changed.

    With `join.order: prediction_time`, outcomes that are held back are among them."""
    unreadable: str = ""
    """Reason why the settings cannot be compared; empty if they can."""

    @property
    def refused(self) -> Sequence[SettingChange]:
        """Changes after which the state cannot be used."""
        return [change for change in self.changes if change.change is Change.REFUSED]

    def lines(self) -> list[str]:
        """Return one line on each consequence; refusals name the command that helps."""
        found = [
            f"{change.text()}; `{change.command}` helps" if change.command else change.text()
            for change in self.changes
        ]
        if self.unreadable:
            found.append(f"what has changed is not known: {self.unreadable}")
            if self.added_topics:
                found.append(f"read from the state's clock on: {_some(sorted(self.added_topics))}")
        if self.over.estimators:
            found.append(f"estimates begin anew of {_some(sorted(self.over.estimators))}")
        if self.waiting:
            found.append(
                f"{self.waiting:,} predictions of theirs wait as they were read under the old mapping"
            )
        if self.restarted:
            found.append(f"begin anew, with no outcomes: {', '.join(self.restarted)}")
        if self.dropped:
            found.append(f"are no more: {', '.join(self.dropped)}")
        return found

    def events(self) -> tuple[InternalEvent, ...]:
        """Return the changes as internal events; restarted estimators are logged by the restore."""
        changed: list[InternalEvent] = [
            SettingChanged(change.key, change.text().removeprefix(f"{change.key}: "), str(change.change))
            for change in self.changes
        ]
        return (*changed, SettingsUnknown(self.unreadable)) if self.unreadable else tuple(changed)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def plan_of(settings: Settings, sections: Mapping[str, bytes], models: Sequence[str]) -> StartPlan:
    """Compare settings with those under which a state was made.

    Parameters
    ----------
    settings
        The current settings.
    sections
        Sections of the last commit; a state without any counts as unchanged.
    models
        Names of models that the state has estimators of.

    Raises
    ------
    PackedError
        If a section cannot be decoded.
    SettingsError
        As from `specs.monitors_spec`.
    """
    from streamwatch.core.pipeline.checkpoint import MADE_UNDER, PIPELINE, SETTINGS  # noqa: PLC0415 - loads Numba

    document = sections.get(MADE_UNDER)
    if document is None or document == document_of(settings):
        return StartPlan()
    try:
        before = settings_of(document)
    except Unreadable as error:
        return StartPlan(
            added_topics=_unread_topics(settings, sections), unreadable=" ".join(str(error).split())
        )
    join = _join_of(sections[PIPELINE])
    activity = {model.name: model for model in join.join_models.models()}
    found = changes(before, settings, _held(join))
    epochs: dict[str, tuple[str, ...]] = {}
    estimators: set[str] = set()
    known = {model_of(name) for name in (*models, *activity)}
    for change in found:
        chosen = concerned(change, before, settings, known)
        estimators |= chosen if change.scope == "estimators" else set()
        epochs |= {model: (*epochs.get(model, ()), change.key) for model in sorted(chosen)}
    restarted, dropped = _estimators(settings, sections[SETTINGS])
    return StartPlan(
        found,
        StartOver(epochs, frozenset(estimators)),
        restarted,
        dropped,
        frozenset(topic_properties.sides(settings.topics)) - topic_properties.sides(before.topics).keys(),
        sum(each.pending + each.held for name, each in activity.items() if model_of(name) in estimators),
    )


def _unread_topics(settings: Settings, sections: Mapping[str, bytes]) -> frozenset[str]:
    """Return the topics that a state has not read: what was added, where its settings cannot tell."""
    from streamwatch.daemon.source_positions import POSITIONS, decode_positions  # noqa: PLC0415 - the daemon

    read = decode_positions(sections.get(POSITIONS)).positions
    return frozenset(topic_properties.sides(settings.topics)) - {partition.topic for partition in read}


def _join_of(pipeline: bytes) -> JoinTotals:
    from streamwatch.core.pipeline.pipeline import decoded  # noqa: PLC0415 - loads Numba

    return decoded(pipeline).join


def _held(join: JoinTotals) -> Held:
    models = join.join_models.models()
    pending = sum(model.pending for model in models)
    folds = sum(model.pending + model.held for model in models if SEPARATOR in model.name)
    return Held(pending + join.early + join.unmatched + join.retained, folds)


def _estimators(settings: Settings, written: bytes) -> tuple[list[str], list[str]]:
    """Describe the estimators that begin with no outcomes, and those that are no longer configured."""
    from streamwatch.core.estimators.set import EstimatorSet  # noqa: PLC0415 - likewise
    from streamwatch.core.pipeline.sections import settings_of_estimators  # noqa: PLC0415 - loads Numba

    _, before = settings_of_estimators(written)
    now = EstimatorSet(replace(specs.monitors_spec(settings), max_models=1)).estimators()
    return (
        sorted(now[name] for name in now.keys() - before.keys()),
        sorted(set(before.values()) - set(now.values())),
    )


def require_no_refusal(settings: Settings, plan: StartPlan) -> None:
    """Raise StateRefused, with the command that helps, if a plan has refused changes."""
    if plan.refused:
        refusals = "; ".join(
            f"{change.text()}: set it back, or run `{change.command}`" for change in plan.refused
        )
        raise StateRefused(
            f"the state in {settings.state.directory} was made under other settings: {refusals}"
        )


def require_no_state(settings: Settings) -> None:
    """Raise StateRefused if state is in memory although there is one on disk; skipped with `--discard`."""
    directory = settings.state.directory
    if settings.state.kind == "memory" and read_format(directory) is not None:
        case = RULES["state.kind"][0]
        raise StateRefused(
            f"state.kind: rocksdb → memory: {case.change}, {case.what} ({directory}): set it back, or run "
            f"`{case.command}`"
        )


def require_source(settings: Settings, sections: Mapping[str, bytes]) -> None:
    """Raise StateRefused if the state with these sections was made with another `source`."""
    from streamwatch.core.pipeline.checkpoint import PIPELINE  # noqa: PLC0415 - loads Numba
    from streamwatch.daemon.results import RESULTS  # noqa: PLC0415 - loads the daemon

    other = PIPELINE if settings.source == "results" else RESULTS
    if other in sections:
        (case,) = RULES["source"]
        raise StateRefused(
            f"source: expected the one with which the state in {settings.state.directory} was made, got "
            f"{settings.source!r}: {case.change}, {case.what}: set it back, set another state.directory, or "
            f"run `{case.command}`"
        )


def check_changes(settings: Settings) -> Sequence[CheckResult]:
    """Describe what `run` will do with the existing state; writes nothing."""
    directory = settings.state.directory
    try:
        require_no_state(settings)
        try:
            if not specs.store_kind(settings).durable or read_format(directory) is None:
                return []
        except OSError:
            return []  # `check_state` says so
        plan = read_plan(settings)
    except (StateRefused, StateFailed, SettingsError, OSError) as error:
        return [CheckResult(str(error), good=False)]
    if plan is None:
        return []
    lines = plan.lines()
    if not lines:
        return [CheckResult("settings as those that the state was made under", good=True)]
    what = "settings changed since the state was made: run " + ("refuses" if plan.refused else "goes on")
    return [CheckResult(what, good=not plan.refused, details=tuple(lines))]


NO_STATE: Final = "state=none commit=0"
"""Offset metadata of a directory without a state."""


def read_mark(settings: Settings) -> tuple[str, bool]:
    """Return the offset metadata of the existing state (`OffsetMetadata`), and whether it has commits.

    The text is empty if the state cannot be read, which `check_changes` reports.
    """
    try:
        if not specs.store_kind(settings).durable or read_format(settings.state.directory) is None:
            return NO_STATE, False
        from streamwatch.edge.stores.rocksdb.inspect import Inspection  # noqa: PLC0415 - loads RocksDB

        state = Inspection(settings.state.directory)
    except (StateRefused, StateFailed, SettingsError, OSError):
        return "", False
    try:
        commits = state.manifest.commits
        return f"state={state.identity} commit={commits}", commits > 0
    finally:
        state.close()


def read_plan(settings: Settings) -> StartPlan | None:
    """Compare the settings with those of the state in their directory.

    Returns
    -------
    StartPlan | None
        None for a state without commits or of results.

    Raises
    ------
    StateRefused, StateFailed
        If the state cannot be read.
    SettingsError
        As from `specs.monitors_spec`.
    """
    from streamwatch.edge.stores.rocksdb.inspect import Inspection  # noqa: PLC0415 - loads RocksDB

    state = Inspection(settings.state.directory)
    try:
        require_source(settings, state.sections)
        if settings.source == "results" or not state.manifest.commits:
            return None
        models = [key.decode() for key, _ in state.items("models")]
        with damage_named(settings.state.directory):
            return plan_of(settings, state.sections, models)
    finally:
        state.close()
