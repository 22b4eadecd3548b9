"""What an event does to what is known of its id, case by case."""

from __future__ import annotations

from streamwatch.core.events import Event, Invalid, Label, NullRecord, Prediction
from streamwatch.core.join_counters import CORRECTED, DUPLICATE, JOINED, ORPHAN, JoinCounters
from streamwatch.core.known import (
    EARLY,
    OVER_LIMIT,
    PENDING,
    RESOLVED,
    RETAINED,
    UNMET,
    Known,
    append,
    forget,
    own_time,
)
from streamwatch.core.waiting_labels import WaitingLabels
from streamwatch.core.waiting_predictions import WaitingPredictions


class Cases:
    """The rules for repetitions, conflicts, corrections, and whatever comes early or late.

    For one pair of id and model the first prediction counts, and the first label, whether it named the model
    or not. A label without a model is counted once per record, by the first prediction it meets; where it
    meets those of several models at once, as the first that applies of: joined, corrected, duplicate, late,
    unusable (withdrawn, evicted, over limit).
    """

    __slots__ = ("_counters", "_known", "_labels", "_predictions")

    def __init__(
        self, predictions: WaitingPredictions, labels: WaitingLabels, counters: JoinCounters
    ) -> None:
        self._predictions = predictions
        self._labels = labels
        self._counters = counters
        self._known: dict[str, Known] = {}

    def begin(self, known: dict[str, Known], counters: JoinCounters) -> None:
        """Borrow the records for one batch."""
        self._known = known
        self._counters = counters

    def rest(self, event: Event) -> None:
        """Neither prediction nor label: withdraws, or is only counted."""
        if type(event) is NullRecord:
            nulls = self._counters.null_records
            nulls[event.topic] = nulls.get(event.topic, 0) + 1
            if event.withdraws and event.id is not None:
                self._withdraw(event.id, event.model, event.at_ms)
        elif type(event) is Invalid:
            invalid = self._counters.records_invalid
            invalid[event.reason] = invalid.get(event.reason, 0) + 1

    def _withdraw(self, key: str, model: str | None, at_ms: int) -> None:
        record = self._known.get(key)
        while record is not None:
            if record.state == PENDING and (model is None or model == record.model):
                self._predictions.withdraw(record, at_ms)
            record = record.next

    def predict(self, event: Prediction) -> None:
        """A prediction of a new model, a repetition, a challenger's, or one whose label came first."""
        predictions = self._predictions
        model, at_ms = event.model, event.at_ms
        own, early, bare = self._find(event.id, model)
        if own is not None:
            if own.predicted == event.prediction:
                self._counters.predictions_duplicate += 1
            else:
                self._counters.predictions_conflict += 1
            return
        activity = predictions.registry.place(model, at_ms)
        if activity is None:
            self._refuse(event, early, bare)
            return
        record = predictions.accept(event, activity)
        append(self._known, record)
        if early is not None:
            predictions.resolve(record, activity, early.truth, own_time(early), at_ms)
            self._labels.take(early, JOINED)
            if bare is not None:
                self._labels.met(bare, DUPLICATE if bare.truth == early.truth else CORRECTED)
        elif bare is not None:
            predictions.resolve(record, activity, bare.truth, own_time(bare), at_ms)
            self._labels.met(bare, JOINED)
        else:
            predictions.wait(record)

    def _refuse(self, event: Prediction, early: Known | None, bare: Known | None) -> None:
        """There is no place for another model: a tombstone lets its labels be told from orphans."""
        self._counters.models_over_limit += 1
        record = Known(event.id, event.model, OVER_LIMIT, event.prediction, "", event.at_ms)
        append(self._known, record)
        self._predictions.graveyard.bury(record, OVER_LIMIT, event.at_ms)
        if early is not None:
            self._labels.take(early, OVER_LIMIT)
        if bare is not None:
            self._labels.met(bare, OVER_LIMIT)

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
                elif record.state == PENDING or record.generation >= self._predictions.graveyard.floor:
                    own = record
                else:
                    forget(self._known, record)  # dead; the store has not come round to it yet
            record = following
        return own, early, bare

    def label_named(self, event: Label, model: str) -> None:
        """A label with a model, whose prediction is not pending."""
        own, early, bare = self._find(event.id, model)
        named = self._counters.with_model
        if own is not None and own.state != RESOLVED:
            named.count(own.state)
        elif (earlier := own or early or bare) is not None:
            named.count(DUPLICATE if earlier.truth == event.label else CORRECTED)
        else:
            self._labels.hold(event)

    def label_all(self, event: Label) -> None:
        """A label without a model: resolves every model pending on its id and is kept for those to come."""
        predictions = self._predictions
        fate = ORPHAN
        record = self._known.get(event.id)
        while record is not None:
            following = record.next
            state = record.state
            if state == PENDING:
                fate = JOINED
                activity = predictions.registry.models[record.model or ""]
                predictions.resolve(record, activity, event.label, own_time(event), event.at_ms)
            elif state in (UNMET, RETAINED):
                self._labels.repeat(event, record)
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
        self._labels.retain(event, fate)
