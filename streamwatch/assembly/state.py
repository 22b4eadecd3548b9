"""How state is opened: the store the settings ask for, and what continues from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from streamwatch.assembly import specs
from streamwatch.assembly.alerts import build_alarm_book, build_deliveries, notifies_of_hints
from streamwatch.assembly.results import require_source
from streamwatch.core.commit.batch import RecoveredState
from streamwatch.core.commit.checkpoint import Checkpoint, RestoreReport
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join.compiled.durable.packed import PackedError
from streamwatch.core.join.compiled.outside.overflow import Overflow
from streamwatch.core.pipelines.column_pipeline import ColumnPipeline
from streamwatch.core.pipelines.pipeline import Pipeline
from streamwatch.core.ports import DeadLetters, Schemas, Store
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
from streamwatch.daemon.alerting import ALARMS, Alerting
from streamwatch.daemon.clock import SteadyClock
from streamwatch.daemon.deliveries.deliveries import Deliveries
from streamwatch.daemon.processing.store_maintenance import StoreMaintenance
from streamwatch.edge.freed_memory import return_freed_memory
from streamwatch.edge.keys import bytes_of_keys
from streamwatch.edge.sources.kafka.dead_letters import DeadLetterTopic
from streamwatch.edge.stores.errors import StateDamaged, damage_named
from streamwatch.edge.stores.space import FreeSpace
from streamwatch.settings import Settings
from streamwatch.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class HostClocks:
    """Clocks of the host."""

    wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    """Milliseconds since the epoch; may be set."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds that never go back."""


def consume_loop_spec(
    settings: Settings,
    topics: Mapping[str, Topic],
    telemetry: Telemetry,
    deliveries: Deliveries | None = None,
    clocks: HostClocks | None = None,
    schemas: Schemas | None = None,
) -> ConsumeLoopSpec:
    """Functions by which the daemon's reading loop opens and commits state."""
    state = settings.state
    commits = CommitSpec(state.commit_interval / 1_000, specs.commit_events(settings))
    dead_letters = build_dead_letters(settings, telemetry)
    opening = state_opening(settings, topics, telemetry, deliveries, clocks, dead_letters)
    loop = ConsumeLoopSpec(
        opening,
        commits,
        dead_letters=dead_letters,
        schemas=schemas,
        max_hold_back_seconds=settings.time.max_hold_back / 1_000,
    )
    if not specs.store_kind(settings).durable:
        return loop
    space = FreeSpace(state.directory, state.min_free_megabytes * 1_000_000)
    fail = "kafka.on_data_loss" if settings.kafka.on_data_loss == "fail" else None
    return replace(loop, disk_is_low=space.is_low, fail_on_lost_state=fail)


def build_dead_letters(settings: Settings, telemetry: Telemetry) -> DeadLetters | None:
    """The topic for invalid records; None where there is none."""
    topic = settings.kafka.dead_letter_topic
    return None if topic is None else DeadLetterTopic(specs.kafka_spec(settings.kafka), topic, telemetry.emit)


def state_opening(
    settings: Settings,
    topics: Mapping[str, Topic],
    telemetry: Telemetry,
    deliveries: Deliveries | None = None,
    clocks: HostClocks | None = None,
    dead_letters: DeadLetters | None = None,
) -> Callable[[], State]:
    """A function that opens state where the last durable commit left it.

    It raises StateRefused, or StateFailed, of the store. A test gives `clocks` of its own.
    """
    told = deliveries or build_deliveries(settings, telemetry)
    estimators = specs.monitors_spec(settings)
    join, merge = specs.join_spec(settings), specs.merge_spec(settings)
    start_ms = specs.start_ms(settings.kafka, _now_ms())

    host = clocks or HostClocks()
    clock = SteadyClock(host.wall_ms, host.monotonic)

    def open_state() -> State:
        store = open_store(settings)
        try:
            monitors = EstimatorSet(estimators)
            saved = store.load()
            require_source(settings, saved)
            pipeline = (
                ColumnPipeline(join, monitors, bytes_of_keys, build_overflow(settings, saved))
                if specs.joins_in_columns(settings)
                else Pipeline(join, monitors)
            )
            pipeline.start_ms = start_ms
            checkpoint = Checkpoint(pipeline, monitors, estimators, settings.state.journal_outcomes)
            resumed = restored(checkpoint, saved, settings) if store.durable else RestoreReport()
            stands = decode_positions(saved.sections[POSITIONS]) if saved.commits else SourcePositions()
            stands = stands.only(topics)
            progress = restored_progress(saved.sections.get(MERGE), topics)
            clock.not_before(max(progress.running_ms.values(), default=0) - merge.max_future_ms)
            merge_clocks = Clocks(clock, lambda: int(host.monotonic() * 1_000))
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
                maintenance=build_maintenance(settings, pipeline, saved),
            )
            book = build_alarm_book(settings, store.identity)
            if ALARMS in saved.sections:
                book.restore(saved.sections[ALARMS])
        except BaseException:
            store.close()
            raise
        return_freed_memory()  # what was read of the store takes half as much again as what is kept
        hints = pipeline.active_hints if notifies_of_hints(settings) else None
        alerting = Alerting(book, told, lambda: monitors.facts, _now_ms, saved.outbox, hints)
        return State(store, checkpoint, processor, stands, resumed, alerting)

    return open_state


def build_overflow(settings: Settings, saved: RecoveredState) -> Overflow | None:
    """Entries of the join outside its table; None where the store keeps none.

    Raises StateDamaged where those it has are none.
    """
    if saved.runs is None:
        return None
    with damage_named(settings.state.directory):
        return Overflow(saved.runs, specs.overflow_spec(settings))


def restored(checkpoint: Checkpoint, saved: RecoveredState, settings: Settings) -> RestoreReport:
    """Go on from what a store has; raises StateDamaged where its entries are none."""
    try:
        with damage_named(settings.state.directory):
            return checkpoint.restore(saved)
    except PackedError as error:
        raise StateDamaged(
            f"the state in {settings.state.directory} is damaged: {error}; `streamwatch state verify` tells "
            "what else is"
        ) from error


def build_maintenance(
    settings: Settings, pipeline: Pipeline | ColumnPipeline, saved: RecoveredState
) -> StoreMaintenance | None:
    """Merges of the join's entries outside its table; None where there are none."""
    if saved.runs is None or not isinstance(pipeline, ColumnPipeline):
        return None
    return StoreMaintenance(pipeline, saved.runs, settings.state.directory)


def open_store(settings: Settings) -> Store:
    """The store the settings ask for; raises as `specs.store_kind` and as its `open`."""
    return specs.store_kind(settings).open(specs.rocks_spec(settings))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
