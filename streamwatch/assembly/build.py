"""Specs → objects, wired to each other."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamwatch.assembly import specs
from streamwatch.core.events import Outcome
from streamwatch.core.monitors import Monitors
from streamwatch.core.pipeline import Pipeline
from streamwatch.core.ports import Sink
from streamwatch.core.specs import MonitorsSpec
from streamwatch.daemon import Daemon, Intake, Topic, Vitals
from streamwatch.edge.decoders.json import JsonDecoder
from streamwatch.edge.exporters.json_api import JsonExporter
from streamwatch.edge.exporters.landing import LandingPage
from streamwatch.edge.exporters.prometheus import PrometheusExporter
from streamwatch.edge.http import HttpServer, ListenError
from streamwatch.edge.sources.kafka import KafkaSource, LogLost, TopicsMissing
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.settings import Settings, SettingsError
from streamwatch.telemetry import Telemetry

REFUSALS = (SettingsError, ListenError, TopicsMissing, LogLost)
"""What `run` may end with that no restart will cure; each says what to change."""


def build_telemetry(settings: Settings) -> Telemetry:
    """The daemon's log and its counters."""
    return Telemetry(settings.log.level, settings.log.format)


def build_topics(settings: Settings) -> dict[str, Topic]:
    """Side and decoder of each topic.

    Raises
    ------
    SettingsError
        A constant or an alias in a mapping is no valid name.
    """
    mappings = specs.mappings(settings.topics)
    topics: dict[str, Topic] = {}
    for name, side in specs.sides(settings.topics).items():
        try:
            topics[name] = Topic(side, JsonDecoder(name, side, mappings[name]))
        except ValueError as error:
            raise SettingsError(f"topics: mapping of {name}: {error}") from None
    return topics


def build_daemon(
    settings: Settings,
    telemetry: Telemetry | None = None,
    sinks: Sequence[Sink] = (),
    topics: Mapping[str, Topic] | None = None,
) -> Daemon:
    """Everything `streamwatch run` needs.

    Parameters
    ----------
    settings
        Whatever the operator chose.
    telemetry
        Used instead of what the settings ask for.
    sinks
        Shown every report beside the HTTP server.
    topics
        Used instead of what the settings ask for: a test looks over the daemon's shoulder with it.

    Raises
    ------
    SettingsError
        Settings that contradict each other.
    """
    telemetry = telemetry or build_telemetry(settings)
    topics = topics or build_topics(settings)
    estimators = specs.monitors_spec(settings)
    monitors = Monitors(estimators)
    pipeline = Pipeline(specs.join_spec(settings), specs.time_spec(settings), monitors, {})
    pipeline.start_ms = specs.start_ms(settings.kafka, time.time_ns() // 1_000_000)
    intake = Intake(pipeline, monitors, MemoryStore(), topics, telemetry, lambda: time.time_ns() // 1_000_000)
    source = KafkaSource(specs.kafka_spec(settings.kafka), list(topics), telemetry.emit)
    vitals = Vitals(source, telemetry, durable=False)
    host, _, port = settings.http.listen.rpartition(":")
    exporters = (PrometheusExporter(), JsonExporter(), LandingPage())
    server = HttpServer(vitals, exporters, host=host.strip("[]"), port=int(port))
    return Daemon(source, intake, server, vitals, telemetry, lambda: warm_up(estimators), sinks)


def build_from_document(document: Mapping[str, Any], telemetry: Telemetry, sinks: Sequence[Sink]) -> Daemon:
    """A daemon from what a configuration file would hold; neither file nor environment is read."""
    return build_daemon(Settings(**document), telemetry, sinks)


def warm_up(spec: MonitorsSpec) -> None:
    """Compile the estimators, or take them from the cache, by evaluating one outcome of one model."""
    monitors = Monitors(replace(spec, max_models=1))
    monitors.fold([Outcome("warm-up", "a", "b", at_ms=0, delay_ms=0)])
    monitors.families()
