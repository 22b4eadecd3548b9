"""`Pipeline`: joins the events of the merged sequence, lets deadlines pass and evaluates the outcomes.

It does no I/O. For every batch the caller moves entries between it and the store:

    needs = pipeline.read_set(events)          which ids, and which deadlines may pass
    found = store.fetch(needs)
    step = pipeline.advance(events, found)     joins, expires, evaluates
    store.apply(step)

Every event carries the clock at its place in the sequence (`record_ms`, never decreasing). Deadlines up to
that clock are handled before the event is joined, so the result does not depend on how events are cut into
batches.

If more deadlines pass at once than the store lends in one fetch, `advance` stops early: `step.events` are the
events it took, and the caller repeats all four lines with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamwatch.core.events import Alarm, Event, Outcome
from streamwatch.core.fold_names import model_of
from streamwatch.core.join.caveats import Caveats, caveats
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.join import Join
from streamwatch.core.join.mismatch import ClassAgreement, Mismatch, mismatches
from streamwatch.core.join.models import joined_folds
from streamwatch.core.join.pairing import PairingState
from streamwatch.core.join.reorder import OrderBuffer
from streamwatch.core.join.series import counter_families, gauge_families, identities, model_families
from streamwatch.core.join.working_set import EVICTIONS, BatchResult, ReadSet, WorkingSet
from streamwatch.core.pipelines.evaluation import Evaluation
from streamwatch.core.pipelines.state import PipelineState, decoded, encoded
from streamwatch.core.predictions.active_hint import ActiveHint
from streamwatch.core.predictions.registers import PredictionRegisters
from streamwatch.core.series import Family
from streamwatch.core.specs import JoinSpec

_SECOND_MS: Final = 1_000


class Pipeline:
    """Joins events and evaluates the outcomes of all models; does no I/O and owns no join entries.

    Parameters
    ----------
    join
        Rules of the join.
    monitors
        Estimators of all models.
    """

    def __init__(self, join: JoinSpec, monitors: Evaluation) -> None:
        self._spec = join
        self._join = Join(join)
        self._monitors = monitors
        self._agreement = ClassAgreement(join.max_models)
        self._registers = PredictionRegisters(join.prediction_registers)
        self._passed_ms = -1  # deadlines up to this clock have been handled
        self.clock_ms = -1
        """Record time at the last event taken, in milliseconds since the epoch; -1 before the first."""

    @property
    def counters(self) -> JoinCounters:
        """Counters of the join."""
        return self._join.counters

    def read_set(self, events: Sequence[Event]) -> ReadSet:
        """Return what `Store.fetch` must lend before `advance` is called with the same events."""
        join, coming = self._join, len(events)
        most = EVICTIONS * coming
        return ReadSet(
            events,
            min(most, max(0, join.predictions.pending + coming - self._spec.max_pending)) + 1,
            min(most, max(0, len(join.labels) + coming - self._spec.max_labels)),
        )

    def advance(self, events: Sequence[Event], found: WorkingSet) -> BatchResult:
        """Join and evaluate events in order: all of them, or as many as the lent deadlines reach for.

        `BatchResult.events` are those taken; `found` is changed in place.
        """
        join = self._join
        join.begin(found.by_id, found.pending, found.early, found.retained)
        alarms: list[Alarm] = []
        retired: list[tuple[int, str]] = []
        folded = taken = 0
        in_part = bool(events) and min(found.reached_s) < events[-1].record_ms // _SECOND_MS
        while taken < len(events):
            record_ms = events[taken].record_ms
            if record_ms >= self._limit_ms:
                if (in_part and taken) or not join.pass_time(record_ms, found.reached_s):
                    break  # deadlines past `reached_s` were not lent
                self._passed_ms = record_ms
                if idle := join.predictions.join_models.retire(record_ms):
                    self._registers.observe_events(join.predictions.take_arrived())
                    alarms += self.evaluate(join.predictions.outcomes[folded:])
                    folded = len(join.predictions.outcomes)
                    self._retire(idle)
                    retired += [(folded, model) for model in idle]
            taken = join.take(events, taken, self._limit_ms)
            self.clock_ms = events[taken - 1].record_ms
        self._registers.observe_events(join.predictions.take_arrived())
        outcomes = join.predictions.outcomes
        if folded < len(outcomes):
            alarms += self.evaluate(outcomes[folded:] if folded else outcomes)
        join.end(whole=taken == len(events))
        dedup_added, dropped = join.predictions.dedup.end_batch()
        if join.predictions.pairing is not None:
            join.predictions.pairing.drop(dropped, join.counters)
        changed = join.predictions.changed + join.labels.changed
        return BatchResult(events[:taken], found, changed, dedup_added, dropped, outcomes, alarms, retired)

    def release_held(self, found: WorkingSet) -> BatchResult:
        """Evaluate all outcomes held for the order of predictions, at the end of the events.

        No deadline passes.
        """
        join = self._join
        join.begin(found.by_id, found.pending, found.early, found.retained)
        join.predictions.release_all()
        outcomes = join.predictions.outcomes
        alarms = self.evaluate(outcomes) if outcomes else []
        join.end(whole=True)
        return BatchResult((), found, (), (), (), outcomes, alarms)

    def evaluate(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate outcomes in order, joined here or elsewhere, and return the alarms they raised."""
        self._agreement.observe(outcomes)
        self._registers.learn(outcomes)
        return self._monitors.fold(outcomes)

    def add_pairs(self, elsewhere: JoinCounters) -> None:
        """Count the pairs of outcomes that were joined elsewhere."""
        counters = self._join.counters
        counters.pairs_made += elsewhere.pairs_made
        counters.pairs_labels_differ += elsewhere.pairs_labels_differ
        counters.pairs_expired += elsewhere.pairs_expired

    @property
    def _limit_ms(self) -> int:
        """First clock at which a deadline may pass: the next second, or millisecond if `ordered`."""
        if self._join.predictions.ordered:
            return self._passed_ms + 1
        return (self._passed_ms // _SECOND_MS + 1) * _SECOND_MS

    def _retire(self, idle: list[str]) -> None:
        self._join.counters.models_retired += len(idle)
        monitored = set(self._monitors.models())
        names = list(self._join.predictions.join_models.models)
        alive = {model_of(name) for name in names}
        for model in idle:
            self._agreement.forget(model)
            self._registers.forget(model)
            if model_of(model) not in alive:  # no other fold of it is left
                self._join.counters.model_records_invalid.pop(model_of(model), None)
            if model in monitored:
                self._monitors.retire(model)
        self._join.predictions.fold_streams.keep(names)

    @property
    def start_ms(self) -> int | None:
        """Time from which topics are read, in ms; None (default) if they are read from their beginning.

        A label without a prediction that is less than one horizon younger than this may belong to a
        prediction that was never read: it counts in `labels_before_start_total`, not as orphaned.
        """
        return self._join.labels.start_ms

    @start_ms.setter
    def start_ms(self, start_ms: int | None) -> None:
        self._join.labels.start_ms = start_ms

    def identities(self) -> list[str]:
        """Describe the sums of counters that do not hold; empty when every event is accounted for."""
        return identities(self._join)

    def mismatches(self) -> list[Mismatch]:
        """Models whose predictions and labels seem not to belong together, by name (`join.mismatch`)."""
        models = self._join.predictions.join_models.models
        return mismatches(self._agreement, models, self.clock_ms - self._spec.early_horizon_ms)

    def caveats(self) -> dict[str, Caveats]:
        """Caveats beside verdicts, by model."""
        return caveats(joined_folds(self._join.predictions.join_models.models), self._spec, self.clock_ms)

    def prediction_details(self) -> dict[str, dict[str, object]]:
        """Details from the prediction registers, which need no labels, by model."""
        return self._registers.details()

    def active_hints(self) -> dict[str, ActiveHint]:
        """Early hints that are active, by model."""
        return self._registers.active_hints()

    def join_families(self) -> list[Family]:
        """Series of the join and of the prediction registers."""
        families = counter_families(self._join, self._monitors.records_over_limit)
        of_models = [*model_families(self._join, self.mismatches()), *self._registers.families()]
        return [*families, *gauge_families(self._join), *of_models]

    def families(self) -> list[Family]:
        """Every series, those of the estimators last."""
        return self.join_families() + self._monitors.families()

    @property
    def order(self) -> OrderBuffer:
        """Buffer of outcomes held for the order of predictions.

        Empty unless `join.order` is `prediction_time`.
        """
        return self._join.predictions.buffer

    def snapshot(self, *, held: bool = True) -> bytes:
        """Encode the state without the join's entries and the estimators; equal states give equal bytes.

        With `held=False` the outcomes in `order` are left out, for a store that keeps each under its own key.
        """
        predictions, labels = self._join.predictions, self._join.labels
        return encoded(
            PipelineState(
                self.clock_ms,
                self._passed_ms,
                self._join.counters,
                predictions.join_models.state(),
                predictions.dedup.state(),
                predictions.buffer.state(held=held),
                labels.early,
                labels.unmatched,
                labels.retained,
                labels.start_ms,
                predictions.oldest_ms,
                self._agreement.state(),
                predictions.fold_streams.state(),
                PairingState() if predictions.pairing is None else predictions.pairing.state(),
                self._registers.snapshot(),
            )
        )

    def restore(self, snapshot: bytes) -> None:
        """Continue from `snapshot`; the store must hold the join entries committed with it.

        Raises
        ------
        msgspec.DecodeError
            If it is not a snapshot of this version.
        ValueError
            If its state of a prediction register cannot be read.
        """
        state = decoded(snapshot)
        predictions, labels = self._join.predictions, self._join.labels
        self.clock_ms, self._passed_ms = state.clock_ms, state.passed_ms
        self._join.counters = state.counters
        predictions.join_models.restore(state.join_models)
        predictions.dedup.restore(state.dedup)
        predictions.dedup.evicted = state.counters.dedup_entries_evicted
        predictions.buffer.restore(state.order)
        predictions.pending = sum(activity.pending for activity in state.join_models.models)
        predictions.oldest_ms = state.oldest_pending_ms
        labels.early, labels.unmatched, labels.retained = state.early, state.unmatched, state.retained
        labels.start_ms = state.start_ms
        self._agreement.restore(state.agreement)
        predictions.fold_streams.restore(state.fold_streams)
        if predictions.pairing is not None:
            predictions.pairing.restore(state.pairing)
        self._registers.restore(state.predictions)
