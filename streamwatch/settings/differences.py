"""Settings under which a state was made, and consequences of changed settings for the state."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os.path import commonprefix
from typing import Any

import msgspec
from pydantic import ValidationError

from streamwatch.edge.decoders.fields import fixed_text
from streamwatch.settings.field_forms import paths_written
from streamwatch.settings.settings import Settings
from streamwatch.settings.table_of_changes import (
    FORGOTTEN,
    RESET_ALL,
    RULES,
    SIDES,
    Case,
    Change,
    Scope,
    Values,
    is_remembered,
    rule_key,
    values_of,
)
from streamwatch.settings.topics import TopicSection

_MOST_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Held:
    """Contents of a state on which some changes depend."""

    waiting: int = 0
    """Number of predictions and labels that wait in the join."""
    folds_waiting: int = 0
    """Number of waiting predictions of folds, and of their outcomes that are held back for their order."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """Change of one setting, and its consequence for the state."""

    key: str
    before: Any
    after: Any
    change: Change
    what: str
    """Consequence in words."""
    command: str = ""
    """Command that helps if the change is refused."""
    scope: Scope | None = None
    """What begins anew for the models concerned; None if no models are."""

    def text(self) -> str:
        """Return a line with setting, old and new value, and consequence."""
        before, after = _text(self.before), _text(self.after)
        long = max(len(before), len(after)) > _MOST_SHOWN
        same = len(commonprefix((before, after))) if long else 0  # noqa: RUF071  # of characters
        skipped = max(0, same - _MOST_SHOWN // 2)
        shown = f"{_shown(before, skipped)} → {_shown(after, skipped)}"
        return f"{self.key}: {shown}: {self.change}, {self.what}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _shown(text: str, skipped: int) -> str:
    """Return `_MOST_SHOWN` characters after the `skipped` ones, which both values have."""
    rest = text[skipped:]
    return ("…" if skipped else "") + (rest if len(rest) <= _MOST_SHOWN else f"{rest[:_MOST_SHOWN]}…")


def document_of(settings: Settings) -> bytes:
    """Encode the settings that a state remembers, without secrets; equal settings give equal bytes."""
    document = settings.model_dump(mode="json", exclude={*FORGOTTEN}, exclude_none=False)
    del document["kafka"]["security"]
    # Without defaults: fields that a mapping does not set have those of its envelope.
    document["topics"] = settings.topics.model_dump(mode="json", exclude_unset=True)
    return msgspec.json.encode(document, order="deterministic")


class Unreadable(ValueError):  # noqa: N818 - the name says what happened
    """The remembered settings contain one that this version does not have."""


def settings_of(document: bytes) -> Settings:
    """Rebuild settings from `document_of`; sections that a state does not remember have defaults.

    Raises
    ------
    Unreadable
        If this version no longer has one of the settings.
    """
    try:
        return Settings(**msgspec.json.decode(document))
    except (ValidationError, msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
        raise Unreadable(str(error)) from error


def changes(before: Settings, after: Settings, held: Held) -> list[SettingChange]:
    """List the changes between two settings and their consequences, in the order of the settings."""
    old, new = _remembered(before), _remembered(after)
    found = [_change(key, old[key], new[key], held) for key in new if key in old and old[key] != new[key]]
    return [*_sides(before, after), *_other_topics(before, after), *found]


def _remembered(settings: Settings) -> Values:
    return {key: value for key, value in values_of(settings).items() if is_remembered(rule_key(key))}


def _change(key: str, before: Any, after: Any, held: Held) -> SettingChange:
    case = next(case for case in RULES[rule_key(key)] if _applies(case, before, after, held))
    return SettingChange(key, before, after, case.change, case.what, case.command, case.scope)


def _applies(case: Case, before: Any, after: Any, held: Held) -> bool:
    enough: Mapping[str | None, bool] = {
        None: True,
        "waiting": held.waiting > 0,
        "folds": held.folds_waiting > 0,
    }
    return enough[case.needs] and case.applies(before, after)


def _sides(before: Settings, after: Settings) -> Sequence[SettingChange]:
    """Return refusals for topics that change between predictions, labels and both."""
    then, now = _sides_of(before), _sides_of(after)
    return [
        SettingChange(
            f"topics: {name}",
            then[name],
            now[name],
            Change.REFUSED,
            "a topic cannot carry something else than before",
            RESET_ALL,
        )
        for name in now
        if name in then and then[name] != now[name]
    ]


def _other_topics(before: Settings, after: Settings) -> Sequence[SettingChange]:
    """Return a refusal if all topics were replaced, as the state is then probably another deployment's."""
    then, now = sorted(_sides_of(before)), sorted(_sides_of(after))
    if not then or set(then) & set(now):
        return []
    return [
        SettingChange(
            "topics",
            then,
            now,
            Change.REFUSED,
            "none of the topics that the state was made of is left: name another state.directory; where "
            "topics were renamed, add the new ones first and leave the old ones out later",
            RESET_ALL,
        )
    ]


