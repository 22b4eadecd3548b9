"""Construction of the daemon from its settings, which evaluates topics or shows the results of Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamwatch.assembly import specs
from streamwatch.assembly.alerts import build_deliveries
from streamwatch.assembly.http import build_server
from streamwatch.assembly.job_settings import buckets_spec
from streamwatch.assembly.publishing import build_publisher
from streamwatch.assembly.state import consume_loop_spec, results_loop_spec
from streamwatch.assembly.topics import build_schema_cache, build_topics, topic_schemas
from streamwatch.assembly.warming import warm_up_run
from streamwatch.core.buckets.results import MOST_BYTES
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.ports import Sink, Source
from streamwatch.daemon import Attachments, ConsumeLoopSpec, Daemon, DaemonStatus, Topic
from streamwatch.daemon.commits import OffsetMetadata
from streamwatch.daemon.deliveries import Deliveries
from streamwatch.daemon.publisher import Publisher
from streamwatch.daemon.results import NewestBatch
from streamwatch.daemon.standby import LogProgress, StandbyPublisher
from streamwatch.daemon.status import host_ms
from streamwatch.edge.process import Supervisor
from streamwatch.edge.sources import KINDS
from streamwatch.edge.sources.kafka.transactions import PublishingRefused
from streamwatch.edge.stores.kind import StateRefused
from streamwatch.edge.web.connections import ListenError
from streamwatch.settings import Settings, SettingsError
from streamwatch.telemetry import Telemetry

REFUSALS = (SettingsError, ListenError, *KINDS["kafka"].refusals, StateRefused, PublishingRefused)
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
    topics, reading
        Used instead of those built from the settings, by tests; not with `source: results`.
    deliveries
        Used instead of those built from the settings, by tests.
    discard
        Whether to start with state in memory although there is a state on disk.

    Raises
    ------
    SettingsError
        If settings contradict each other.
    """
    telemetry = telemetry or build_telemetry(settings)
    monitors = specs.shown_monitors(settings)
    publisher = build_publisher(settings, telemetry)
    speaks = publisher.speaks if isinstance(publisher, StandbyPublisher) else None
    deliveries = deliveries or build_deliveries(settings, telemetry, speaks)
    if settings.source == "results":
        parts = _of_results(settings, telemetry, deliveries)
    else:
        parts = _of_topics(settings, telemetry, topics, reading, deliveries, publisher, discard=discard)
    server = build_server(settings.http, parts.status, telemetry, monitors)
    supervisor = Supervisor.from_environment(os.environ)
    attachments = Attachments(tuple(sinks), deliveries, publisher, supervisor)
    return Daemon(parts.source, parts.reading, server, parts.status, telemetry, parts.warm_up, attachments)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a daemon that depend on what it reads."""

    source: Source
    reading: ConsumeLoopSpec
    status: DaemonStatus
    warm_up: Callable[[], object]


def _of_topics(
    settings: Settings,
    telemetry: Telemetry,
    topics: Mapping[str, Topic] | None,
    reading: ConsumeLoopSpec | None,
    deliveries: Deliveries,
    publisher: Publisher | StandbyPublisher | None,
    *,
    discard: bool,
) -> _Parts:
    cache = build_schema_cache(settings, telemetry.emit)
    topics = topics or build_topics(settings, cache)
    reading = reading or consume_loop_spec(
        settings,
        topics,
        telemetry,
        deliveries,
        schemas=topic_schemas(cache, topics),
        publisher=publisher,
        discard=discard,
    )
    source = _source(settings, list(topics), telemetry, reading.offset_metadata)
    parts = [deliveries, *(part for part in (publisher, reading.backups) if part is not None)]
    status = DaemonStatus(source, telemetry, parts, schemas=reading.schemas)
    if isinstance(publisher, StandbyPublisher):
        publisher.caught_up = lambda: status.caught_up
        publisher.stalled = lambda: status.stalled
        publisher.log_progress = lambda: LogProgress(int(reading.monotonic() * 1_000), status.evaluated_ms)
        status.standby = publisher
    return _Parts(source, reading, status, lambda: warm_up_run(settings))


def _source(
    settings: Settings, topics: Sequence[str], telemetry: Telemetry, metadata: OffsetMetadata
) -> Source:
    """Build the source of the topics, which can continue from positions."""
    spec, dead_letters = specs.kafka_spec(settings.kafka), settings.kafka.dead_letter_topic
    if dead_letters is not None:
        spec = replace(spec, required_topics=((dead_letters, "kafka.dead_letter_topic"),))
    return KINDS["kafka"].build(spec, topics, telemetry.emit, metadata, lambda: metadata.topics_since_ms)


def _of_results(settings: Settings, telemetry: Telemetry, deliveries: Deliveries) -> _Parts:
    """Build the parts that show the results of a Spark job, read from the beginning of their topic."""
    buckets, newest = buckets_spec(settings), NewestBatch(settings.spark.interval / 1_000)
    reading = results_loop_spec(settings, buckets, telemetry, deliveries, newest)
    spec = replace(
        specs.kafka_spec(settings.kafka),
        start_from="earliest",
        max_record_bytes=MOST_BYTES,
        max_batch_bytes=2 * MOST_BYTES,
    )
    topics = [settings.spark.results_topic]
    source = KINDS["kafka"].build(spec, topics, telemetry.emit, reading.offset_metadata)
    status = DaemonStatus(source, telemetry, (deliveries,))
    status.results_stale = lambda: newest.is_stale(host_ms())
    return _Parts(source, reading, status, lambda: warm_up(buckets.monitors))


def build_from_document(document: Mapping[str, Any], telemetry: Telemetry, sinks: Sequence[Sink]) -> Daemon:
    """Build a daemon from the content of a configuration file, without reading a file or the environment."""
    return build_daemon(Settings(**document), telemetry, sinks)
