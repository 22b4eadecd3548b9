"""The delayed-label join: predictions meet their labels by (id, model), whichever comes first.

Every prediction accepted ends in exactly one way (resolved, expired, evicted, withdrawn) or is still pending
or held for order, and every label likewise.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.core.events import Event, Label, Outcome, Prediction, Progress
from streamwatch.core.expiry import Deadlines
from streamwatch.core.join_cases import Cases
from streamwatch.core.join_counters import JOINED, ORPHAN, JoinCounters
from streamwatch.core.known import PENDING, RESOLVED, UNMET, Known
from streamwatch.core.specs import JoinSpec
from streamwatch.core.waiting_labels import WaitingLabels
from streamwatch.core.waiting_predictions import WaitingPredictions

__all__ = ["Join", "Known"]


class Join:
    """Lends the store's records to its parts for one batch, and leads every event to the part it concerns."""

    __slots__ = ("_cases", "_known", "_spec", "counters", "labels", "predictions")

    def __init__(self, spec: JoinSpec) -> None:
        self._spec = spec
        self._known: dict[str, Known] = {}
        self.counters = JoinCounters()
        self.labels = WaitingLabels(spec, self.counters)
        self.predictions = WaitingPredictions(spec, self.counters)
        self._cases = Cases(self.predictions, self.labels, self.counters)

    def begin(
        self, known: dict[str, Known], pending: Deadlines, early: Deadlines, retained: Deadlines
    ) -> None:
        """Borrow the records and indices for one batch."""
        self._known = known
        self.predictions.begin(pending, self.counters)
        self.labels.begin(known, early, retained, self.counters)
        self._cases.begin(known, self.counters)

    def end(self, *, whole: bool) -> None:
        """Settle the books of the batch; `whole`: nothing due is left."""
        self.predictions.end(whole=whole)
        self.labels.end()

    def take(  # noqa: C901, PLR0912, PLR0915 - a call costs a tenth of an event's budget
        self, events: Iterator[Event]
    ) -> Progress | None:
        """Join events up to the next `Progress`, and return that; None at the end of the batch.

        This is the hot loop. What nearly every event is, is dealt with here and counted in local variables: a
        model's first prediction of an id, whether its label is kept already or yet to come; a label whose
        prediction is pending; a label for every model of an id, all of whose predictions are pending.
        `Cases` has the rules for all others.
        """
        keep, find = self._known.setdefault, self._known.get
        predictions, labels, cases, counters = self.predictions, self.labels, self._cases, self.counters
        models = predictions.registry.models
        index, graveyard = predictions.index, predictions.graveyard
        ordered, evaluate = predictions.ordered, predictions.outcomes.append
        horizon_ms = self._spec.horizon_ms
        room = self._spec.max_pending - predictions.pending
        accepted = waiting = resolved = named = joined = 0
        bucket: list[Known] = []  # of predictions made in the second after `since_ms`, up to `until_ms`
        since_ms = until_ms = -1
        progress = None
        for event in events:
            if type(event) is Prediction:
                model, at_ms = event.model, event.at_ms
                activity = models.get(model)
                record = other = kept = None
                if activity is not None:
                    record = Known(
                        event.id,
                        model,
                        PENDING,
                        event.prediction,
                        "",
                        at_ms,
                        event.timestamp_ms,
                        event.scores,
                        -1,
                        None,
                        activity.known,
                    )
                    other = keep(event.id, record)
                    while other is not record and other.model != model:
                        if other.model is None:
                            kept = other
                        if other.next is None:
                            other.next = record
                        other = other.next
                if activity is None or record is None or other is not record:
                    cases.predict(event)
                    room = self._spec.max_pending - predictions.pending
                    kept = None
                else:
                    accepted += 1
                    activity.pending += 1
                    if at_ms > activity.last_ms:  # noqa: PLR1730 - no call of max() per event
                        activity.last_ms = at_ms
                    if kept is not None:
                        pass
                    elif since_ms < at_ms <= until_ms:
                        waiting += 1
                        bucket.append(record)
                    else:
                        waiting += 1
                        deadline_s = -(-(at_ms + horizon_ms) // 1000)
                        bucket = index.add(deadline_s, record)
                        until_ms = deadline_s * 1000 - horizon_ms
                        since_ms = until_ms - 1000
                if kept is None:
                    if accepted - resolved > room:
                        predictions.evict(at_ms)
                        room += 1
                        if accepted - resolved > room:  # the limit was lowered: see EVICTIONS
                            predictions.evict(at_ms)
                            room += 1
                        until_ms = -1  # that may have emptied the bucket
                    continue
                if kept.state == UNMET:
                    labels.met(kept, JOINED)
                label, truth, everyone = kept, kept.truth, False
            elif type(event) is Label:
                label, truth, at_ms, model = event, event.label, event.at_ms, event.model
                record = other = find(event.id)
                everyone = model is None
                if model is None:
                    while other is not None and other.state == PENDING:
                        other = other.next
                    if record is None:
                        labels.retain(event, ORPHAN)
                        continue
                    if other is not None:
                        cases.label_all(event)
                        room = self._spec.max_pending - predictions.pending
                        continue
                    labels.retain(event, JOINED)
                else:
                    named += 1
                    while record is not None and record.model != model:
                        record = record.next
                    if record is None or record.state != PENDING:
                        cases.label_named(event, model)
                        continue
                    joined += 1
            elif type(event) is Progress:
                progress = event
                break
            else:
                cases.rest(event)
                room = self._spec.max_pending - predictions.pending
                continue
            label_ms = label.timestamp_ms
            if label_ms is None:
                label_ms = label.at_ms
            while record is not None and record.state == PENDING:
                activity = models[record.model or ""]
                activity.pending -= 1
                resolved += 1
                prediction_ms = record.timestamp_ms
                if prediction_ms is None:
                    prediction_ms = record.at_ms
                delay_ms = label_ms - prediction_ms
                if delay_ms < 0:
                    delay_ms = 0
                    counters.labels_negative_delay += 1
                outcome = Outcome(
                    activity.name,
                    truth,
                    record.predicted,
                    label_ms,
                    delay_ms,
                    False,
                    record.scores,
                    record.known,
                )
                activity.known = truth
                if ordered:
                    predictions.hold(outcome, activity, prediction_ms, at_ms)
                else:
                    evaluate(outcome)
                record.truth = truth
                record.state = RESOLVED
                record.generation = graveyard.number
                if record.scores is not None:
                    record.scores = None
                entries = graveyard.entries
                entries.append(record)
                if at_ms > graveyard.newest_ms:  # noqa: PLR1730
                    graveyard.newest_ms = at_ms
                if len(entries) >= graveyard.room:
                    graveyard.turn()
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
        return progress

    def pass_time(self, prediction_ms: int, label_ms: int, reached_s: tuple[int, int, int]) -> bool:
        """Let fall due what these watermarks have passed: predictions, then labels, then tombstones.

        False if it stopped at a second up to which an index reaches; call again to go on.
        """
        pending_s, early_s, retained_s = reached_s
        if not self.predictions.pass_time(label_ms, pending_s):
            return False
        if not self.labels.expire(prediction_ms, early_s, retained_s):
            return False
        self.predictions.graveyard.pass_time(min(prediction_ms, label_ms))
        return True
