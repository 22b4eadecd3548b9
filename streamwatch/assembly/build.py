"""Construction of the daemon from its settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from streamwatch.assembly import specs
from streamwatch.assembly.alerts import build_deliveries
from streamwatch.assembly.http import build_server
from streamwatch.assembly.publishing import build_publisher
from streamwatch.assembly.results import build_results_daemon
from streamwatch.assembly.sources import REFUSALS as SOURCE_REFUSALS
from streamwatch.assembly.sources import build_source
from streamwatch.assembly.state import consume_loop_spec
from streamwatch.assembly.topics import build_schema_cache, build_topics, topic_schemas
from streamwatch.assembly.warming import warm_up_run
from streamwatch.core.ports import Sink
from streamwatch.daemon import Attachments, ConsumeLoopSpec, Daemon, DaemonStatus, Topic
from streamwatch.daemon.deliveries import Deliveries
from streamwatch.daemon.standby import StandbyPublisher
from streamwatch.edge.process import Supervisor
from streamwatch.edge.sources.kafka.transactions import PublishingRefused
from streamwatch.edge.stores.kind import StateRefused
from streamwatch.edge.web.connections import ListenError
from streamwatch.settings import Settings, SettingsError
from streamwatch.telemetry import Telemetry

REFUSALS = (SettingsError, ListenError, *SOURCE_REFUSALS, StateRefused, PublishingRefused)
"""Errors of `run` that a restart cannot solve; each text says what to change."""


def build_telemetry(settings: Settings) -> Telemetry:
    """Build the daemon's log and its counters of internal events."""
    return Telemetry(settings.log.level, settings.log.format)


def build_daemon(
    settings: Settings,
    telemetry: Telemetry | None = None,
    sinks: Sequence[Sink] = (),
    topics: Mapping[str, Topic] | None = None,
    reading: ConsumeLoopSpec | None = None,
    deliveries: Deliveries | None = None,
    *,
    discard: bool = False,
) -> Daemon:
    """Build the daemon of `streamwatch run`.

    Parameters
    ----------
    settings
        Settings of the daemon.
    telemetry
        Used instead of one built from the settings.
    sinks
        Receive every report, as the HTTP server does.
    topics, reading, deliveries
        Used instead of those built from the settings, by tests.
    discard
        Whether to start with state in memory although there is a state on disk.

    Raises
    ------
    SettingsError
        If settings contradict each other.
    """
    telemetry = telemetry or build_telemetry(settings)
    if settings.source == "results":
        return build_results_daemon(settings, telemetry, sinks, deliveries)
    monitors = specs.shown_monitors(settings)
    cache = build_schema_cache(settings, telemetry.emit)
    topics = topics or build_topics(settings, cache)
    publisher = build_publisher(settings, telemetry)
    speaks = publisher.speaks if isinstance(publisher, StandbyPublisher) else None
    deliveries = deliveries or build_deliveries(settings, telemetry, speaks)
    reading = reading or consume_loop_spec(
        settings,
        topics,
        telemetry,
        deliveries,
        schemas=topic_schemas(cache, topics),
        publisher=publisher,
        discard=discard,
    )
    source = build_source(
        settings,
        list(topics),
        telemetry.emit,
        reading.offset_metadata,
        lambda: reading.offset_metadata.topics_since_ms,
    )
    parts = [deliveries, *(part for part in (publisher, reading.backups) if part is not None)]
    status = DaemonStatus(source, telemetry, parts, schemas=reading.schemas)
    if isinstance(publisher, StandbyPublisher):
        publisher.caught_up = lambda: status.caught_up
        publisher.stalled = lambda: status.stalled
        status.standby = publisher
    server = build_server(settings.http, status, telemetry, monitors)
    supervisor = Supervisor.from_environment(os.environ)
    attachments = Attachments(tuple(sinks), deliveries, publisher, supervisor)

    def prepare() -> None:
        warm_up_run(settings)

    return Daemon(source, reading, server, status, telemetry, prepare, attachments)


def build_from_document(document: Mapping[str, Any], telemetry: Telemetry, sinks: Sequence[Sink]) -> Daemon:
    """Build a daemon from the content of a configuration file, without reading a file or the environment."""
    return build_daemon(Settings(**document), telemetry, sinks)
