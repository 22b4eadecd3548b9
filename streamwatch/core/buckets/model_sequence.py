"""Steps of a model bucket, each at its place in the sequence: outcomes, passing of time, models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from streamwatch.core.buckets.label_history import LabelHistories
from streamwatch.core.buckets.parts import Activity, InvalidOfModel, Resolved, Windows
from streamwatch.core.buckets.prediction_order import PredictionOrder
from streamwatch.core.buckets.routing import ModelRoutes
from streamwatch.core.buckets.spec import BucketsSpec
from streamwatch.core.buckets.totals import Totals
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.events import Alarm, Outcome
from streamwatch.core.fold_names import SEPARATOR, model_of
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.fold_streams import FoldStreams
from streamwatch.core.join.mismatch import AgreementState, ClassAgreement
from streamwatch.core.join.models import JoinModels

_ANY: Final = 2**62
"""Limit of models that is never reached, as id buckets limit them."""
_SECOND_MS: Final = 1_000


class ModelSequence:
    """Evaluates the models of one bucket in order.

    A model that is the reference of drift weightings is evaluated in every bucket; only its own bucket counts
    and reports it.

    Parameters
    ----------
    number
        Number of the model bucket.
    spec
        Partitioning of the stream.
    """

    def __init__(self, number: int, spec: BucketsSpec) -> None:
        self._number = number
        self._spec = spec
        self._routes = ModelRoutes(spec)
        self._ordered = spec.join.order == "prediction_time"
        self._compares = number == self._routes.comparison_bucket
        self._due: list[Outcome] = []
        self.monitors = EstimatorSet(spec.monitors)
        self.agreement = ClassAgreement(spec.join.max_models)
        self.models = JoinModels(_ANY, 2 * spec.join.horizon_ms)
        self.histories = LabelHistories()
        self.streams = FoldStreams()
        self.order = PredictionOrder(
            spec.join.reorder_window_ms, -(-spec.join.max_reordered // spec.model_buckets)
        )
        self.counters = JoinCounters()
        self.held_assumed = 0
        self.alarms: list[Alarm] = []
        """Alarms of this batch."""
        self.touched: set[str] = set()
        """Models whose estimators changed in this batch, or that retired."""
        self.paired = False
        """Whether comparisons changed in this batch."""

    def begin(self) -> None:
        """Start a batch."""
        self.alarms, self.touched, self.paired = [], set(), False

    def owns(self, name: str) -> bool:
        """Tell whether a model, or a fold, belongs to this bucket."""
        return self._routes[name][0] == self._number

    def continue_activity(self, activity: Activity) -> None:
        """Add activity of a model that was not idle in the id bucket since the batch before."""
        self._add(activity, activity.last_ms)

    def start_activity(self, activity: Activity) -> None:
        """Add activity of a model that is new in the id bucket, or was idle there before."""
        self._add(activity, activity.first[0])

    def _add(self, activity: Activity, record_ms: int) -> None:
        total = self.models.place(activity.model, record_ms)
        if total is None:
            raise AssertionError(f"model {activity.model!r} has no place among {_ANY}")
        total.pending += activity.accepted - activity.joined - activity.left
        total.joined += activity.joined
        total.left += activity.left
        total.last_ms = max(total.last_ms, activity.last_ms)
        total.last_event_ms = max(total.last_event_ms, activity.last_event_ms)

    def open_window(self, window: Windows) -> None:
        """Record a window, after which older predictions' outcomes may be released."""
        self.order.open_window(window)

    def resolve(self, resolved: Resolved) -> None:
        """Evaluate an outcome, or hold it for its order."""
        received, name = resolved.outcome, resolved.outcome.model
        accepted, own_ms = resolved.accepted
        if self._spec.join.folds_share_stream and SEPARATOR in name:
            label = self.streams.previous_label(name, resolved.id, received.true_class)
        else:
            label = self.histories.at(name, accepted)
        if not received.assumed:
            self.histories.add(name, resolved.place, received.true_class)
        outcome = msgspec.structs.replace(received, label_at_prediction=label)
        if not self._ordered:
            self._due.append(outcome)
            return
        self.models.models[name].held += 1
        self.held_assumed += outcome.assumed and self.owns(name)
        excess = self.order.hold(own_ms, resolved.place, outcome)
        self.counters.outcomes_released_early += sum(self.owns(each.model) for each in excess)
        self._release(excess)

    def _release(self, released: Sequence[Outcome]) -> None:
        for outcome in released:
            self.models.models[outcome.model].held -= 1
            if self.owns(outcome.model):
                self.held_assumed -= outcome.assumed
                self.counters.predictions_resolved += not outcome.assumed
        self._due += released

    def count_invalid(self, record: InvalidOfModel) -> None:
        """Count an invalid record by model, for as many models as may have a place."""
        counts, model = self.counters.model_records_invalid, record.model
        has_room = len(counts) < self._spec.join.max_models
        if model in counts or has_room or any(model_of(name) == model for name in self.models.models):
            counts[model] = counts.get(model, 0) + 1

    def tick(self, clock_ms: int) -> None:
        """Process the passing of time: release outcomes that are due, and retire idle models."""
        if self._ordered:
            self._release(self.order.release(clock_ms))
        if idle := self.models.retire(clock_ms):
            self._evaluate()
            self._retire(idle)

    def end(self, reached_ms: int, *, ended: bool) -> None:
        """Evaluate the rest of the batch; with `ended`, also the outcomes held for their order."""
        if ended:
            self._release(self.order.release_all())
        self._evaluate()
        self.histories.forget_before(reached_ms - self._spec.join.horizon_ms - 2 * _SECOND_MS)

    def _evaluate(self) -> None:
        due, self._due = self._due, []
        if not due:
            return
        names = {outcome.model for outcome in due}
        owned = {name for name in names if self.owns(name)}
        self.touched |= owned
        self.paired = self.paired or (self._compares and any(outcome.pairs for outcome in due))
        self.agreement.observe([outcome for outcome in due if outcome.model in owned])
        self.alarms += [alarm for alarm in self.monitors.fold(due) if self.owns(alarm.model)]

    def _retire(self, idle: Sequence[str]) -> None:
        monitored = set(self.monitors.models())
        names = list(self.models.models)
        alive = {model_of(name) for name in names}
        for name in idle:
            self.agreement.forget(name)
            self.histories.retire(name)
            if model_of(name) not in alive:
                self.counters.model_records_invalid.pop(model_of(name), None)
            if name in monitored:
                self.monitors.retire(name)
            if self.owns(name):
                self.counters.models_retired += 1
                self.touched.add(name)
                self.paired = self.paired or self._compares
        self.streams.keep(names)

    def histories_state(self, reached_ms: int) -> bytes:  # noqa: ARG002 - trimmed at the batch's end
        """State of the label histories after a batch that ended at this time."""
        return self.histories.state()

    def restore_histories(self, state: bytes) -> None:
        """Continue from the result of `histories_state`."""
        self.histories.restore(state)

    def totals(self, reached_ms: int) -> Totals:
        """Counters and gauges of the models that belong to this bucket."""
        owned = {name: activity for name, activity in self.models.models.items() if self.owns(name)}
        return Totals(
            reached_ms,
            self.counters,
            over_limit=dict(self.monitors.records_over_limit),
            held=sum(activity.held for activity in owned.values()),
            held_assumed=self.held_assumed,
            models=owned,
            agreement=self.agreement_state(),
        )

    def agreement_state(self) -> AgreementState:
        """State of the agreement of models' predicted and true classes."""
        return self.agreement.state()
