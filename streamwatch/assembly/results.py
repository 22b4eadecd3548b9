"""Construction of a daemon that shows the results of a Spark job (`source: results`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.assembly.alerts import build_deliveries, restored_alerts, watched_fleet
from streamwatch.assembly.http import build_server
from streamwatch.assembly.publishing import require_publishable
from streamwatch.assembly.sources import build_results_source
from streamwatch.core.buckets.contract import BucketsSpec
from streamwatch.core.buckets.results import MOST_BYTES
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.join.caveats import models_without_verdicts
from streamwatch.core.join.models import joined_folds
from streamwatch.core.pipeline.checkpoint import PIPELINE, RestoreReport
from streamwatch.core.ports import Sink
from streamwatch.daemon import Attachments, CommitSpec, ConsumeLoopSpec, Daemon, DaemonStatus, State
from streamwatch.daemon.alerting import Alerting
from streamwatch.daemon.deliveries import Deliveries
from streamwatch.daemon.results import (
    RESULTS,
    NewestBatch,
    ResultsCheckpoint,
    ResultsProcessor,
    last_reported_of,
)
from streamwatch.daemon.source_positions import POSITIONS, DataLossTotals, SourcePositions, decode_positions
from streamwatch.daemon.status import host_ms
from streamwatch.edge.process import Supervisor
from streamwatch.edge.stores.kind import StateRefused, damage_named
from streamwatch.edge.stores.rocksdb.opening import FreeSpace
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.table_of_changes import RULES
from streamwatch.telemetry import Telemetry


def buckets_spec(settings: Settings) -> BucketsSpec:
    """Build the spec by which the job divides the stream into buckets.

    Raises
    ------
    SettingsError
        If `join.conflicts` is `last`, which buckets do not support.
    """
    if settings.join.conflicts == "last":
        raise SettingsError("join.conflicts: expected first or both where Spark evaluates, got last")
    return BucketsSpec(
        sides=topic_properties.sides(settings.topics),
        join=specs.join_spec(settings),
        monitors=specs.monitors_spec(settings),
        id_buckets=settings.spark.id_buckets,
        model_buckets=settings.spark.model_buckets,
        max_future_ms=settings.time.max_future,
        start_ms=specs.start_ms(settings.kafka, host_ms()),
    )


def build_results_daemon(
    settings: Settings,
    telemetry: Telemetry,
    sinks: Sequence[Sink] = (),
    deliveries: Deliveries | None = None,
) -> Daemon:
    """Build the daemon of `streamwatch run` with `source: results`.

    `sinks` get its results, too, and `deliveries` replace those to the receivers of the settings.

    Raises
    ------
    SettingsError
        If settings contradict each other.
    """
    require_publishable(settings)
    monitors = specs.shown_monitors(settings)
    outgoing = deliveries or build_deliveries(settings, telemetry)
    spec = buckets_spec(settings)
    newest = NewestBatch(settings.spark.interval / 1_000)
    reading = _reading(settings, spec, telemetry, outgoing, newest)
    topics = [settings.spark.results_topic]
    source = build_results_source(settings, topics, telemetry.emit, reading.offset_metadata, MOST_BYTES)
    status = DaemonStatus(source, telemetry, (outgoing,))
    status.results_stale = lambda: newest.is_stale(host_ms())
    server = build_server(settings.http, status, telemetry, monitors)
    attachments = Attachments(tuple(sinks), outgoing, supervisor=Supervisor.from_environment(os.environ))

    def prepare() -> None:
        warm_up(spec.monitors)

    return Daemon(source, reading, server, status, telemetry, prepare, attachments)


def _reading(
    settings: Settings, spec: BucketsSpec, telemetry: Telemetry, outgoing: Deliveries, newest: NewestBatch
) -> ConsumeLoopSpec:
    section = settings.state
    commits = CommitSpec(section.commit_interval / 1_000, section.commit_events)
    opening = results_opening(settings, spec, telemetry, outgoing, newest)
    if not specs.store_kind(settings).durable:
        return ConsumeLoopSpec(opening, commits)
    space = FreeSpace(section.directory, section.min_free_megabytes * 1_000_000)
    fail = "kafka.on_data_loss" if settings.kafka.on_data_loss == "fail" else None
    return ConsumeLoopSpec(opening, commits, space.is_low, fail_on_lost_state=fail)


def results_opening(
    settings: Settings,
    spec: BucketsSpec,
    telemetry: Telemetry,
    outgoing: Deliveries,
    newest: NewestBatch | None = None,
) -> Callable[[], State]:
    """Return a function that opens the state, which contains notifications and the last reported batch.

    It raises StateRefused for a state that is damaged or was made with another `source`. `newest` gets the
    age of the results; None if nobody asks for it.
    """

    @damage_named(settings.state.directory)
    def open_state() -> State:
        kind = specs.store_kind(settings)
        store = kind.open(specs.rocks_spec(settings))
        try:
            saved = store.load()
            require_source(settings, saved.sections)
            checkpoint = ResultsCheckpoint(last_reported_of(saved.sections.get(RESULTS)), saved.commits)
            kept = saved.sections.get(POSITIONS)
            counts = (
                DataLossTotals()
                if kept is None
                else decode_positions(kept).counts.minus(checkpoint.reported.data_loss)
            )
            processor = ResultsProcessor(spec, checkpoint, telemetry, host_ms, newest)
            book, pacing = restored_alerts(settings, store.identity, saved)
        except BaseException:
            store.close()
            raise
        alerting = Alerting(
            book,
            outgoing,
            lambda: processor.view.monitors.facts,
            host_ms,
            saved.outbox,
            list_worse=lambda share: processor.view.monitors.facts.worse(
                share, models_without_verdicts(processor.view.mismatches())
            ),
            pacing=pacing,
            fleet=watched_fleet(settings, lambda: joined_folds(processor.view.totals.models)),
        )
        # Without positions, as the topic is read from its beginning.
        return State(store, checkpoint, processor, SourcePositions(counts=counts), RestoreReport(), alerting)

    return open_state


def require_source(settings: Settings, sections: Mapping[str, bytes]) -> None:
    """Raise StateRefused if the state with these sections was made with another `source`."""
    other = PIPELINE if settings.source == "results" else RESULTS
    if other in sections:
        (case,) = RULES["source"]
        raise StateRefused(
            f"source: expected the one with which the state in {settings.state.directory} was made, got "
            f"{settings.source!r}: {case.change}, {case.what}: set it back, set another state.directory, or "
            f"run `{case.command}`"
        )
