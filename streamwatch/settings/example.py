"""Commented configuration file, generated from the settings' own descriptions and defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from pydantic import BaseModel

from streamwatch.edge.yaml_text import comment, inline
from streamwatch.settings.descriptions import descriptions
from streamwatch.settings.settings import Settings
from streamwatch.settings.topics import MappingSection, TopicSection

INDENT = "  "
_UNSET = re.compile(r"^( +)# (\w+:)$")
"""Line of a key that is not set."""
_HEADER = """\
# Configuration of streamwatch. Only kafka.bootstrap_servers and topics are required. Every other key shows
# its default, or is commented out. Durations are written 30s, 14d or 1h30m. Any key can also be set in the
# environment (STREAMWATCH__KAFKA__BOOTSTRAP_SERVERS=…) or on the command line
# (--set kafka.bootstrap_servers=…).
"""
_REQUIRED: dict[str, Any] = {
    "kafka": {"bootstrap_servers": ["localhost:9092"]},
    "topics": {"predictions": ["predictions"], "labels": ["labels"]},
}


def example() -> str:
    """Return a configuration file with the description and the default of every key.

    Loading it gives the defaults, with the broker `localhost:9092` and topics `predictions` and `labels`.
    """
    lines: list[str] = []
    texts = descriptions(Settings)
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, str):
            lines += ["", *comment(texts.get(name, ""), ""), f"{name}: {inline(_present(field.default))}"]
            continue
        section = cast("type[BaseModel]", field.annotation)
        within = list(_section(section, _defaults(section, _REQUIRED.get(name, {})), INDENT))
        if all(line.startswith(f"{INDENT}#") for line in within):  # no key has a default
            within = ["# " + _UNSET.sub(r"\1\2", line) for line in within]
        heading = f"{name}:" if any(not line.startswith("#") for line in within) else f"# {name}:"
        lines += ["", *comment(section.__doc__ or "", ""), heading, *within]
        if name == "topics":
            lines += _mapping()
    return _HEADER + "\n".join(lines) + "\n"


def _defaults(section: type[BaseModel], required: dict[str, Any]) -> dict[str, Any]:
    return section.model_validate(required).model_dump(mode="json") | required


def _section(section: type[BaseModel], values: dict[str, Any], indent: str) -> Iterator[str]:
    texts = descriptions(section)
    for name, field in section.model_fields.items():
        value = values[name]
        yield from comment(texts.get(name, ""), indent)
        if value is None:
            yield f"{indent}# {name}:"
        elif isinstance(field.default, BaseModel):
            yield f"{indent}{name}:"
            yield from _section(type(field.default), value, indent + INDENT)
        elif isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
            yield f"{indent}{name}:"
            yield from (f"{indent}{INDENT}- {inline(_present(entry))}" for entry in value)
        else:
            yield f"{indent}{name}: {inline(_present(value))}"


def _mapping() -> Iterator[str]:
    """Yield the commented-out example of a topic with a mapping."""
    indent = INDENT * 2
    yield f"{INDENT}# A topic whose records have other fields is written with name and mapping:"
    yield f"{INDENT}#   predictions:"
    yield f"{INDENT}#     - name: scoring-events"
    yield from _namespace()
    yield f"{INDENT}#       mapping:"
    for line in _section(MappingSection, MappingSection().model_dump(mode="json"), indent):
        yield f"{INDENT}#     {line}"


def _namespace() -> Iterator[str]:
    """Yield the commented-out keys `namespace` and `format` of that topic."""
    texts = descriptions(TopicSection)
    for name, value in (("namespace", ""), ("format", "json")):
        yield from (f"{INDENT}#     {line}" for line in comment(texts[name], INDENT))
        yield f"{INDENT}#     {INDENT}{name}: {inline(_present(value))}"


def _present(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _present(inner) for key, inner in value.items() if inner is not None}
    return value
