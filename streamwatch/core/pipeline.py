"""Events in, outcomes and alarms out: the two steps the shell takes for every batch.

    needs = pipeline.needs(events)             which ids, and what falls due
    found = store.fetch(needs)
    step = pipeline.advance(events, found)     joins, lets time pass, evaluates
    store.keep(step)

The result does not depend on how events are cut into batches: time passes where `Progress` stands among them.

Where more falls due at once than a store lends at a time, `advance` stops there: `owes_time` is true then,
and the two steps are taken again, without events, until it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from streamwatch.core.events import Alarm, Event, Outcome, Partition, Side
from streamwatch.core.graveyard import GraveyardState
from streamwatch.core.join import Join
from streamwatch.core.join_counters import JoinCounters
from streamwatch.core.join_series import counter_families, gauge_families, identities
from streamwatch.core.order_buffer import OrderBuffer, OrderState
from streamwatch.core.registry import RegistryState
from streamwatch.core.series import Family
from streamwatch.core.specs import JoinSpec, TimeSpec
from streamwatch.core.step import EVICTIONS, Found, Needs, Step
from streamwatch.core.watermark import Timeline, TimelineState

__all__ = ["Evaluation", "Found", "Needs", "Pipeline", "PipelineState", "Step"]


class Evaluation(Protocol):
    """What the pipeline asks of the estimators (`Monitors`)."""

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate in order; the alarms raised, in that order."""
        ...

    def retire(self, model: str) -> None:
        """Forget a model that has been evaluated."""
        ...

    def models(self) -> Sequence[str]:
        """Models evaluated and not retired."""
        ...

    def families(self) -> list[Family]:
        """Every series of every model."""
        ...

    @property
    def records_over_limit(self) -> Mapping[str, int]:
        """What was not evaluated as it came, by limit."""
        ...


@dataclass(frozen=True, slots=True)
class PipelineState:
    """Everything but the records of ids (the store's) and the estimators (saved by model)."""

    timeline: TimelineState
    counters: JoinCounters
    registry: RegistryState
    graveyard: GraveyardState
    order: OrderState
    early: int
    unmet: int
    retained: int
    start_ms: int | None
    oldest_pending_ms: int | None
    owed: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Watermarks (prediction, label) that were reached, and by which not everything due has fallen due."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(PipelineState)


class Pipeline:
    """Join, record time and evaluation of all models; owns no records and touches nothing outside."""

    def __init__(
        self, join: JoinSpec, time: TimeSpec, monitors: Evaluation, sides: Mapping[Partition, Side]
    ) -> None:
        self._spec = join
        self._join = Join(join)
        self._monitors = monitors
        self._owed: list[tuple[int, int]] = []
        self.timeline = Timeline(time, sides)

    @property
    def counters(self) -> JoinCounters:
        """What the join has counted."""
        return self._join.counters

    def needs(self, events: Sequence[Event]) -> Needs:
        """What must be fetched before `advance` of the same events.

        Raises
        ------
        ValueError
            There are events, but time is owed.
        """
        if self._owed and events:
            raise ValueError("what is due must fall due before further events: advance without events first")
        join, coming = self._join, len(events)
        most = EVICTIONS * coming
        return Needs(
            events,
            self.timeline,
            min(most, max(0, join.predictions.pending + coming - self._spec.max_pending)) + 1,
            min(most, max(0, len(join.labels) + coming - self._spec.max_labels)),
        )

    @property
    def owes_time(self) -> bool:
        """Something due has not fallen due yet: `advance` without events before there are further ones."""
        return bool(self._owed)

    def advance(self, events: Sequence[Event], found: Found) -> Step:
        """Join and evaluate the events in order."""
        join, timeline = self._join, self.timeline
        join.begin(found.known, found.pending, found.early, found.retained)
        alarms: list[Alarm] = []
        retired: list[tuple[int, str]] = []
        folded = 0
        stream = iter(events)
        owed = self._owed
        while True:
            while owed and join.pass_time(*owed[0], found.reached_s):
                idle = join.predictions.registry.retire(min(owed.pop(0)))
                if idle:
                    alarms += self._monitors.fold(join.predictions.outcomes[folded:])
                    folded = len(join.predictions.outcomes)
                    self._retire(idle)
                    retired += [(folded, model) for model in idle]
            if (progress := join.take(stream)) is None:
                break
            timeline.progress(progress)
            owed.append((timeline.prediction_ms, timeline.label_ms))
        outcomes = join.predictions.outcomes
        if folded < len(outcomes):
            alarms += self._monitors.fold(outcomes[folded:] if folded else outcomes)
        join.end(whole=not owed)
        buried, dropped = join.predictions.graveyard.end_batch()
        changed = join.predictions.changed + join.labels.changed
        return Step(events, found, changed, buried, dropped, outcomes, alarms, retired)

    def _retire(self, idle: list[str]) -> None:
        self._join.counters.models_retired += len(idle)
        monitored = set(self._monitors.models())
        for model in idle:
            if model in monitored:
                self._monitors.retire(model)

    @property
    def start_ms(self) -> int | None:
        """Where reading began, if later than the beginning of the topics; None (default) if it began there.

        A label that meets nobody and is less than one horizon younger than this may belong to a prediction
        never read: it is counted as `labels_before_start_total`, not as an orphan.
        """
        return self._join.labels.start_ms

    @start_ms.setter
    def start_ms(self, start_ms: int | None) -> None:
        self._join.labels.start_ms = start_ms

    def identities(self) -> list[str]:
        """Sums of counters that do not hold, in words; empty when every event is accounted for."""
        return identities(self._join)

    def join_families(self) -> list[Family]:
        """Series of the join and of record time."""
        return counter_families(self._join, self._monitors.records_over_limit) + gauge_families(
            self._join, self.timeline
        )

    def families(self) -> list[Family]:
        """Every series, those of the estimators last."""
        return self.join_families() + self._monitors.families()

    @property
    def order(self) -> OrderBuffer:
        """Outcomes that wait for their order."""
        return self._join.predictions.buffer

    def snapshot(self, *, held: bool = True) -> bytes:
        """Everything but the records of ids and the estimators; equal states give equal bytes.

        Without `held`, the outcomes that wait for their order are left out, for who keeps them one by one.
        """
        predictions, labels = self._join.predictions, self._join.labels
        return _ENCODER.encode(
            PipelineState(
                self.timeline.state(),
                self._join.counters,
                predictions.registry.state(),
                predictions.graveyard.state(),
                predictions.buffer.state(held=held),
                labels.early,
                labels.unmet,
                labels.retained,
                labels.start_ms,
                predictions.oldest_ms,
                self._owed,
            )
        )

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot, with the records that were committed with it.

        Raises
        ------
        msgspec.DecodeError
            If it is not a snapshot of this version.
        """
        state = _DECODER.decode(snapshot)
        predictions, labels = self._join.predictions, self._join.labels
        self.timeline.restore(state.timeline)
        self._join.counters = state.counters
        predictions.registry.restore(state.registry)
        predictions.graveyard.restore(state.graveyard)
        predictions.graveyard.evicted = state.counters.tombstones_evicted
        predictions.buffer.restore(state.order)
        predictions.pending = sum(activity.pending for activity in state.registry.models)
        predictions.oldest_ms = state.oldest_pending_ms
        labels.early, labels.unmet, labels.retained = state.early, state.unmet, state.retained
        labels.start_ms = state.start_ms
        self._owed = list(state.owed)
