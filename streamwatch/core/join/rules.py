"""Rules of the join: what an event does to the entries of its id, case by case."""

from __future__ import annotations

from streamwatch.core.events import Event, Invalid, Label, NullRecord, Prediction, WrongFold
from streamwatch.core.fold_names import model_of
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.entry import (
    EARLY,
    OVER_LIMIT,
    PENDING,
    RETAINED,
    UNMATCHED,
    JoinEntry,
    append,
    forget,
    own_time,
)
from streamwatch.core.join.results import JOINED, ORPHAN, result_of
from streamwatch.core.join.revising import revise
from streamwatch.core.join.waiting_labels import WaitingLabels
from streamwatch.core.join.waiting_predictions import WaitingPredictions
from streamwatch.core.specs import JoinSpec


class JoinRules:
    """The rules for repetitions, conflicts, corrections, and whatever comes early or late.

    For one pair of id and model the first prediction counts, or as `JoinSpec.conflicts` says, and the first
    label, whether it named the model or not. A label without a model is counted once per record, by the first
    prediction it meets; where it meets those of several models at once, as the first that applies of: joined,
    corrected, duplicate, late, unusable (withdrawn, evicted, over limit).
    """

    __slots__ = ("_by_id", "_counters", "_labels", "_predictions", "_spec")

    def __init__(
        self, spec: JoinSpec, predictions: WaitingPredictions, labels: WaitingLabels, counters: JoinCounters
    ) -> None:
        self._spec = spec
        self._predictions = predictions
        self._labels = labels
        self._counters = counters
        self._by_id: dict[str, JoinEntry] = {}

    def begin(self, by_id: dict[str, JoinEntry], counters: JoinCounters) -> None:
        """Begin a batch with the entries that the store lends."""
        self._by_id = by_id
        self._counters = counters

    def rest(self, event: Event) -> None:
        """Handle an event that is neither prediction nor label: a withdrawal, or one that is only counted."""
        if type(event) is NullRecord:
            nulls = self._counters.null_records
            nulls[event.topic] = nulls.get(event.topic, 0) + 1
            if event.withdraws and event.id is not None:
                self._withdraw(event.id, event.model, event.record_ms)
        elif type(event) is Invalid:
            invalid = self._counters.records_invalid.setdefault(event.topic, {})
            invalid[event.reason] = invalid.get(event.reason, 0) + 1
            if event.model is not None:
                self._count_invalid(event.model)
        elif type(event) is WrongFold:
            self._counters.predictions_wrong_fold += 1

    def _count_invalid(self, model: str) -> None:
        """Count an invalid record by its model: one that has a place in the join, or has room here."""
        counts, places = self._counters.model_records_invalid, self._predictions.join_models
        if model in counts or len(counts) < places.maximum or self._has_place(model):
            counts[model] = counts.get(model, 0) + 1

    def _has_place(self, model: str) -> bool:
        """Whether a model, or a fold of it, has a place in the join."""
        models = self._predictions.join_models.models
        return model in models or (self._spec.folds and any(model_of(name) == model for name in models))

    def _withdraw(self, key: str, model: str | None, record_ms: int) -> None:
        record = self._by_id.get(key)
        while record is not None:
            if record.state == PENDING and (model is None or model == model_of(record.model or "")):
                self._predictions.withdraw(record, record_ms)
            record = record.next

    def predict(self, event: Prediction) -> None:
        """Handle a prediction of a new model, a repetition, a challenger's, or one whose label came first."""
        predictions = self._predictions
        model, record_ms = event.model, event.record_ms
        own, early, bare = self._find(event.id, model)
        if own is not None:
            self._repeat(own, event)
            return
        activity = predictions.join_models.place(model, record_ms)
        if activity is None:
            self._refuse(event, early, bare)
            return
        record = predictions.accept(event, activity)
        append(self._by_id, record)
        if early is not None:
            predictions.resolve(record, activity, early.true_class, own_time(early), record_ms)
            if self._spec.folds and early.model != model:
                self._labels.share(early, record_ms)
            elif early.state == EARLY:
                self._labels.take(early, JOINED)
            if bare is not None:
                self._labels.record_match(bare, result_of(bare, early.true_class))
        elif bare is not None:
            predictions.resolve(record, activity, bare.true_class, own_time(bare), record_ms)
            self._labels.record_match(bare, JOINED)
        else:
            predictions.wait(record)

    def _repeat(self, own: JoinEntry, event: Prediction) -> None:
        """A further prediction of a pair: as the class that stands, or in conflict with it."""
        conflicts, was_kept = self._spec.conflicts, own.last_class is not None
        if conflicts == "first":
            own.last_class = None  # of settings that kept both
        stands = own.predicted_class if own.last_class is None else own.last_class
        repeated = stands == event.predicted_class
        if repeated:
            self._counters.predictions_duplicate += 1
        else:
            self._counters.predictions_conflict += 1
        if own.state != PENDING or conflicts == "first":
            return
        if not repeated or (was_kept and conflicts == "last"):  # what others kept beside the first counts now
            activity = self._predictions.join_models.models[event.model]
            revise(own, event, activity, keep_first=conflicts == "both")

    def _refuse(self, event: Prediction, early: JoinEntry | None, bare: JoinEntry | None) -> None:
        """Refuse a model over the limit: a dedup entry lets its labels be told from orphans."""
        self._counters.models_over_limit += 1
        record = JoinEntry(event.id, event.model, OVER_LIMIT, event.predicted_class, "", event.record_ms)
        append(self._by_id, record)
        self._predictions.dedup.add(record, OVER_LIMIT, event.record_ms)
        if early is not None and early.state == EARLY and early.model == event.model:
            self._labels.take(early, OVER_LIMIT)
        if bare is not None:
            self._labels.record_match(bare, OVER_LIMIT)

    def _find(self, key: str, model: str) -> tuple[JoinEntry | None, JoinEntry | None, JoinEntry | None]:
        """A pair's prediction or dedup entry, its waiting label, and the waiting label for all models.

        The waiting label of a fold is that of its model.
        """
        own = early = bare = None
        owner = model_of(model)
        record = self._by_id.get(key)
        while record is not None:
            following = record.next
            if record.model is None:
                bare = record
            elif record.state in (EARLY, RETAINED):
                if record.model == owner:
                    early = record
            elif record.model == model:
                if record.state == PENDING or record.generation >= self._predictions.dedup.floor:
                    own = record
                else:
                    forget(self._by_id, record)  # dead; the store has not come round to it yet
            record = following
        return own, early, bare

    def label_named(self, event: Label, model: str) -> None:
        """Handle a label with a model, whose prediction is not pending."""
        own, early, bare = self._find(event.id, model)
        if (known := own or early or bare) is not None:
            result = result_of(known, event.true_class)
            self._counters.with_model.count(result)
            self._counters.of_labels(event.topic).count(result)
        else:
            self._labels.hold(event)

    def label_folds(self, event: Label, model: str) -> None:
        """Handle a label with a model that may predict in folds: resolve every fold pending on its id.

        It is kept for folds still to come. The label is counted once, by the first that applies of: joined,
        corrected, duplicate, late, unusable.
        """
        predictions, named = self._predictions, self._counters.with_model
        of_topic = self._counters.of_labels(event.topic)
        named.accepted += 1
        of_topic.accepted += 1
        result = ORPHAN
        folded = False
        record = self._by_id.get(event.id)
        while record is not None:
            following, state = record.next, record.state
            if record.model is None or model_of(record.model) != model or state in (EARLY, RETAINED):
                pass
            elif state == PENDING:
                result = JOINED
                folded = folded or record.model != model
                activity = predictions.join_models.models[record.model]
                predictions.resolve(record, activity, event.true_class, own_time(event), event.record_ms)
            elif record.generation < predictions.dedup.floor:
                forget(self._by_id, record)
            else:
                result = min(result, result_of(record, event.true_class))
            record = following
        if result != ORPHAN:
            named.count(result)
            of_topic.count(result)
            if folded:
                self._labels.keep_for_folds(event, own_time(event), event.record_ms)
            return
        _, early, bare = self._find(event.id, model)
        if (earlier := early or bare) is not None:
            result = result_of(earlier, event.true_class)
            named.count(result)
            of_topic.count(result)
        else:
            self._labels.hold(event)

    def label_all(self, event: Label) -> None:
        """Handle a label without a model: resolve all models pending on its id, and keep it for others."""
        predictions = self._predictions
        result = ORPHAN
        record = self._by_id.get(event.id)
        while record is not None:
            following = record.next
            state = record.state
            if state == PENDING:
                result = JOINED
                activity = predictions.join_models.models[record.model or ""]
                predictions.resolve(record, activity, event.true_class, own_time(event), event.record_ms)
            elif state in (UNMATCHED, RETAINED) and record.model is None:
                self._labels.repeat(event, record)
                return
            elif state in (EARLY, RETAINED):
                pass
            elif record.generation < predictions.dedup.floor:
                forget(self._by_id, record)
            else:
                result = min(result, result_of(record, event.true_class))
            record = following
        self._labels.retain(event, result)
