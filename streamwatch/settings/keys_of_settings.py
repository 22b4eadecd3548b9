"""Keys of the settings, as used by the rules for changes, and their values in given settings.

Keys are dotted paths from the root. Topics are distinguished by name, not by position, and a topic's only
mapping is called `mapping`: `topics.labels[outcomes].mapping.classes`. The key of a rule omits names and
numbers: `topics.labels.mapping.classes`.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from streamwatch.settings.sections import Section
from streamwatch.settings.settings import Settings
from streamwatch.settings.topics import MappingSection, TopicSection

Values: TypeAlias = Mapping[str, Any]
"""Values by key, in the notation of the file: durations as text, estimators as lists."""

SIDES: Final = ("topics.predictions", "topics.labels")
_WHOLE: Final = frozenset(
    f"{side}.{part}" for side in SIDES for part in ("format", "key_format", "mapping.kind")
)
"""Sections that count as one setting each."""
_INSTANCE: Final = re.compile(r"\[[^\]]*\]")


def keys() -> list[str]:
    """Return every key that a rule may be about, in the order of the settings."""
    return [*_keys(Settings, "")]


def _keys(model: type[BaseModel], before: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        key = f"{before}{name}"
        if key in SIDES:
            yield key
            yield from _keys(TopicSection, f"{key}.")
            continue
        if key.endswith(".name") and key.removesuffix(".name") in SIDES:
            continue  # part of the key, not a setting
        inner = None if key in _WHOLE else _section(field.annotation)
        if inner is None or _may_be_none(field.annotation):
            yield key
        if inner is not None:
            yield from _keys(inner, f"{key}.")


def _section(annotation: Any) -> type[BaseModel] | None:
    """Return the section that is the value of a key; None for other values and for lists of sections."""
    if isinstance(annotation, type):
        return annotation if issubclass(annotation, BaseModel) else None
    if not _may_be_none(annotation):
        return None
    return next(filter(None, map(_section, typing.get_args(annotation))), None)


def _annotation(section: BaseModel, name: str) -> Any:
    return type(section).model_fields[name].annotation


def _may_be_none(annotation: Any) -> bool:
    return type(None) in typing.get_args(annotation)


def rule_key(key: str) -> str:
    """Return the key of the rule about a key: without names of topics and numbers of mappings."""
    return _INSTANCE.sub("", key).replace(".mappings.", ".mapping.")


def values_of(settings: Settings) -> dict[str, Any]:
    """Return the values of all keys by key; for a section that may be null, `on` or None."""
    found: dict[str, Any] = {}
    _collect(settings, "", settings.model_dump(mode="json"), found)
    return found


def _collect(section: BaseModel, before: str, dumped: Mapping[str, Any], found: dict[str, Any]) -> None:
    for name in type(section).model_fields:
        key, value = f"{before}{name}", getattr(section, name)
        if key in SIDES:
            found[key] = [topic.name for topic in value]
            for topic in value:
                _collect_topic(topic, f"{key}[{topic.name}].", found)
        elif isinstance(value, Section) and _section(annotation := _annotation(section, name)) is not None:
            if _may_be_none(annotation):
                found[key] = "on"
            _collect(value, f"{key}.", dumped[name], found)
        else:
            found[key] = dumped[name]


def _collect_topic(topic: TopicSection, before: str, found: dict[str, Any]) -> None:
    dumped = topic.model_dump(mode="json")
    for name in ("namespace", "format", "key_format", "envelope", "decode"):
        found[f"{before}{name}"] = dumped[name]
    found[f"{before}mappings"] = len(topic.all_mappings)
    for number, mapping in enumerate(topic.all_mappings):
        own = f"{before}mapping." if len(topic.all_mappings) == 1 else f"{before}mappings[{number}]."
        written = mapping.model_dump(mode="json")
        for name in MappingSection.model_fields:
            found[f"{own}{name}"] = written[name]
