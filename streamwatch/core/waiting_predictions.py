"""Predictions that wait for their label, and what becomes of them."""

from __future__ import annotations

from streamwatch.core.events import Outcome, Prediction
from streamwatch.core.expiry import Deadlines, deadline
from streamwatch.core.graveyard import Graveyard
from streamwatch.core.join_counters import JoinCounters
from streamwatch.core.known import EVICTED, EXPIRED, PENDING, RESOLVED, WITHDRAWN, Known, own_time
from streamwatch.core.order_buffer import OrderBuffer
from streamwatch.core.registry import Activity, Registry
from streamwatch.core.specs import JoinSpec


class WaitingPredictions:
    """At most `max_pending`, each for `horizon`; the one that would expire first is evicted first.

    What leaves with a class (its label's, or the one assumed at expiry) becomes an outcome, at once or
    through the order buffer; all that leave become tombstones.
    """

    __slots__ = (
        "_counters",
        "_spec",
        "buffer",
        "changed",
        "graveyard",
        "index",
        "oldest_ms",
        "ordered",
        "outcomes",
        "pending",
        "registry",
    )

    def __init__(self, spec: JoinSpec, counters: JoinCounters) -> None:
        self._spec = spec
        self._counters = counters
        self.ordered = spec.order == "prediction_time"
        self.registry = Registry(spec.max_models, 2 * spec.horizon_ms)
        self.graveyard = Graveyard(spec.tombstone_horizon_ms, spec.max_tombstones)
        self.buffer = OrderBuffer(spec.reorder_window_ms, spec.max_reordered)
        self.index = Deadlines(PENDING, PENDING)
        self.pending = 0
        self.oldest_ms: int | None = None
        """Record time of the one that would expire first, as of the last batch."""
        self.outcomes: list[Outcome] = []
        """What this batch has to evaluate, in order."""
        self.changed: list[str] = []
        """Ids whose predictions left without an event of theirs."""

    def begin(self, index: Deadlines, counters: JoinCounters) -> None:
        """Borrow the index for one batch."""
        self.index = index
        self._counters = counters
        self.outcomes = []
        self.changed = []

    def end(self, *, whole: bool) -> None:
        """Tell the index how much of it is alive, and see what waits longest, if the index reaches so far."""
        self.index.live = self.pending
        if whole:
            oldest = self.index.oldest()
            self.oldest_ms = None if oldest is None else oldest.at_ms
        self._counters.tombstones_evicted = self.graveyard.evicted

    def accept(self, event: Prediction, activity: Activity) -> Known:
        """Count a prediction in; the caller either lets it `wait` or resolves it."""
        self._counters.predictions_accepted += 1
        self.pending += 1
        activity.pending += 1
        activity.last_ms = max(activity.last_ms, event.at_ms)
        return Known(
            event.id,
            event.model,
            PENDING,
            event.prediction,
            "",
            event.at_ms,
            event.timestamp_ms,
            event.scores,
            known=activity.known,
        )

    def wait(self, record: Known) -> None:
        """From here on the prediction may expire."""
        self.index.add(deadline(record.at_ms, self._spec.horizon_ms), record)
        self.index.entries += 1

    def resolve(self, record: Known, activity: Activity, truth: str, label_ms: int, at_ms: int) -> None:
        """A prediction meets its label at record time `at_ms`; `label_ms` is the label's own time."""
        activity.pending -= 1
        self.pending -= 1
        prediction_ms = own_time(record)
        delay_ms = label_ms - prediction_ms
        if delay_ms < 0:
            self._counters.labels_negative_delay += 1
            delay_ms = 0
        outcome = Outcome(
            activity.name, truth, record.predicted, label_ms, delay_ms, False, record.scores, record.known
        )
        activity.known = truth
        if self.ordered:
            self.hold(outcome, activity, prediction_ms, at_ms)
        else:
            self._counters.predictions_resolved += 1
            self.outcomes.append(outcome)
        record.truth = truth
        self.graveyard.bury(record, RESOLVED, at_ms)

    def withdraw(self, record: Known, at_ms: int) -> None:
        """The prediction was taken back."""
        self._leave(record)
        self._counters.predictions_withdrawn += 1
        self.graveyard.bury(record, WITHDRAWN, at_ms)

    def evict(self, at_ms: int) -> None:
        """There is one too many."""
        record = self.index.oldest()
        if record is not None:
            self._leave(record)
            self._counters.predictions_evicted += 1
            self.graveyard.bury(record, EVICTED, at_ms)

    def pass_time(self, label_ms: int, reached_s: int) -> bool:
        """Let predictions expire, and held outcomes go, by the label watermark; as far as the index reaches.

        Whether it reaches that far: before, nothing that is held goes.
        """
        limit_s = label_ms // 1000
        for deadline_s, record in self.index.due(min(limit_s, reached_s)):
            activity = self._leave(record)
            self._counters.predictions_expired += 1
            if self._spec.assume is not None:
                self._assume(record, activity, self._spec.assume, deadline_s * 1000)
            self.graveyard.bury(record, EXPIRED, deadline_s * 1000)
        if reached_s < limit_s:
            return False
        if released := self.buffer.release(label_ms):
            self._release(released)
        return True

    def _leave(self, record: Known) -> Activity:
        activity = self.registry.models[record.model or ""]
        activity.pending -= 1
        self.pending -= 1
        self.changed.append(record.id)
        return activity

    def _assume(self, record: Known, activity: Activity, truth: str, deadline_ms: int) -> None:
        self._counters.outcomes_assumed += 1
        prediction_ms = own_time(record)
        delay_ms = max(0, deadline_ms - prediction_ms)
        outcome = Outcome(
            activity.name, truth, record.predicted, deadline_ms, delay_ms, True, record.scores, record.known
        )
        if self.ordered:
            self.hold(outcome, activity, prediction_ms, deadline_ms)
        else:
            self.outcomes.append(outcome)

    def hold(self, outcome: Outcome, activity: Activity, prediction_ms: int, resolved_ms: int) -> None:
        """Let an outcome wait for its turn in the order of predictions."""
        activity.held += 1
        buffer = self.buffer
        buffer.hold(outcome, prediction_ms, resolved_ms)
        if len(buffer) > self._spec.max_reordered:
            excess = buffer.overflow()
            self._counters.outcomes_released_early += len(excess)
            self._release(excess)

    def _release(self, released: list[Outcome]) -> None:
        models = self.registry.models
        for outcome in released:
            models[outcome.model].held -= 1
            if not outcome.assumed:
                self._counters.predictions_resolved += 1
        self.outcomes += released
