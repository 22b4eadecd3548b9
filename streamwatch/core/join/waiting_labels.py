"""`WaitingLabels`: labels that wait for a prediction, or, once met, for those of further models."""

from __future__ import annotations

from streamwatch.core.events import Label
from streamwatch.core.join.counters import JoinCounters, LabelCounters
from streamwatch.core.join.entry import EARLY, RETAINED, UNMATCHED, JoinEntry, append, forget, own_time
from streamwatch.core.join.expiry import Deadlines, deadline
from streamwatch.core.join.results import JOINED, ORPHAN, result_of
from streamwatch.core.join.working_set import EVICTIONS
from streamwatch.core.specs import JoinSpec


class WaitingLabels:
    """Waiting labels, at most `max_labels`; beyond that the oldest by record time are evicted.

    A label that names its model waits `early_horizon` for the prediction. One without a model is retained
    for `horizon`, met or not; so is one with a model from when it has met a fold of it. Either that met
    nobody is an orphan, unless reading began later than the topics do (`start_ms`) and its prediction may be
    older than that: a label less than one horizon past the start is then counted as `before_start`. With
    `retain_unmatched` off, a label that meets nobody is not kept at all.
    """

    __slots__ = (
        "_bucket",
        "_by_id",
        "_counters",
        "_early_index",
        "_retained_index",
        "_since_ms",
        "_spec",
        "_until_ms",
        "changed",
        "early",
        "retained",
        "start_ms",
        "unmatched",
    )

    def __init__(self, spec: JoinSpec, counters: JoinCounters) -> None:
        self._spec = spec
        self._counters = counters
        self._by_id: dict[str, JoinEntry] = {}
        self._early_index = Deadlines(EARLY, EARLY)
        self._retained_index = Deadlines(UNMATCHED, RETAINED)
        self._bucket: list[
            JoinEntry
        ] = []  # of labels made in the second after `_since_ms`, up to `_until_ms`
        self._since_ms = -1
        self._until_ms = -1
        self.early = 0
        """Labels with a model, waiting."""
        self.unmatched = 0
        """Labels without a model that have met nobody."""
        self.retained = 0
        """All labels without a model that are kept, and those with one that are kept for its folds."""
        self.start_ms: int | None = None
        self.changed: list[str] = []
        """Ids whose waiting labels left without an event of theirs."""

    def __len__(self) -> int:
        return self.early + self.retained

    def begin(
        self, by_id: dict[str, JoinEntry], early: Deadlines, retained: Deadlines, counters: JoinCounters
    ) -> None:
        """Begin a batch with the entries and indices that the store lends."""
        self._by_id = by_id
        self._early_index = early
        self._retained_index = retained
        self._counters = counters
        self.changed = []
        self._until_ms = -1

    def end(self) -> None:
        """End the batch: set the numbers of waiting entries in the indices."""
        self._early_index.live = self.early
        self._retained_index.live = self.retained

    def hold(self, label: Label) -> None:
        """Keep a label with a model that came before its prediction."""
        if not self._spec.retain_unmatched:
            self._count_never_matched(self._counters.with_model, label)
            return
        record = JoinEntry(
            label.id,
            label.model,
            EARLY,
            "",
            label.true_class,
            label.record_ms,
            label.timestamp_ms,
            topic=label.topic,
        )
        append(self._by_id, record)
        self._early_index.add(deadline(label.record_ms, self._spec.early_horizon_ms), record)
        self._early_index.entries += 1
        self._counters.labels_early += 1
        self.early += 1
        self._evict_beyond()

    def retain(self, label: Label, result: int) -> None:
        """Keep a label without a model for the predictions of further models, whatever its result so far."""
        spec = self._spec
        counts = self._counters.without_model
        of_topic = self._counters.of_labels(label.topic)
        counts.accepted += 1
        of_topic.accepted += 1
        record_ms = label.record_ms
        if result != ORPHAN:
            state = RETAINED
            counts.count(result)
            of_topic.count(result)
        elif spec.retain_unmatched:
            state = UNMATCHED
            self._counters.labels_early += 1
            self.unmatched += 1
        else:
            self._count_never_matched(counts, label)
            return
        record = JoinEntry(
            label.id, None, state, "", label.true_class, record_ms, label.timestamp_ms, topic=label.topic
        )
        append(self._by_id, record)
        if self._since_ms < record_ms <= self._until_ms:
            self._bucket.append(record)
        else:
            deadline_s = deadline(record_ms, spec.horizon_ms)
            self._bucket = self._retained_index.add(deadline_s, record)
            self._until_ms = deadline_s * 1000 - spec.horizon_ms
            self._since_ms = self._until_ms - 1000
        self._retained_index.entries += 1
        self.retained += 1
        self._evict_beyond()

    def share(self, record: JoinEntry, record_ms: int) -> None:
        """Keep a label with a model, which has just met one of its folds, for the other folds."""
        if record.state == EARLY:
            self.take(record, JOINED)
            self.keep_for_folds(record, own_time(record), record_ms)

    def keep_for_folds(self, label: Label | JoinEntry, label_ms: int, record_ms: int) -> None:
        """Keep a label with a model that met a fold for `horizon`, as one without a model is kept."""
        record = JoinEntry(label.id, label.model, RETAINED, "", label.true_class, record_ms, label_ms)
        append(self._by_id, record)
        self._retained_index.add(deadline(record_ms, self._spec.horizon_ms), record)
        self._retained_index.entries += 1
        self.retained += 1
        self._evict_beyond()

    def repeat(self, label: Label, kept: JoinEntry) -> None:
        """Handle another label without a model for an id that has one waiting."""
        result = result_of(kept, label.true_class)
        for counts in (self._counters.without_model, self._counters.of_labels(label.topic)):
            counts.accepted += 1
            counts.count(result)

    def take(self, record: JoinEntry, result: int) -> None:
        """Settle a label with a model, whose prediction has come."""
        self.early -= 1
        self._counters.with_model.count(result)
        self._counters.of_labels(record.topic).count(result)
        forget(self._by_id, record)

    def record_match(self, record: JoinEntry, result: int) -> None:
        """Count that a label without a model has met a prediction; only the first time counts."""
        if record.state == UNMATCHED:
            record.state = RETAINED
            self.unmatched -= 1
            self._counters.without_model.count(result)
            self._counters.of_labels(record.topic).count(result)

    def expire(self, clock_ms: int, early_s: int, retained_s: int) -> bool:
        """Expire labels with a deadline up to the clock, as far as the indices were lent.

        Returns whether the indices reach that far.
        """
        limit_s = clock_ms // 1000
        self._until_ms = -1
        for _, record in self._early_index.due(min(limit_s, early_s)):
            self.early -= 1
            self._count_never_matched(self._counters.with_model, record)
            self._forget(record)
        for _, record in self._retained_index.due(min(limit_s, retained_s)):
            self.retained -= 1
            if record.state == UNMATCHED:
                self.unmatched -= 1
                self._count_never_matched(self._counters.without_model, record)
            self._forget(record)
        return min(early_s, retained_s) >= limit_s

    def _count_never_matched(self, form: LabelCounters, label: Label | JoinEntry) -> None:
        unread = self.start_ms is not None and label.record_ms < self.start_ms + self._spec.horizon_ms
        for counts in (form, self._counters.of_labels(label.topic)):
            if unread:
                counts.before_start += 1
            else:
                counts.orphaned += 1

    def _evict_beyond(self) -> None:
        """Keep the limit; one that was lowered is reached bit by bit."""
        for _ in range(min(EVICTIONS, self.early + self.retained - self._spec.max_labels)):
            self._evict()

    def _evict(self) -> None:
        self._until_ms = -1  # looking for the oldest may drop an empty bucket
        early, kept = self._early_index.oldest(), self._retained_index.oldest()
        if early is not None and (kept is None or early.record_ms < kept.record_ms):
            self.early -= 1
            self._counters.with_model.evicted += 1
            self._counters.of_labels(early.topic).evicted += 1
            self._forget(early)
        elif kept is not None:
            self.retained -= 1
            if kept.state == UNMATCHED:
                self.unmatched -= 1
                self._counters.without_model.evicted += 1
                self._counters.of_labels(kept.topic).evicted += 1
            else:
                self._counters.labels_retained_evicted += 1
            self._forget(kept)

    def _forget(self, record: JoinEntry) -> None:
        forget(self._by_id, record)
        self.changed.append(record.id)
