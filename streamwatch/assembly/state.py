"""Opening of the state: the store of the settings, and the objects restored from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from streamwatch.assembly import specs
from streamwatch.assembly.alerts import (
    build_alarm_book,
    build_deliveries,
    build_pacing,
    notifies_of_comparisons,
    notifies_of_hints,
    restored_alerts,
    watched_fleet,
)
from streamwatch.assembly.changes import (
    StartPlan,
    plan_of,
    require_no_refusal,
    require_no_state,
    require_source,
)
from streamwatch.assembly.publishing import (
    build_dead_letters,
    publication_log,
    publishing_of,
    shared_name,
)
from streamwatch.core.buckets.contract import BucketsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.caveats import models_without_verdicts
from streamwatch.core.join.cold.overflow import Overflow
from streamwatch.core.join.models import joined_folds
from streamwatch.core.pipeline.checkpoint import Checkpoint, RestoreReport
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import DeadLetters, RecoveredState, Schemas, Store
from streamwatch.daemon import (
    MERGE,
    POSITIONS,
    BatchProcessor,
    Clocks,
    CommitSpec,
    ConsumeLoopSpec,
    RejectedRecords,
    SourcePositions,
    State,
    Topic,
    decode_positions,
    restored_progress,
)
from streamwatch.daemon.alerting import Alerting
from streamwatch.daemon.backups import Backups, BackupsSpec
from streamwatch.daemon.batch_processor import StoreMaintenance
from streamwatch.daemon.commits import OffsetMetadata
from streamwatch.daemon.deliveries import Deliveries
from streamwatch.daemon.publisher import Publisher
from streamwatch.daemon.results import (
    RESULTS,
    NewestBatch,
    ResultsCheckpoint,
    ResultsProcessor,
    last_reported_of,
)
from streamwatch.daemon.standby import StandbyPublisher
from streamwatch.daemon.status import SteadyClock, host_ms
from streamwatch.edge.keys import bytes_of_keys, digest_bytes
from streamwatch.edge.process import return_freed_memory
from streamwatch.edge.stores.kind import damage_named
from streamwatch.edge.stores.rocksdb.opening import FreeSpace, RocksSpec
from streamwatch.settings import Settings
from streamwatch.settings.differences import document_of
from streamwatch.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class HostClocks:
    """Clocks of the host."""

    wall_ms: Callable[[], int] = host_ms
    """Milliseconds since the epoch, by a clock that may be set."""
    monotonic: Callable[[], float] = time.monotonic
    """Monotonic clock in seconds."""


def consume_loop_spec(  # noqa: PLR0913  # tests replace parts
    settings: Settings,
    topics: Mapping[str, Topic],
    telemetry: Telemetry,
    deliveries: Deliveries | None = None,
    clocks: HostClocks | None = None,
    schemas: Schemas | None = None,
    publisher: Publisher | StandbyPublisher | None = None,
    *,
    discard: bool = False,
) -> ConsumeLoopSpec:
    """Build the parts of the consume loop.

    Parameters
    ----------
    settings, topics, telemetry, deliveries, clocks, publisher, discard
        As of `state_opening`.
    schemas
        Schemas that decoders need; None if no format needs any.

    Raises
    ------
    SettingsError
        If settings contradict each other.
    """
    dead_letters = None if settings.standby.enabled else build_dead_letters(settings, telemetry)
    opening = state_opening(
        settings, topics, telemetry, deliveries, clocks, dead_letters, publisher, discard=discard
    )
    loop = ConsumeLoopSpec(
        opening,
        commit_spec(settings),
        offset_metadata=OffsetMetadata(is_shared=settings.standby.enabled),
        dead_letters=dead_letters,
        schemas=schemas,
        max_hold_back_seconds=settings.time.max_hold_back / 1_000,
        return_memory=return_freed_memory,
    )
    if not specs.store_kind(settings).durable:
        return loop
    return replace(_on_disk(loop, settings), backups=Backups(backups_spec(settings), telemetry.emit))


def results_loop_spec(
    settings: Settings, spec: BucketsSpec, telemetry: Telemetry, outgoing: Deliveries, newest: NewestBatch
) -> ConsumeLoopSpec:
    """Build the parts of the loop that reads the results of a job; arguments as of `results_opening`."""
    loop = ConsumeLoopSpec(
        results_opening(settings, spec, telemetry, outgoing, newest), commit_spec(settings)
    )
    return _on_disk(loop, settings) if specs.store_kind(settings).durable else loop


def commit_spec(settings: Settings) -> CommitSpec:
    """Build the limits of what is not committed yet."""
    return CommitSpec(settings.state.commit_interval / 1_000, settings.state.commit_events)


def _on_disk(loop: ConsumeLoopSpec, settings: Settings) -> ConsumeLoopSpec:
    """Return the spec of a loop whose state is on disk, which may be full or removed."""
    space = FreeSpace(settings.state.directory, settings.state.min_free_megabytes * 1_000_000)
    fail = "kafka.on_data_loss" if settings.kafka.on_data_loss == "fail" else None
    return replace(loop, disk_is_low=space.is_low, fail_on_lost_state=fail)


def backups_spec(settings: Settings) -> BackupsSpec | None:
    """Build the spec of backups; None if no directory is set."""
    section = settings.state.backups
    if section.directory is None:
        return None
    seconds = None if section.interval is None else section.interval / 1_000
    return BackupsSpec(section.directory, seconds, section.keep, section.command)


def state_opening(  # noqa: PLR0913  # tests replace parts
    settings: Settings,
    topics: Mapping[str, Topic],
    telemetry: Telemetry,
    deliveries: Deliveries | None = None,
    clocks: HostClocks | None = None,
    dead_letters: DeadLetters | None = None,
    publisher: Publisher | StandbyPublisher | None = None,
    *,
    discard: bool = False,
) -> Callable[[], State]:
    """Return a function that opens the store and restores the state of its last durable commit.

    The function raises StateFailed if the disk fails, and StateRefused if the store cannot be used, if
    settings have changed in a way that the state does not allow, or, without `discard`, if state is in memory
    although there is one on disk.

    Parameters
    ----------
    settings
        Settings of the daemon.
    topics
        Side and decoder of each topic by name.
    telemetry
        Receives internal events.
    deliveries
        Deliveries of the process; None: built from the settings.
    clocks
        Clocks of the host, replaced by a backfill and by tests.
    dead_letters
        Writer of the dead-letter topic; None without one, or with replicas.
    publisher
        Publisher of the process; None without topics of results.
    discard
        Whether to start with state in memory although there is one on disk.
    """
    outgoing = deliveries or build_deliveries(settings, telemetry)
    estimators = specs.monitors_spec(settings)
    join, merge = specs.join_spec(settings), specs.merge_spec(settings)
    start_ms = specs.start_ms(settings.kafka, host_ms())

    host = clocks or HostClocks()
    clock = SteadyClock(host.wall_ms, host.monotonic)

    directory = settings.state.directory

    @damage_named(directory)
    def open_state() -> State:
        if not discard:
            require_no_state(settings)
        store = open_store(settings)
        try:
            monitors = EstimatorSet(estimators)
            saved = store.load()
            require_source(settings, saved.sections)
            plan = plan_of(settings, saved.sections, list(saved.models)) if saved.commits else StartPlan()
            require_no_refusal(settings, plan)
            digests = bytes_of_keys if settings.outcomes.topic is None else digest_bytes
            pipeline = Pipeline(join, monitors, digests, build_overflow(settings, saved))
            pipeline.join.start_ms = start_ms
            made_under = document_of(settings) if store.durable else b""
            checkpoint = Checkpoint(
                pipeline, monitors, estimators, settings.state.journal_outcomes, made_under
            )
            resumed = checkpoint.restore(saved, over=plan.over) if store.durable else RestoreReport()
            checkpoint.beginnings.add_topics(plan.added_topics, pipeline.clock_ms)
            stands = decode_positions(saved.sections.get(POSITIONS)).only(topics)
            progress = restored_progress(saved.sections.get(MERGE), topics)
            clock.not_before(max(progress.running_ms.values(), default=0) - merge.max_future_ms)
            merge_clocks = Clocks(clock, lambda: int(host.monotonic() * 1_000))
            publications = (
                None if publisher is None else publication_log(settings, store.identity, saved, monitors)
            )
            if (
                publications is not None
                and isinstance(publisher, StandbyPublisher)
                and publisher.writes_invalid
            ):
                rejected = RejectedRecords(keeper=publications.keep_invalid(lambda: progress.clock_ms))
            else:
                rejected = RejectedRecords(dead_letters)
            processor = BatchProcessor(
                checkpoint,
                store,
                topics,
                telemetry,
                merge_clocks,
                merge,
                progress,
                rejected=rejected,
                maintenance=None if saved.runs is None else StoreMaintenance(pipeline, saved.runs, directory),
                publications=publications,
            )
            name = shared_name(settings) or store.identity
            book, pacing = restored_alerts(settings, name, saved)
        except BaseException:
            store.close()
            raise
        return_freed_memory()  # reading the store takes half as much memory again as the restored objects
        hints = pipeline.predictions.active_hints if notifies_of_hints(settings) else None
        compared = monitors.comparisons
        alerting = Alerting(
            book,
            outgoing,
            lambda: monitors.facts,
            host_ms,
            saved.outbox,
            hints,
            comparisons=compared.verdicts if compared and notifies_of_comparisons(settings) else None,
            list_worse=lambda share: monitors.facts.worse(
                share,
                models_without_verdicts(pipeline.mismatches(), pipeline.predictions.unrepresentative()),
            ),
            pacing=pacing,
            fleet=watched_fleet(settings, lambda: joined_folds(pipeline.join.holdings().models)),
            anew=(lambda: (build_alarm_book(settings, name), build_pacing(settings, name)))
            if settings.standby.enabled
            else None,
        )
        return State(
            store,
            checkpoint,
            processor,
            stands,
            resumed,
            alerting,
            plan.events(),
            dict(checkpoint.beginnings.topics),
            publishing_of(publications, publisher, saved, alerting),
        )

    return open_state


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
        store = open_store(settings)
        try:
            saved = store.load()
            require_source(settings, saved.sections)
            checkpoint = ResultsCheckpoint(last_reported_of(saved.sections.get(RESULTS)), saved.commits)
            committed = decode_positions(saved.sections.get(POSITIONS)).counts
            counts = committed.minus(checkpoint.reported.data_loss)
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


def build_overflow(settings: Settings, saved: RecoveredState) -> Overflow | None:
    """Restore the join's entries outside its table; None if the store keeps none."""
    return None if saved.runs is None else Overflow(saved.runs, specs.overflow_spec(settings))


def open_store(settings: Settings) -> Store:
    """Open the store of the settings; raises as `specs.store_kind` and `StoreKind.open`."""
    return specs.store_kind(settings).open(RocksSpec(settings.state.directory))