def _sides_of(settings: Settings) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for side, topics in zip(SIDES, (settings.topics.predictions, settings.topics.labels), strict=True):
        for topic in topics:
            found.setdefault(topic.name, []).append(side.removeprefix("topics."))
    return found


def concerned(
    change: SettingChange, before: Settings, after: Settings, models: Collection[str]
) -> frozenset[str]:
    """Return the models whose evaluation a changed mapping or utility concerns.

    A mapping that names its model as a constant concerns this model. A mapping that reads names from records
    concerns every model that no other mapping names; a mapping of labels, only models of its namespace.

    Parameters
    ----------
    change
        The change; without a `scope` it concerns no model.
    before, after
        Old and new settings.
    models
        Names of the models, without folds, among which to choose.
    """
    if change.scope is None:
        return frozenset()
    if change.key.startswith("monitors.utility"):
        return frozenset(name for name in models if _utility(before, name) != _utility(after, name))
    name = change.key.partition("[")[2].partition("]")[0]
    chosen: set[str] = set()
    for settings in (before, after):
        chosen |= _of_topic(settings, change.key.startswith("topics.predictions"), name, models)
    return frozenset(chosen & set(models))


def _utility(settings: Settings, model: str) -> object:
    by_model = settings.monitors.utility_by_model
    return next(
        (utility for pattern, utility in by_model.items() if fnmatchcase(model, pattern)),
        settings.monitors.utility,
    )


def _of_topic(settings: Settings, predictions: bool, name: str, models: Collection[str]) -> set[str]:  # noqa: FBT001
    side = settings.topics.predictions if predictions else settings.topics.labels
    topic = next((topic for topic in side if topic.name == name), None)
    if topic is None:
        return set()
    if predictions:
        return _predicting([topic], settings.topics.predictions, models)
    named = {fixed_text(paths_written(mapping.model)) for mapping in topic.all_mappings}
    if None not in named:  # every mapping names its model
        return {model for model in named if model is not None}
    of_namespace = [each for each in settings.topics.predictions if each.namespace == topic.namespace]
    return _predicting(of_namespace, settings.topics.predictions, models)


def _predicting(
    topics: Sequence[TopicSection], all_topics: Sequence[TopicSection], models: Collection[str]
) -> set[str]:
    """Return the models whose predictions may be in some of the topics."""
    own, some = _named(topics)
    if not some:
        return own
    elsewhere, _ = _named([topic for topic in all_topics if topic not in topics])
    return own | (set(models) - elsewhere)


def _named(topics: Sequence[TopicSection]) -> tuple[set[str], bool]:
    """Return the models that mappings name as constants, and whether any mapping reads names from records."""
    named = [fixed_text(paths_written(mapping.model)) for topic in topics for mapping in topic.all_mappings]
    return {name for name in named if name is not None}, None in named
