"""`WaitingPredictions`: predictions that wait for their label, until they are resolved or expire."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.events import Outcome, PairedAnswer, Prediction
from streamwatch.core.fold_names import SEPARATOR
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.dedup import DedupIndex
from streamwatch.core.join.entry import EVICTED, EXPIRED, PENDING, RESOLVED, WITHDRAWN, JoinEntry, own_time
from streamwatch.core.join.expiry import Deadlines, deadline
from streamwatch.core.join.fold_streams import FoldStreams
from streamwatch.core.join.models import JoinModels, ModelActivity
from streamwatch.core.join.pairing import Pairing
from streamwatch.core.join.reorder import OrderBuffer
from streamwatch.core.specs import JoinSpec


class WaitingPredictions:
    """Pending predictions, at most `max_pending`, each for `horizon`; the next to expire is evicted first.

    What leaves with a class (its label's, or the one assumed at expiry) becomes an outcome, at once or
    through the order buffer; all that leave become dedup entries.
    """

    __slots__ = (
        "_by_id",
        "_counters",
        "_spec",
        "arrived",
        "buffer",
        "changed",
        "dedup",
        "fold_streams",
        "index",
        "join_models",
        "oldest_ms",
        "ordered",
        "outcomes",
        "pairing",
        "pending",
    )

    def __init__(self, spec: JoinSpec, counters: JoinCounters) -> None:
        self._spec = spec
        self._counters = counters
        self.ordered = spec.order == "prediction_time"
        self.join_models = JoinModels(spec.max_models, 2 * spec.horizon_ms)
        self.dedup = DedupIndex(spec.dedup_horizon_ms, spec.max_dedup_entries)
        self.buffer = OrderBuffer(spec.reorder_window_ms, spec.max_reordered)
        self.index = Deadlines(PENDING, PENDING)
        self.fold_streams = FoldStreams()
        self.pairing = Pairing(spec.comparisons, self.dedup) if spec.comparisons else None
        """Finds partners; None where no models are compared."""
        self._by_id: dict[str, JoinEntry] = {}
        self.pending = 0
        self.oldest_ms: int | None = None
        """Record time of the one that would expire first, as of the last batch."""
        self.outcomes: list[Outcome] = []
        """Outcomes of this batch, in order."""
        self.changed: list[str] = []
        """Ids whose predictions left without an event of theirs."""
        self.arrived: list[Prediction] | None = [] if spec.prediction_registers else None
        """Predictions accepted since they were taken last; None where nobody asks."""

    def begin(self, by_id: dict[str, JoinEntry], index: Deadlines, counters: JoinCounters) -> None:
        """Begin a batch with the entries and the index that the store lends."""
        self._by_id = by_id
        self.index = index
        self._counters = counters
        self.outcomes = []
        self.changed = []
        if self.pairing is not None:
            self.pairing.begin()

    def end(self, *, whole: bool) -> None:
        """End the batch: set the number of waiting entries in the index; find the oldest if it was lent."""
        self.index.live = self.pending
        if whole:
            oldest = self.index.oldest()
            self.oldest_ms = None if oldest is None else oldest.record_ms
        self._counters.dedup_entries_evicted = self.dedup.evicted

    def accept(self, event: Prediction, activity: ModelActivity) -> JoinEntry:
        """Count a prediction in; the caller either lets it `wait` or resolves it."""
        self._counters.predictions_accepted += 1
        self._counters.of_predictions(event.topic).accepted += 1
        if self.arrived is not None:
            self.arrived.append(event)
        self.pending += 1
        activity.pending += 1
        activity.predicted(event)
        return JoinEntry(
            event.id,
            event.model,
            PENDING,
            event.predicted_class,
            "",
            event.record_ms,
            event.timestamp_ms,
            event.scores,
            label_at_prediction=activity.last_label,
            segments=event.segments,
            topic=event.topic,
        )

    def take_arrived(self) -> Sequence[Prediction]:
        """Hand over the predictions accepted since the last call, in order."""
        if not self.arrived:
            return ()
        arrived = list(self.arrived)
        self.arrived.clear()
        return arrived

    def wait(self, record: JoinEntry) -> None:
        """Let an accepted prediction wait for its label, or expire."""
        self.index.add(deadline(record.record_ms, self._spec.horizon_ms), record)
        self.index.entries += 1

    def resolve(
        self, record: JoinEntry, activity: ModelActivity, true_class: str, label_ms: int, record_ms: int
    ) -> None:
        """Resolve a prediction with its label at clock `record_ms`; `label_ms` is the label's own time."""
        activity.pending -= 1
        activity.joined += 1
        self._counters.of_predictions(record.topic).joined += 1
        self.pending -= 1
        prediction_ms = own_time(record)
        delay_ms = label_ms - prediction_ms
        if delay_ms < 0:
            self._counters.labels_negative_delay += 1
            delay_ms = 0
        outcome = Outcome(
            activity.name,
            true_class,
            record.predicted_class,
            label_ms,
            delay_ms,
            False,
            record.scores,
            self._earlier_label(record, activity, true_class),
            self.partners(record, true_class),
            record.segments,
            record.last_class,
        )
        activity.last_label = true_class
        if self.ordered:
            self.hold(outcome, activity, prediction_ms, record_ms)
        else:
            self._counters.predictions_resolved += 1
            self.outcomes.append(outcome)
        record.true_class = true_class
        self.dedup.add(record, RESOLVED, record_ms)

    def partners(self, record: JoinEntry, true_class: str) -> tuple[PairedAnswer, ...] | None:
        """Return predicted classes of models compared with this one and resolved on the id.

        None without any.
        """
        if self.pairing is None:
            return None
        first = self._by_id.get(record.id)
        return self.pairing.meet(first, record, true_class, self.join_models.models, self._counters)

    def withdraw(self, record: JoinEntry, record_ms: int) -> None:
        """Settle a prediction that a null record withdraws."""
        self._leave(record)
        self._counters.predictions_withdrawn += 1
        self.dedup.add(record, WITHDRAWN, record_ms)

    def evict(self, record_ms: int) -> None:
        """Evict the prediction that would expire first."""
        record = self.index.oldest()
        if record is not None:
            self._leave(record)
            self._counters.predictions_evicted += 1
            self.dedup.add(record, EVICTED, record_ms)

    def pass_time(self, clock_ms: int, reached_s: int) -> bool:
        """Expire predictions and release held outcomes up to the clock, as far as the index was lent.

        Returns whether the index reaches that far; held outcomes are released only then.
        """
        limit_s = clock_ms // 1000
        for deadline_s, record in self.index.due(min(limit_s, reached_s)):
            activity = self._leave(record)
            self._counters.predictions_expired += 1
            if self._spec.assume is not None:
                self._assume(record, activity, self._spec.assume, deadline_s * 1000)
            self.dedup.add(record, EXPIRED, deadline_s * 1000)
        if reached_s < limit_s:
            return False
        self.release(clock_ms)
        return True

    def release(self, clock_ms: int) -> None:
        """Release the held outcomes whose turn it is at the clock."""
        if released := self.buffer.release(clock_ms):
            self._release(released)

    def release_all(self) -> None:
        """Release all held outcomes, in the order of predictions."""
        self._release(self.buffer.release_all())

    def _leave(self, record: JoinEntry) -> ModelActivity:
        activity = self.join_models.models[record.model or ""]
        activity.pending -= 1
        activity.left += 1
        self.pending -= 1
        self.changed.append(record.id)
        return activity

    def _assume(self, record: JoinEntry, activity: ModelActivity, true_class: str, deadline_ms: int) -> None:
        self._counters.outcomes_assumed += 1
        prediction_ms = own_time(record)
        delay_ms = max(0, deadline_ms - prediction_ms)
        outcome = Outcome(
            activity.name,
            true_class,
            record.predicted_class,
            deadline_ms,
            delay_ms,
            True,
            record.scores,
            self._earlier_label(record, activity, true_class),
            self.partners(record, true_class),
            record.segments,
            record.last_class,
        )
        record.true_class = true_class
        if self.ordered:
            self.hold(outcome, activity, prediction_ms, deadline_ms)
        else:
            self.outcomes.append(outcome)

    def _earlier_label(self, record: JoinEntry, activity: ModelActivity, true_class: str) -> str | None:
        """The label known at the prediction; of a fold that tests some ids only, see `FoldStreams`."""
        if self._spec.folds_share_stream and SEPARATOR in activity.name:
            return self.fold_streams.previous_label(activity.name, record.id, true_class)
        return record.label_at_prediction

    def hold(self, outcome: Outcome, activity: ModelActivity, prediction_ms: int, resolved_ms: int) -> None:
        """Hold an outcome for its turn in the order of predictions."""
        activity.held += 1
        buffer = self.buffer
        buffer.hold(outcome, prediction_ms, resolved_ms)
        if len(buffer) > self._spec.max_reordered:
            excess = buffer.overflow()
            self._counters.outcomes_released_early += len(excess)
            self._release(excess)

    def _release(self, released: list[Outcome]) -> None:
        models = self.join_models.models
        for outcome in released:
            models[outcome.model].held -= 1
            if not outcome.assumed:
                self._counters.predictions_resolved += 1
        self.outcomes += released
