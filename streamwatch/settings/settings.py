"""All sections of the settings, their JSON Schema, and the commented example of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, cast

from pydantic import BaseModel
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from streamwatch.edge.yaml_text import comment, inline
from streamwatch.settings.alerts import AlertsSection, ModelsSection
from streamwatch.settings.http import HttpSection
from streamwatch.settings.monitors import MonitorsSection
from streamwatch.settings.sections import (
    Described,
    EventsSection,
    FoldsSection,
    JoinSection,
    KafkaSection,
    LedgerSection,
    LogSection,
    OutcomesSection,
    SparkSection,
    StandbySection,
    StateSection,
    TimeSection,
    descriptions,
)
from streamwatch.settings.topics import MappingSection, SchemaRegistrySection, TopicSection, TopicsSection
from streamwatch.settings.values import PATTERN as DURATION_PATTERN
from streamwatch.settings.values import format_duration


class Settings(Described, BaseSettings):
    """Everything an operator can choose."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True)

    source: Literal["kafka", "results"] = "kafka"
    """What `streamwatch run` reads: the topics (kafka), or the results of `streamwatch spark` (results)."""
    kafka: KafkaSection
    topics: TopicsSection
    schema_registry: SchemaRegistrySection = SchemaRegistrySection()
    join: JoinSection = JoinSection()
    time: TimeSection = TimeSection()
    monitors: MonitorsSection = MonitorsSection()
    folds: FoldsSection = FoldsSection()
    models: ModelsSection = ModelsSection()
    alerts: AlertsSection = AlertsSection()
    outcomes: OutcomesSection = OutcomesSection()
    events: EventsSection = EventsSection()
    ledger: LedgerSection = LedgerSection()
    standby: StandbySection = StandbySection()
    http: HttpSection = HttpSection()
    state: StateSection = StateSection()
    spark: SparkSection = SparkSection()
    log: LogSection = LogSection()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use arguments only: `load` merges file and environment itself, to name the origin of each fault."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


def json_schema() -> dict[str, Any]:
    """JSON Schema of the file, for editors and for checks before a deployment."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Settings.model_json_schema(),
        "title": "Configuration of streamwatch",
    }
    for definition in schema["$defs"].values():
        for field in definition.get("properties", {}).values():
            if field.get("pattern") == DURATION_PATTERN and isinstance(field.get("default"), int):
                field["default"] = format_duration(field["default"])  # pydantic has parsed it
    return schema


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
