"""Specs → objects, wired to each other."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from streamwatch.assembly import specs
from streamwatch.assembly.alerts import build_deliveries
from streamwatch.assembly.http import build_server
from streamwatch.assembly.state import reading_spec
from streamwatch.core.ports import Sink
from streamwatch.core.warming import warm_up
from streamwatch.daemon import Beside, Daemon, ReadingSpec, Topic, Vitals
from streamwatch.daemon.delivery import Deliveries
from streamwatch.edge.decoders.json import JsonDecoder
from streamwatch.edge.http import ListenError
from streamwatch.edge.keys import digest_ids
from streamwatch.edge.sources.kafka import KafkaSource, LogLost, TopicsMissing
from streamwatch.edge.stores.errors import StateRefused
from streamwatch.edge.supervisor import Supervisor
from streamwatch.settings import Settings, SettingsError
from streamwatch.telemetry import Telemetry

REFUSALS = (SettingsError, ListenError, TopicsMissing, LogLost, StateRefused)
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
    keys = None if settings.state.kind == "memory" else digest_ids
    topics: dict[str, Topic] = {}
    for name, side in specs.sides(settings.topics).items():
        try:
            topics[name] = Topic(side, JsonDecoder(name, side, mappings[name], keys))
        except ValueError as error:
            raise SettingsError(f"topics: mapping of {name}: {error}") from None
    return topics


def build_daemon(
    settings: Settings,
    telemetry: Telemetry | None = None,
    sinks: Sequence[Sink] = (),
    topics: Mapping[str, Topic] | None = None,
    reading: ReadingSpec | None = None,
    deliveries: Deliveries | None = None,
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
    topics, reading, deliveries
        Used instead of what the settings ask for: a test looks over the daemon's shoulder with them.

    Raises
    ------
    SettingsError
        Settings that contradict each other.
    """
    telemetry = telemetry or build_telemetry(settings)
    topics = topics or build_topics(settings)
    estimators = specs.monitors_spec(settings)
    deliveries = deliveries or build_deliveries(settings, telemetry)
    reading = reading or reading_spec(settings, topics, telemetry, deliveries)
    source = KafkaSource(specs.kafka_spec(settings.kafka), list(topics), telemetry.emit, mark=reading.mark)
    vitals = Vitals(source, telemetry, (deliveries,))
    server = build_server(settings.http, vitals, telemetry)
    supervisor = Supervisor.from_environment(os.environ)
    beside = Beside(tuple(sinks), deliveries, supervisor)

    def prepare() -> None:
        warm_up(estimators)

    return Daemon(source, reading, server, vitals, telemetry, prepare, beside)


def build_from_document(document: Mapping[str, Any], telemetry: Telemetry, sinks: Sequence[Sink]) -> Daemon:
    """A daemon from what a configuration file would hold; neither file nor environment is read."""
    return build_daemon(Settings(**document), telemetry, sinks)
