"""The delayed-label join: predictions meet their labels by (id, model), whichever comes first.

Every prediction accepted ends in exactly one way (resolved, expired, evicted, withdrawn) or is still pending or held
for order, and every label likewise.

A label without a model is counted once per record, by the first prediction it meets. Where it meets those of several
models at once: joined, else corrected, duplicate, late, unusable (withdrawn, evicted, over limit), the first that
applies.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.core.events import Event, Invalid, Label, NullRecord, Outcome, Prediction, Progress
from streamwatch.core.expiry import Deadlines
from streamwatch.core.join_counters import CORRECTED, DUPLICATE, JOINED, ORPHAN, JoinCounters
from streamwatch.core.known import EARLY, OVER_LIMIT, PENDING, RESOLVED, RETAINED, UNMET, Known, append, forget
from streamwatch.core.specs import JoinSpec
from streamwatch.core.waiting_labels import WaitingLabels
from streamwatch.core.waiting_predictions import WaitingPredictions

__all__ = ["Join", "Known"]


class Join:
    """The cases: what an event does to what is known of its id."""

    __slots__ = ("_known", "_spec", "counters", "labels", "predictions")

    def __init__(self, spec: JoinSpec) -> None:
        self._spec = spec
        self._known: dict[str, Known] = {}
        self.counters = JoinCounters()
        self.labels = WaitingLabels(spec, self.counters)
        self.predictions = WaitingPredictions(spec, self.counters)

    def begin(self, known: dict[str, Known], pending: Deadlines, early: Deadlines, retained: Deadlines) -> None:
        """Borrow the records and indices for one batch."""
        self._known = known
        self.predictions.begin(pending, self.counters)
        self.labels.begin(known, early, retained, self.counters)

    def end(self) -> None:
        """Settle the books of the batch."""
        self.predictions.end()
        self.labels.end()

    def take(self, events: Iterator[Event]) -> Progress | None:
        """Join events up to the next `Progress`, and return that; None at the end of the batch.

        The hot loop: a first prediction, and a label with a model whose prediction is pending, are dealt with here,
        counted in local variables; `WaitingPredictions` does the same for every other case.
        """
        keep, find = self._known.setdefault, self._known.get
        predictions, counters = self.predictions, self.counters
        models = predictions.registry.models
        index, graveyard = predictions.index, predictions.graveyard
        ordered, evaluate = predictions.ordered, predictions.outcomes.append
        horizon_ms = self._spec.horizon_ms
        room = self._spec.max_pending - predictions.pending
        accepted = resolved = labels = joined = 0
        bucket: list[Known] = []  # of predictions made in the second after `since_ms`, up to `until_ms`
        since_ms = until_ms = -1
        progress = None
        for event in events:
            kind = type(event)
            if kind is Prediction:
                model, at_ms = event.model, event.at_ms
                activity = models.get(model)
                if activity is None:
                    self._predict(event)
                    room = self._spec.max_pending - predictions.pending
                    continue
                key = event.id
                record = Known(
                    key, model, PENDING, event.prediction, "", at_ms, event.timestamp_ms, event.scores
                )
                if keep(key, record) is not record:
                    self._predict(event)
                    room = self._spec.max_pending - predictions.pending
                else:
                    accepted += 1
                    activity.pending += 1
                    if at_ms > activity.last_ms:
                        activity.last_ms = at_ms
                    if since_ms < at_ms <= until_ms:
                        bucket.append(record)
                    else:
                        deadline_s = -(-(at_ms + horizon_ms) // 1000)
                        bucket = index.add(deadline_s, record)
                        until_ms = deadline_s * 1000 - horizon_ms
                        since_ms = until_ms - 1000
                if accepted - resolved > room:
                    predictions.evict(at_ms)
                    room += 1
                    until_ms = -1  # that may have emptied the bucket
            elif kind is Label:
                model = event.model
                record = find(event.id)
                if model is None:
                    if record is None or record.state != PENDING or record.next is not None:
                        self._label_all(event)
                        room = self._spec.max_pending - predictions.pending
                        continue
                    activity = models[record.model or ""]
                    self.labels.retain(event, JOINED)
                else:
                    labels += 1
                    while record is not None and record.model != model:
                        record = record.next
                    if record is None or record.state != PENDING:
                        self._label_named(event, model)
                        continue
                    activity = models[model]
                    joined += 1
                resolved += 1
                activity.pending -= 1
                at_ms = event.at_ms
                label_ms = event.timestamp_ms
                if label_ms is None:
                    label_ms = at_ms
                prediction_ms = record.timestamp_ms
                if prediction_ms is None:
                    prediction_ms = record.at_ms
                delay_ms = label_ms - prediction_ms
                if delay_ms < 0:
                    delay_ms = 0
                    counters.labels_negative_delay += 1
                truth = event.label
                outcome = Outcome(
                    activity.name, truth, record.predicted, label_ms, delay_ms, False, record.scores
                )
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
                if at_ms > graveyard.newest_ms:
                    graveyard.newest_ms = at_ms
                if len(entries) >= graveyard.room:
                    graveyard.turn()
            elif kind is Progress:
                progress = event
                break
            else:
                self._rest(event)
                room = self._spec.max_pending - predictions.pending
        predictions.pending += accepted - resolved
        index.entries += accepted
        counters.predictions_accepted += accepted
        if not ordered:
            counters.predictions_resolved += resolved
        counters.with_model.joined += joined
        counters.with_model.accepted += labels
        return progress

    def _rest(self, event: Event) -> None:
        if type(event) is NullRecord:
            nulls = self.counters.null_records
            nulls[event.topic] = nulls.get(event.topic, 0) + 1
            if event.withdraws and event.id is not None:
                self._withdraw(event.id, event.model, event.at_ms)
        elif type(event) is Invalid:
            invalid = self.counters.records_invalid
            invalid[event.reason] = invalid.get(event.reason, 0) + 1

    def _withdraw(self, key: str, model: str | None, at_ms: int) -> None:
        record = self._known.get(key)
        while record is not None:
            if record.state == PENDING and (model is None or model == record.model):
                self.predictions.withdraw(record, at_ms)
            record = record.next

    def _predict(self, event: Prediction) -> None:
        """A prediction of a new model, a repetition, a challenger's, or one whose label came first."""
        predictions = self.predictions
        model, at_ms = event.model, event.at_ms
        own, early, bare = self._find(event.id, model)
        if own is not None:
            if own.predicted == event.prediction:
                self.counters.predictions_duplicate += 1
            else:
                self.counters.predictions_conflict += 1
            return
        activity = predictions.registry.place(model, at_ms)
        if activity is None:
            self._refuse(event, early, bare)
            return
        record = predictions.accept(event, activity)
        append(self._known, record)
        if early is not None:
            predictions.resolve(record, activity, early.truth, _own_time(early), at_ms)
            self.labels.take(early, JOINED)
            if bare is not None:
                self.labels.met(bare, DUPLICATE if bare.truth == early.truth else CORRECTED)
        elif bare is not None:
            predictions.resolve(record, activity, bare.truth, _own_time(bare), at_ms)
            self.labels.met(bare, JOINED)
        else:
            predictions.wait(record)

    def _refuse(self, event: Prediction, early: Known | None, bare: Known | None) -> None:
        """There is no place for another model: a tombstone lets its labels be told from orphans."""
        self.counters.models_over_limit += 1
        record = Known(event.id, event.model, OVER_LIMIT, event.prediction, "", event.at_ms)
        append(self._known, record)
        self.predictions.graveyard.bury(record, OVER_LIMIT, event.at_ms)
        if early is not None:
            self.labels.take(early, OVER_LIMIT)
        if bare is not None:
            self.labels.met(bare, OVER_LIMIT)

    def _find(self, key: str, model: str) -> tuple[Known | None, Known | None, Known | None]:
        """A pair's prediction or tombstone, its waiting label, and the waiting label for all models."""
        own = early = bare = None
        record = self._known.get(key)
        while record is not None:
            following = record.next
            if record.model is None:
                bare = record
            elif record.model == model:
                if record.state == EARLY:
                    early = record
                elif record.state == PENDING or record.generation >= self.predictions.graveyard.floor:
                    own = record
                else:
                    forget(self._known, record)  # dead; the store has not come round to it yet
            record = following
        return own, early, bare

    def _label_named(self, event: Label, model: str) -> None:
        """A label with a model, whose prediction is not pending."""
        own, early, bare = self._find(event.id, model)
        named = self.counters.with_model
        if own is not None and own.state != RESOLVED:
            named.count(own.state)
        elif (earlier := own or early or bare) is not None:
            named.count(DUPLICATE if earlier.truth == event.label else CORRECTED)
        else:
            self.labels.hold(event)

    def _label_all(self, event: Label) -> None:
        """A label without a model: resolves every model pending on its id and is kept for those to come."""
        predictions = self.predictions
        fate = ORPHAN
        record = self._known.get(event.id)
        while record is not None:
            following = record.next
            state = record.state
            if state == PENDING:
                fate = JOINED
                activity = predictions.registry.models[record.model or ""]
                predictions.resolve(record, activity, event.label, _own_time(event), event.at_ms)
            elif state in (UNMET, RETAINED):
                self.labels.repeat(event, record)
                return
            elif state == EARLY:
                pass
            elif record.generation < predictions.graveyard.floor:
                forget(self._known, record)
            elif state == RESOLVED:
                fate = min(fate, DUPLICATE if record.truth == event.label else CORRECTED)
            else:
                fate = min(fate, state)
            record = following
        self.labels.retain(event, fate)

    def pass_time(self, prediction_ms: int, label_ms: int) -> None:
        """Let fall due what these watermarks have passed: predictions, then labels, then tombstones."""
        self.predictions.pass_time(label_ms)
        self.labels.expire(prediction_ms)
        self.predictions.graveyard.pass_time(min(prediction_ms, label_ms))


def _own_time(event: Known | Label) -> int:
    return event.at_ms if event.timestamp_ms is None else event.timestamp_ms
