"""The delayed-label join: predictions meet their labels by (id, model), whichever comes first.

Every prediction accepted ends in exactly one way (resolved, expired, evicted, withdrawn) or is still pending
or held for order, and every label likewise.

Long because of one loop, `Join.take`, in which a call costs a tenth of an event's budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.events import Event, Label, Outcome, Prediction
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.entry import PENDING, RESOLVED, UNMATCHED, JoinEntry
from streamwatch.core.join.expiry import Deadlines
from streamwatch.core.join.holdings import Holdings
from streamwatch.core.join.results import JOINED, ORPHAN
from streamwatch.core.join.rules import JoinRules
from streamwatch.core.join.waiting_labels import WaitingLabels
from streamwatch.core.join.waiting_predictions import WaitingPredictions
from streamwatch.core.join.working_set import EVICTIONS
from streamwatch.core.specs import JoinSpec

__all__ = ["Join", "JoinEntry"]


class Join:
    """Joins the events of a batch with the entries lent by the store; each event goes to the part for it."""

    __slots__ = ("_by_id", "_rules", "_spec", "counters", "labels", "predictions")

    def __init__(self, spec: JoinSpec) -> None:
        self._spec = spec
        self._by_id: dict[str, JoinEntry] = {}
        self.counters = JoinCounters()
        self.labels = WaitingLabels(spec, self.counters)
        self.predictions = WaitingPredictions(spec, self.counters)
        self._rules = JoinRules(spec, self.predictions, self.labels, self.counters)

    def holdings(self) -> Holdings:
        """Holdings as of now."""
        predictions, labels = self.predictions, self.labels
        return Holdings(
            predictions.join_models.models,
            predictions.pending,
            labels.early,
            labels.unmatched,
            labels.retained,
            len(predictions.dedup),
            len(predictions.buffer),
            predictions.buffer.assumed,
            predictions.oldest_ms,
        )

    def begin(
        self, by_id: dict[str, JoinEntry], pending: Deadlines, early: Deadlines, retained: Deadlines
    ) -> None:
        """Begin a batch with the entries and indices that the store lends."""
        self._by_id = by_id
        self.predictions.begin(by_id, pending, self.counters)
        self.labels.begin(by_id, early, retained, self.counters)
        self._rules.begin(by_id, self.counters)

    def end(self, *, whole: bool) -> None:
        """End the batch and update the indices; `whole` tells that all its events were taken."""
        self.predictions.end(whole=whole)
        self.labels.end()

    def take(  # noqa: C901, PLR0912, PLR0915 - a call costs a tenth of an event's budget
        self, events: Sequence[Event], start: int, limit_ms: int
    ) -> int:
        """Join events from `start` on, up to the first at or past `limit_ms`; returns the position of that.

        This is the hot loop. It handles the common cases itself and counts them in local variables: a
        model's first prediction of an id, whether its label is kept already or yet to come; a label whose
        prediction is pending; a label for every model of an id, all of whose predictions are pending.
        `JoinRules` has the rules for all others, and for everything where models predict in folds.
        """
        if self._spec.folds:
            return self._take_by_rules(events, start, limit_ms)
        keep, find = self._by_id.setdefault, self._by_id.get
        predictions, labels, rules, counters = self.predictions, self.labels, self._rules, self.counters
        models = predictions.join_models.models
        index, dedup = predictions.index, predictions.dedup
        ordered, evaluate = predictions.ordered, predictions.outcomes.append
        pairing, arrived = predictions.pairing, predictions.arrived
        horizon_ms = self._spec.horizon_ms
        room = self._spec.max_pending - predictions.pending
        accepted = waiting = resolved = named = joined = 0
        made: dict[str, int] = {}  # counts by topic of predictions, and of labels with a model
        met: dict[str, int] = {}
        labelled: dict[str, int] = {}
        hit: dict[str, int] = {}
        bucket: list[JoinEntry] = []  # of predictions made in the second after `since_ms`, up to `until_ms`
        since_ms = until_ms = -1
        stop = len(events)
        for position in range(start, stop):
            event = events[position]
            record_ms = event.record_ms
            if record_ms >= limit_ms:
                stop = position
                break
            if type(event) is Prediction:
                model = event.model
                activity = models.get(model)
                record = other = kept = None
                if activity is not None:
                    record = JoinEntry(
                        event.id,
                        model,
                        PENDING,
                        event.predicted_class,
                        "",
                        record_ms,
                        event.timestamp_ms,
                        event.scores,
                        -1,
                        None,
                        activity.last_label,
                        event.segments,
                        event.topic,
                    )
                    other = keep(event.id, record)
                    while other is not record and other.model != model:
                        if other.model is None:
                            kept = other
                        if other.next is None:
                            other.next = record
                        other = other.next
                if activity is None or record is None or other is not record:
                    rules.predict(event)
                    room = self._spec.max_pending - predictions.pending
                    kept = None
                else:
                    accepted += 1
                    made[event.topic] = made.get(event.topic, 0) + 1
                    if arrived is not None:
                        arrived.append(event)
                    activity.pending += 1
                    if record_ms > activity.last_ms:  # noqa: PLR1730 - no call of max() per event
                        activity.last_ms = record_ms
                    event_ms = event.timestamp_ms
                    if event_ms is None or event_ms > record_ms:
                        event_ms = record_ms
                    if event_ms > activity.last_event_ms:  # noqa: PLR1730 - as above
                        activity.last_event_ms = event_ms
                    if kept is not None:
                        pass
                    elif since_ms < record_ms <= until_ms:
                        waiting += 1
                        bucket.append(record)
                    else:
                        waiting += 1
                        deadline_s = -(-(record_ms + horizon_ms) // 1000)
                        bucket = index.add(deadline_s, record)
                        until_ms = deadline_s * 1000 - horizon_ms
                        since_ms = until_ms - 1000
                if kept is None:
                    if accepted - resolved > room:
                        predictions.evict(record_ms)
                        room += 1
                        if accepted - resolved > room:  # the limit was lowered: see EVICTIONS
                            predictions.evict(record_ms)
                            room += 1
                        until_ms = -1  # that may have emptied the bucket
                    continue
                if kept.state == UNMATCHED:
                    labels.record_match(kept, JOINED)
                label, true_class, everyone = kept, kept.true_class, False
            elif type(event) is Label:
                label, true_class, model = event, event.true_class, event.model
                record = other = find(event.id)
                everyone = model is None
                if model is None:
                    while other is not None and other.state == PENDING:
                        other = other.next
                    if record is None:
                        labels.retain(event, ORPHAN)
                        continue
                    if other is not None:
                        rules.label_all(event)
                        room = self._spec.max_pending - predictions.pending
                        continue
                    labels.retain(event, JOINED)
                else:
                    named += 1
                    labelled[event.topic] = labelled.get(event.topic, 0) + 1
                    while record is not None and record.model != model:
                        record = record.next
                    if record is None or record.state != PENDING:
                        rules.label_named(event, model)
                        continue
                    joined += 1
                    hit[event.topic] = hit.get(event.topic, 0) + 1
            else:
                rules.rest(event)
                room = self._spec.max_pending - predictions.pending
                continue
            label_ms = label.timestamp_ms
            if label_ms is None:
                label_ms = label.record_ms
            while record is not None and record.state == PENDING:
                activity = models[record.model or ""]
                activity.pending -= 1
                activity.joined += 1
                resolved += 1
                met[record.topic] = met.get(record.topic, 0) + 1
                prediction_ms = record.timestamp_ms
                if prediction_ms is None:
                    prediction_ms = record.record_ms
                delay_ms = label_ms - prediction_ms
                if delay_ms < 0:
                    delay_ms = 0
                    counters.labels_negative_delay += 1
                pairs = None
                if pairing is not None:
                    pairs = pairing.meet(find(record.id), record, true_class, models, counters)
                outcome = Outcome(
                    activity.name,
                    true_class,
                    record.predicted_class,
                    label_ms,
                    delay_ms,
                    False,
                    record.scores,
                    record.label_at_prediction,
                    pairs,
                    record.segments,
                    record.last_class,
                )
                activity.last_label = true_class
                if ordered:
                    predictions.hold(outcome, activity, prediction_ms, record_ms)
                else:
                    evaluate(outcome)
                record.true_class = true_class
                record.state = RESOLVED
                record.generation = dedup.number
                if record.scores is not None:
                    record.scores = None
                if record.segments is not None:
                    record.segments = None
                if record.last_class is not None:
                    record.last_class = None
                entries = dedup.entries
                entries.append(record)
                if record_ms > dedup.newest_ms:  # noqa: PLR1730
                    dedup.newest_ms = record_ms
                if len(entries) >= dedup.room:
                    dedup.rotate_generations()
                if not everyone:
                    break
                record = record.next
        predictions.pending += accepted - resolved
        index.entries += waiting
        counters.predictions_accepted += accepted
        if not ordered:
            counters.predictions_resolved += resolved
        counters.with_model.joined += joined
        counters.with_model.accepted += named
        for topic, count in made.items():
            counters.of_predictions(topic).accepted += count
        for topic, count in met.items():
            counters.of_predictions(topic).joined += count
        for topic, count in labelled.items():
            counters.of_labels(topic).accepted += count
        for topic, count in hit.items():
            counters.of_labels(topic).joined += count
        return stop

    def _take_by_rules(self, events: Sequence[Event], start: int, limit_ms: int) -> int:
        """As `take`, every event by the rules: a label that names a model may be for several folds."""
        rules = self._rules
        for position in range(start, len(events)):
            event = events[position]
            if event.record_ms >= limit_ms:
                return position
            if type(event) is Prediction:
                rules.predict(event)
                for _ in range(min(EVICTIONS, self.predictions.pending - self._spec.max_pending)):
                    self.predictions.evict(event.record_ms)
            elif type(event) is not Label:
                rules.rest(event)
            elif event.model is None:
                rules.label_all(event)
            else:
                rules.label_folds(event, event.model)
        return len(events)

    def pass_time(self, clock_ms: int, reached_s: tuple[int, int, int]) -> bool:
        """Expire what has a deadline up to the clock: predictions, then labels, then dedup entries.

        Deadlines are whole seconds; held outcomes are released at every millisecond. Returns False if it
        stopped earlier, at the second up to which an index was lent; call again to go on.
        """
        if clock_ms // 1000 == self.predictions.dedup.clock_ms // 1000:
            self.predictions.release(clock_ms)
            return True
        pending_s, early_s, retained_s = reached_s
        if not self.predictions.pass_time(clock_ms, pending_s):
            return False
        if not self.labels.expire(clock_ms, early_s, retained_s):
            return False
        self.predictions.dedup.pass_time(clock_ms)
        return True
