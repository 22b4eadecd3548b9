"""Join of one id bucket: the daemon's rules, with the place in the sequence of all that concerns a model.

The label known at prediction is not known here, as labels of the model are matched in other buckets, too.
Instead, the entry of a prediction stores the prediction's place in that field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec

from streamwatch.core.buckets.parts import InvalidOfModel, Resolved
from streamwatch.core.buckets.places import DUE, Place, decode_place, encode_place
from streamwatch.core.buckets.reported_activity import ReportedActivity
from streamwatch.core.events import Event, Invalid, Label, Prediction
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.entry import EARLY, PENDING, RETAINED, UNMATCHED, JoinEntry, forget
from streamwatch.core.join.expiry import Deadlines
from streamwatch.core.join.rules import JoinRules
from streamwatch.core.join.waiting_labels import WaitingLabels
from streamwatch.core.join.waiting_predictions import WaitingPredictions
from streamwatch.core.join.working_set import ENDLESS, EVICTIONS
from streamwatch.core.specs import JoinSpec

_SECOND_MS: Final = 1_000
_SWEPT: Final = 4
"""Number of index entries swept per event, so that settled ones are removed."""


def share_of(spec: JoinSpec, id_buckets: int) -> JoinSpec:
    """Derive the specification for one id bucket: its share of the limits, and only rules it can follow."""

    def share(limit: int) -> int:
        return -(-limit // id_buckets)

    return replace(
        spec,
        max_pending=share(spec.max_pending),
        max_labels=share(spec.max_labels),
        max_dedup_entries=share(spec.max_dedup_entries),
        order="resolution",
        folds_share_stream=False,
    )


class IdJoin:
    """Joins events of one id bucket in order.

    Parameters
    ----------
    spec
        Result of `share_of`.
    start_ms
        As in `Pipeline.start_ms`.
    """

    def __init__(self, spec: JoinSpec, start_ms: int | None) -> None:
        self.spec = spec
        """Rules of the join."""
        self.counters = JoinCounters()
        self.predictions = WaitingPredictions(spec, self.counters)
        self.labels = WaitingLabels(spec, self.counters)
        self.labels.start_ms = start_ms
        self._rules = JoinRules(spec, self.predictions, self.labels, self.counters)
        self.by_id: dict[str, JoinEntry] = {}
        self.pending = Deadlines(PENDING, PENDING)
        self.early = Deadlines(EARLY, EARLY)
        self.retained = Deadlines(UNMATCHED, RETAINED)
        self.settled: dict[int, list[JoinEntry]] = {}
        """Dedup entries by generation."""
        self.reported_activity = ReportedActivity(self.predictions.join_models)
        self.passed_ms = -1
        """Time up to which due entries have been processed."""
        self.outcomes: list[Resolved] = []
        """Outcomes of this batch."""
        self.invalid: list[InvalidOfModel] = []
        """Invalid records with a model in this batch."""
        self._events = 0

    def begin(self) -> None:
        """Start a batch."""
        self.outcomes, self.invalid, self._events = [], [], 0
        self.predictions.begin(self.by_id, self.pending, self.counters)
        self.labels.begin(self.by_id, self.early, self.retained, self.counters)
        self._rules.begin(self.by_id, self.counters)

    def take(self, event: Event, place: Place) -> None:
        """Join one event; time must have passed up to it before."""
        self._events += 1
        rules, predictions = self._rules, self.predictions
        before = len(predictions.outcomes)
        if type(event) is Prediction:
            accepted = self.counters.predictions_accepted
            rules.predict(event)
            if self.counters.predictions_accepted > accepted:
                self._accepted(event, place, resolved=len(predictions.outcomes) > before)
            for _ in range(min(EVICTIONS, predictions.pending - self.spec.max_pending)):
                predictions.evict(event.record_ms)
            return
        if type(event) is Label:
            if event.model is None:
                rules.label_all(event)
            else:
                rules.label_folds(event, event.model)
            for number, outcome in enumerate(predictions.outcomes[before:]):
                self.outcomes.append(Resolved((*place, number), event.id, outcome))
            return
        if type(event) is Invalid and event.model is not None:
            self.invalid.append(InvalidOfModel(place, event.model))
            event = msgspec.structs.replace(event, model=None)  # counted with the model
        rules.rest(event)

    def _accepted(self, event: Prediction, place: Place, *, resolved: bool) -> None:
        own_ms = event.record_ms if event.timestamp_ms is None else event.timestamp_ms
        self.reported_activity.accepted(event.model, place)
        if resolved:
            outcome = self.predictions.outcomes[-1]
            outcome = msgspec.structs.replace(outcome, label_at_prediction=encode_place(place, own_ms))
            self.outcomes.append(Resolved((*place, 0), event.id, outcome))
            return
        entry: JoinEntry | None = self.by_id[event.id]
        while entry is not None:
            if entry.state == PENDING and entry.model == event.model:
                entry.label_at_prediction = encode_place(place, own_ms)
            entry = entry.next

    @property
    def next_pass_ms(self) -> int:
        """Earliest time at which something may be due."""
        return (self.passed_ms // _SECOND_MS + 1) * _SECOND_MS

    def pass_time(self, clock_ms: int) -> None:
        """Process what is due by the second of the clock."""
        if clock_ms < self.next_pass_ms:
            return
        self.passed_ms = clock_ms
        predictions = self.predictions
        before, gone = len(predictions.outcomes), len(predictions.changed)
        predictions.pass_time(clock_ms, ENDLESS)
        assumed = predictions.outcomes[before:]
        for id_, outcome in zip(predictions.changed[gone:], assumed, strict=False):
            accepted, _ = decode_place(outcome.label_at_prediction or "")
            self.outcomes.append(Resolved((outcome.event_ms, DUE, *accepted), id_, outcome))
        self.labels.expire(clock_ms, ENDLESS, ENDLESS)
        predictions.dedup.pass_time(clock_ms)
        predictions.join_models.retire(clock_ms)

    def end(self) -> None:
        """Finish a batch: move dedup entries to their generations, and remove dropped and settled entries."""
        predictions = self.predictions
        predictions.end(whole=True)
        self.labels.end()
        added, dropped = predictions.dedup.end_batch()
        for generation, entries in added:
            self.settled.setdefault(generation, []).extend(entries)
        for generation in dropped:
            for entry in self.settled.pop(generation, ()):
                forget(self.by_id, entry)
        if predictions.pairing is not None:
            predictions.pairing.drop(dropped, self.counters)
        for index in (self.pending, self.early, self.retained):
            index.sweep(_SWEPT * self._events + 64)


def chain_of(first: JoinEntry) -> Sequence[JoinEntry]:
    """Entries of one id, in order of arrival."""
    entries, entry = [first], first.next
    while entry is not None:
        entries.append(entry)
        entry = entry.next
    return entries
