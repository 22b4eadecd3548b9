"""All sections of the settings, and their JSON Schema."""

from __future__ import annotations

from typing import Any, Literal

from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from streamwatch.settings.alerts import AlertsSection
from streamwatch.settings.descriptions import Described
from streamwatch.settings.http import HttpSection
from streamwatch.settings.models import ModelsSection
from streamwatch.settings.monitors import MonitorsSection
from streamwatch.settings.sections import (
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
)
from streamwatch.settings.topics import SchemaRegistrySection, TopicsSection
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
