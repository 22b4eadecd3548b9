"""The compiled join as Python sees it: places models, makes room, hands over outcomes and what changed.

Longer than most: it is the one place that has the arrays, and every step on them is a few lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Event
from streamwatch.core.join.compiled.accepted import put_accepted
from streamwatch.core.join.compiled.cold.merging import Merge
from streamwatch.core.join.compiled.cold.store import ColdChanges
from streamwatch.core.join.compiled.durable.entries import DurableEntries, JoinTotals, totals_of
from streamwatch.core.join.compiled.durable.waiting_log import Changes
from streamwatch.core.join.compiled.growing import grown, is_nearly_full, shift_of
from streamwatch.core.join.compiled.layout import (
    ACTIVITY,
    COUNTERS,
    GENERATION,
    GENERATIONS_KEPT,
    LABEL_COLUMNS,
    LIMITS,
    NO_TIME,
    PLACED,
    PLAIN_COUNTERS,
    PREDICTION,
    PREDICTIONS,
    REFUSED,
    SETTLED_NOTED,
    TOTALS,
    UNPLACED,
    UNWRITTEN,
    WITH_MODEL,
    WITHOUT_MODEL,
    Arrays,
    Records,
    entries_of,
    one,
    outcomes_of,
    places_of,
    slots_of,
)
from streamwatch.core.join.compiled.loop import BRING, DONE, GROW, LOOK, PLACE, WRITTEN, take
from streamwatch.core.join.compiled.names import HeldScores, NumberedSegments, NumberedTopics
from streamwatch.core.join.compiled.other_records import OtherRecords
from streamwatch.core.join.compiled.outside.overflow import Overflow, Work
from streamwatch.core.join.compiled.record_rows import RecordNumbering
from streamwatch.core.join.compiled.rows import Digests, RowBuilder
from streamwatch.core.join.compiled.table import FREE
from streamwatch.core.join.compiled.topic_counters import restore_topics, topic_counters
from streamwatch.core.join.counters import JoinCounters, LabelCounters
from streamwatch.core.join.entry import PENDING
from streamwatch.core.join.holdings import Holdings
from streamwatch.core.join.models import JoinModels
from streamwatch.core.outcomes import SEGMENTS_FROM, OutcomeBatch
from streamwatch.core.predictions.batch import PREDICTED, PredictionBatch, score_of
from streamwatch.core.records import RecordBatch
from streamwatch.core.specs import JoinSpec
from streamwatch.core.words import copied

__all__ = ["BRING", "DONE", "LOOK", "WRITTEN", "CompiledJoin"]

ROOM: Final = 4_096
"""Outcomes handed over at a time, and up to those of one id more."""
ROOM_WITH_SCORES: Final = 500
"""The same while predictions with scores wait: what looks at these takes a microsecond for each."""
_FIRST_ENTRIES: Final = 1_024
_OF_SEGMENTS: Final = "predictions_segments_over_limit"


class CompiledJoin:
    """Outcomes in the order in which they are resolved; owns its entries, and says what changed of them.

    Parameters
    ----------
    spec
        With `order` "resolution", without comparisons and folds.
    digests
        What makes the ids' digests.
    overflow
        What takes the entries for which the table is too small; None where it may grow as it has to.
    numbered
        Whether outcomes say which accepted prediction they are of, and which row resolved it, in the place of
        the label at the prediction and beside `assumed` (`layout.LIMITS`).

    Raises
    ------
    ValueError
        If outcomes are to wait for the order of predictions, or to be compared, or are of folds: see `Join`.
    """

    def __init__(
        self, spec: JoinSpec, digests: Digests, overflow: Overflow | None = None, *, numbered: bool = False
    ) -> None:
        if spec.order != "resolution":
            raise ValueError(f"the order of a compiled join must be 'resolution', got {spec.order!r}")
        if spec.comparisons:
            raise ValueError(f"a compiled join compares no models, got comparisons {spec.comparisons!r}")
        if spec.conflicts != "first":
            raise ValueError(f"conflicts of a compiled join must be 'first', got {spec.conflicts!r}")
        if spec.folds:
            raise ValueError("a compiled join knows no folds, got folds true")
        self._builder = RowBuilder(digests)
        self.models = self._builder.models
        self.classes = self._builder.classes
        self._segments = self._builder.segments
        self._topics = self._builder.topics
        self._numbering = RecordNumbering(self.models, self.classes, self._segments, self._topics)
        self._join_models = JoinModels(spec.max_models, 2 * spec.horizon_ms)
        self._others = OtherRecords(self._join_models)
        written = ROOM + spec.max_models + 8
        totals = one(TOTALS, free=-1, first=-1, last=-1, open_newest_ms=-1, open_first=-1, open_last=-1)
        for name in ("opened_ms", "dedup_clock_ms", "dead_first", "dead_last", "passed_ms"):
            totals[name] = -1
        self._arrays = Arrays(
            entries_of(_FIRST_ENTRIES),
            slots_of(2 * _FIRST_ENTRIES),
            totals,
            np.zeros(1, COUNTERS),
            np.zeros(GENERATIONS_KEPT, GENERATION),
            np.zeros(0, ACTIVITY),
            one(
                LIMITS,
                horizon_ms=spec.horizon_ms,
                early_horizon_ms=spec.early_horizon_ms,
                dedup_horizon_ms=spec.dedup_horizon_ms,
                max_pending=spec.max_pending,
                max_labels=spec.max_labels,
                max_dedup_entries=spec.max_dedup_entries,
                retain_unmatched=spec.retain_unmatched,
                assume=-1 if spec.assume is None else self.classes[spec.assume],
                start_ms=NO_TIME,
                numbered=numbered,
            ),
            outcomes_of(written),
            np.zeros(written, np.int32),
            places_of(_FIRST_ENTRIES),
            places_of(2 * _FIRST_ENTRIES),
            np.zeros(0, np.int8),
            np.zeros(SETTLED_NOTED, np.int32),
        )
        self._overflow = overflow
        self._spec = spec
        self._durable = DurableEntries(
            self._builder.scores, self.models, self.classes, self._segments, self._topics
        )
        self._room_for_models()

    @property
    def start_ms(self) -> int | None:
        """See `Pipeline.start_ms`."""
        start_ms = int(self._arrays.limits["start_ms"][0])
        return None if start_ms == NO_TIME else start_ms

    @start_ms.setter
    def start_ms(self, start_ms: int | None) -> None:
        self._arrays.limits["start_ms"] = NO_TIME if start_ms is None else start_ms

    def rows(self, events: Sequence[Event]) -> Records:
        """Rows of events, to be joined in this order; what is null or invalid is counted at its place."""
        rows = self._builder.rows(events)
        self._others.note(rows, range(len(events)), events)
        self._room_for_models()
        return rows

    def record_rows(self, records: RecordBatch) -> Records:
        """Rows of records in columns, likewise; event objects among them are taken one by one."""
        places = records.object_places()
        events = records.placed(places)
        if events and len(events) == len(records):
            return self.rows(events)
        rows = self._numbering.rows(records.rows, records.vocabulary, records.topics)
        self.place_events(rows, places, events)
        return rows

    def place_events(self, rows: Records, places: NDArray[np.intp], events: Sequence[Event]) -> None:
        """Put event objects into rows at their places; all names in the others are numbered."""
        if events:
            built = self._builder.rows(events)
            rows.view(np.int64).reshape(len(rows), -1)[places] = built.view(np.int64).reshape(len(built), -1)
            self._others.note(built, places.tolist(), events)
        self._room_for_models()

    def predicted_scores(self, rows: Records) -> NDArray[np.float64]:
        """Look up the score of the predicted class of each row that is to be joined, as `score_of` has it.

        Empty where no prediction has scores; those of predictions that are resolved are not kept.
        """
        scores, classes = self._builder.scores, self.classes.names
        if not scores:
            return np.zeros(0)
        found = np.full(len(rows), np.nan)
        carried = rows["scores"]
        scored = np.flatnonzero((rows["side"] == PREDICTION) & (carried >= 0) & (carried < SEGMENTS_FROM))
        named, numbers = rows["class"][scored].tolist(), carried[scored].tolist()
        found[scored] = [score_of(classes[c], scores[s]) for c, s in zip(named, numbers, strict=True)]
        return found

    def accepted(self, rows: Records, scores: NDArray[np.float64], start: int, stop: int) -> PredictionBatch:
        """Put the predictions that were accepted of rows `start` to `stop`, joined now, into columns."""
        records = np.empty(stop - start, PREDICTED)
        written = put_accepted(rows, scores, start, stop, records)
        return PredictionBatch(records[:written], self.models.names, self.classes.names)

    def prepare(self, rows: Records) -> Iterator[Work]:
        """Have everything in the table that these rows need; each piece of work is done before the next."""
        overflow = self._overflow
        if overflow is not None and overflow.is_needed(self):
            yield from overflow.make_room(self)
            yield from overflow.invite(self, rows)

    def bring_back(self, rows: Records) -> Iterator[Work]:
        """Bring back what `take` stopped for, and prepare for the rows that are left."""
        overflow = self._overflow
        assert overflow is not None  # noqa: S101 - without it nothing is outside the table
        overflow.send_home(self)
        yield from overflow.bring_back(self, int(self._arrays.totals["needed"][0]))
        yield from overflow.invite(self, rows)

    def finish(self) -> Iterator[Work]:
        """Leave the table as a commit may find it when all rows are taken."""
        overflow = self._overflow
        if overflow is not None:
            overflow.send_home(self)
            yield from overflow.keep_first(self)

    def take(self, rows: Records, start: int) -> tuple[int, int]:
        """Join rows from `start` on; gives the row it stands at, and why.

        After `DONE` and `WRITTEN` the outcomes must be taken, after `LOOK` models may be idle at the time of
        the row, after `BRING` goes `bring_back`.
        """
        room = min(ROOM, ROOM_WITH_SCORES) if self._builder.scores else ROOM
        while True:
            start, why = take(self._arrays, rows, start, self.shift, room)
            self._others.count_up_to(start)
            if why == PLACE:
                self._place(rows[start])
            elif why == GROW:
                self.grow()
            else:
                if self._overflow is not None:
                    self._overflow.note_guests(self)
                return start, why

    def take_outcomes(self) -> OutcomeBatch:
        """Hand over the outcomes since the last call."""
        totals = self._arrays.totals
        records = copied(self._arrays.outcomes[: int(totals["outcomes"][0])])
        discarded = int(totals["discarded"][0])
        totals["outcomes"] = totals["discarded"] = 0
        scores: dict[int, dict[str, float]] = {}
        segments: dict[int, int] = {}
        held = self._builder.scores
        if held:
            carried = records["scores"]
            numbers: list[int] = carried[(carried >= 0) & (carried < SEGMENTS_FROM)].tolist()
            if held.segments:
                segments = {number: held.segments.get(number, -1) for number in numbers}
            scores = held.take(numbers)
            held.take(self._arrays.discarded[:discarded].tolist())
        names = self.models.names, self.classes.names
        return OutcomeBatch(records, *names, scores, self._segments.names, segments)

    def retire(self, clock_ms: int) -> list[str]:
        """Remove the models that are idle by now, and name them."""
        self._update_models()
        idle = self._join_models.retire(clock_ms)
        activity = self._arrays.activity
        for name in idle:
            self._clear(self.models[name])
            self._others.invalid_by_model.pop(name, None)
        if idle:
            activity["place"][activity["place"] == REFUSED] = UNPLACED
        self._arrays.totals["next_look_s"] = self._join_models.next_look_s
        self._arrays.counters["models_retired"] += len(idle)
        return idle

    def release_names(self) -> None:
        """Release names that nothing refers to, if there are many."""
        activity = self._arrays.activity
        if self.classes.crowded:
            entries = self._used()
            pending = entries["state"] == PENDING
            last = activity["last_label"].astype(np.int32)
            assumed = self._arrays.limits["assume"].astype(np.int32)
            trues, known = entries["true_or_scores"][~pending], entries["label_at_prediction"][pending]
            if self._arrays.limits["numbered"][0]:
                known = np.empty(0, np.int32)
            outside = [] if self._overflow is None else self._overflow.cold.classes()
            self.classes.release_all_but((entries["predicted_class"], trues, known, last, assumed, *outside))
        if self.models.crowded:
            placed = np.flatnonzero(activity["place"] == PLACED).astype(np.int32)
            outside = [] if self._overflow is None else self._overflow.cold.models()
            for number in self.models.release_all_but((self._used()["model"], placed, *outside)).tolist():
                self._clear(number)
        if self._segments.crowded:
            entries = self._used()
            waiting = entries["true_or_scores"][entries["state"] == PENDING] - SEGMENTS_FROM
            scored = np.array(list(self._builder.scores.segments.values()), np.int32)
            outside = [] if self._overflow is None else self._overflow.cold.segments()
            self._segments.release_all_but((waiting, scored, *outside))

    def totals(self) -> JoinTotals:
        """Totals, counters and models that a commit writes beside the entries."""
        self._update_models()
        return totals_of(self._arrays, self._join_models.state(), self.counters)

    def changes(self, commit: int) -> Changes:
        """Compute what this commit writes of the entries; every call has to be followed by its commit."""
        return self._durable.changes(commit, self._arrays, self._overflow)

    def everything(self) -> Changes:
        """Compute all that a store would have of the entries; not of a join whose changes are committed."""
        self._arrays.places[: int(self._arrays.totals["top"][0])] = UNWRITTEN
        self._arrays.totals["left"] = 0
        for names in (self.models, self.classes, self._segments, self._topics):
            names.tell_all()
        self._durable = DurableEntries(
            self._builder.scores, self.models, self.classes, self._segments, self._topics
        )
        return self._durable.changes(0, self._arrays)

    def run_changes(self) -> ColdChanges | None:
        """Compute what the same commit writes of the entries outside the table."""
        return None if self._overflow is None else self._overflow.changes()

    @property
    def entries_outside(self) -> int:
        """Entries outside the table, dead ones included."""
        return 0 if self._overflow is None else self._overflow.cold.entries

    def upkeep(self) -> Merge | None:
        """Plan what keeps the entries outside the table in few runs: its `run` belongs into a thread."""
        return None if self._overflow is None else self._overflow.cold.merging()

    def finish_upkeep(self, merge: Merge) -> None:
        """Use what has been made; only between two calls of `prepare` and `finish`."""
        assert self._overflow is not None  # noqa: S101 - it planned the merge
        self._overflow.cold.finish_merging(merge)

    def restore(self, totals: JoinTotals, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Continue from what all commits have written.

        Raises
        ------
        PackedError
            If it is not what commits write.
        """
        self._arrays, outside = self._durable.restore(self._arrays, totals, items, self._overflow)
        if self._overflow is not None:
            self._overflow.begin(self, outside.settled, outside.unmatched)
        self._others.restore(totals.counters)
        self._restore_counters(totals.counters)
        self._join_models.restore(totals.join_models)
        self._arrays = self._arrays._replace(activity=np.zeros(0, ACTIVITY))
        numbers = [self.models[model.name] for model in totals.join_models.models]
        self._room_for_models()
        for number, model in zip(numbers, totals.join_models.models, strict=True):
            label = -1 if model.last_label is None else self.classes[model.last_label]
            seen = (model.last_ms, model.last_event_ms, model.joined, model.left, label, 0)
            self._arrays.activity[number] = (PLACED, model.pending, *seen)
        self._arrays.totals["next_look_s"] = self._join_models.next_look_s
        self._arrays.limits["assume"] = -1 if self._spec.assume is None else self.classes[self._spec.assume]
        self.start_ms = totals.start_ms

    def _restore_counters(self, counters: JoinCounters) -> None:
        counted = self._arrays.counters
        self._segments.over_limit = counters.predictions_segments_over_limit
        for name in PLAIN_COUNTERS:
            counted[name] = getattr(counters, name)
        for form, labels in ((WITH_MODEL, counters.with_model), (WITHOUT_MODEL, counters.without_model)):
            counted["labels"][0, form] = [getattr(labels, name) for name in LABEL_COLUMNS]
        restore_topics(counted["topics"][0], self._topics, counters)

    @property
    def counters(self) -> JoinCounters:
        """Counters so far."""
        counted = self._arrays.counters[0]
        forms = [
            LabelCounters(**dict(zip(LABEL_COLUMNS, counted["labels"][form].tolist(), strict=True)))
            for form in (WITH_MODEL, WITHOUT_MODEL)
        ]
        return JoinCounters(
            **{name: int(counted[name]) for name in PLAIN_COUNTERS if name != _OF_SEGMENTS},
            with_model=forms[0],
            without_model=forms[1],
            null_records=dict(self._others.null),
            records_invalid={topic: dict(reasons) for topic, reasons in self._others.invalid.items()},
            model_records_invalid=dict(self._others.invalid_by_model),
            predictions_segments_over_limit=self._segments.over_limit,
            **topic_counters(counted["topics"], self._topics.names),
        )

    def holdings(self) -> Holdings:
        """Holdings as of now."""
        self._update_models()
        totals = self._arrays.totals[0]
        oldest = int(totals["first"][PREDICTIONS])
        return Holdings(
            self._join_models.models,
            int(totals["pending"]),
            int(totals["early"]),
            int(totals["unmatched"]),
            int(totals["retained"]),
            int(totals["closed_entries"] + totals["open_entries"]),
            places={
                "memory": int(totals["used"]),
                "disk": 0 if self._overflow is None else self._overflow.entries(self),
            },
            oldest_ms=None if oldest < 0 else int(self._arrays.entries["record_ms"][oldest]),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the entries used and of the table."""
        return self._arrays.slots.nbytes + int(self._arrays.totals["top"][0]) * self._arrays.entries.itemsize

    def _used(self) -> Records:
        entries = self._arrays.entries[: int(self._arrays.totals["top"][0])]
        return entries[entries["state"] != FREE]

    @property
    def arrays(self) -> Arrays:
        """Everything the loop reads and changes."""
        return self._arrays

    @arrays.setter
    def arrays(self, arrays: Arrays) -> None:
        self._arrays = arrays

    @property
    def scores(self) -> HeldScores:
        """Scores of predictions in the table."""
        return self._builder.scores

    @property
    def segments(self) -> NumberedSegments:
        """Numbers of the segments of predictions."""
        return self._segments

    @property
    def topics(self) -> NumberedTopics:
        """Numbers of topics."""
        return self._topics

    @property
    def shift(self) -> np.uint64:
        """64 less the binary logarithm of the number of slots."""
        return shift_of(len(self._arrays.slots))

    @property
    def is_nearly_full(self) -> bool:
        """Tell whether it is time for more room; without it the loop makes it when it must, however long.

        Never of a join that moves entries out of its table: it makes room itself, between two pieces of work.
        """
        return self._overflow is None and is_nearly_full(self._arrays)

    def with_more_room(self) -> Arrays:
        """Compute arrays with more room; changes nothing: a thread may do it while nothing is joined."""
        return grown(self._arrays)

    def use(self, arrays: Arrays) -> None:
        """Go on with what `with_more_room` gave; nothing may have been joined or written in between."""
        self._arrays = arrays

    def grow(self) -> None:
        """Double the table, or the entries, whichever is full."""
        self._arrays = grown(self._arrays, 0)

    def _place(self, row: np.void) -> None:
        number = int(row["model"])
        place = self._join_models.place(self.models.names[number], int(row["record_ms"]))
        activity = self._arrays.activity
        if place is None:
            activity["place"][number] = REFUSED
            return
        activity["place"][number] = PLACED
        activity["last_ms"][number] = place.last_ms
        self._arrays.totals["next_look_s"] = self._join_models.next_look_s

    def _clear(self, number: int) -> None:
        self._arrays.activity[number] = one(ACTIVITY, last_label=-1, last_event_ms=-1)[0]

    def _update_models(self) -> None:
        """Bring the activity of every model up to date."""
        models = self._join_models.models
        numbers = [self.models[name] for name in models]
        labels = self.classes.names
        shown = self._arrays.activity[numbers]
        for model, row in zip(models.values(), shown.tolist(), strict=True):
            _, model.pending, model.last_ms, model.last_event_ms, model.joined, model.left, label, _ = row
            model.last_label = None if label < 0 else labels[label]

    def _room_for_models(self) -> None:
        """Have activity for every number of a model."""
        missing = len(self.models.names) - len(self._arrays.activity)
        if missing > 0:
            fresh = np.zeros(max(missing, len(self._arrays.activity), 16), ACTIVITY)
            fresh["last_label"] = fresh["last_event_ms"] = -1
            self._arrays = self._arrays._replace(activity=np.concatenate([self._arrays.activity, fresh]))
