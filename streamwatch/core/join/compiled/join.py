"""`CompiledJoin`: the compiled join's interface to Python, and owner of its arrays.

Long because it is the whole interface in one class; what it does is done in the modules it calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Event
from streamwatch.core.join.compiled.accepted import accepted_predictions, predicted_scores
from streamwatch.core.join.compiled.activity import (
    place_model,
    restored_activity,
    retire,
    update_models,
    with_room_for_models,
)
from streamwatch.core.join.compiled.cold.merging import Merge
from streamwatch.core.join.compiled.cold.store import ColdChanges
from streamwatch.core.join.compiled.counters import counters_of, restore_counters
from streamwatch.core.join.compiled.durable.entries import DurableEntries
from streamwatch.core.join.compiled.durable.held_log import HeldLog
from streamwatch.core.join.compiled.durable.totals import JoinTotals, totals_of
from streamwatch.core.join.compiled.durable.waiting_log import Changes
from streamwatch.core.join.compiled.folding import Owners, restore_streams, streams_state
from streamwatch.core.join.compiled.growing import grown, is_nearly_full, shift_of
from streamwatch.core.join.compiled.incoming import JoinRows
from streamwatch.core.join.compiled.initial_arrays import new_arrays
from streamwatch.core.join.compiled.layout import (
    NO_TIME,
    PARTNERS,
    PREDICTIONS,
    UNWRITTEN,
    Arrays,
    Records,
)
from streamwatch.core.join.compiled.loop import (
    CHECK_IDLE,
    DONE,
    GROW,
    LOAD_OLDEST,
    PLACE_MODEL,
    ROOM_FOR_PAIRS,
    TAKE_OUTCOMES,
    join_rows,
)
from streamwatch.core.join.compiled.names import HeldScores, NumberedSegments, NumberedTopics, new_names
from streamwatch.core.join.compiled.other_records import OtherRecords
from streamwatch.core.join.compiled.outside.overflow import Overflow
from streamwatch.core.join.compiled.outside.work import Work
from streamwatch.core.join.compiled.pairing import (
    PairOrder,
    Relations,
    pairing_state,
    restore_pairing,
    with_room_for_pairs,
)
from streamwatch.core.join.compiled.prediction_order import PredictionOrder
from streamwatch.core.join.compiled.releasing import release_names
from streamwatch.core.join.compiled.resolved import take_outcomes
from streamwatch.core.join.compiled.rows import Digests
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.holdings import Holdings
from streamwatch.core.join.models import JoinModels
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.predictions.batch import PredictionBatch
from streamwatch.core.records import RecordBatch
from streamwatch.core.specs import JoinSpec
from streamwatch.core.words import copied

__all__ = ["CHECK_IDLE", "DONE", "LOAD_OLDEST", "TAKE_OUTCOMES", "CompiledJoin"]

ROOM: Final = 4_096
"""Number of outcomes handed over at a time; those of one id may come in addition."""
ROOM_WITH_SCORES: Final = 500
"""The same while predictions with scores are pending, whose evaluation takes a microsecond per outcome."""


class CompiledJoin:
    """Join that emits outcomes in the order its rules ask for, and tells what changed of its entries.

    Parameters
    ----------
    spec
        Must have `conflicts` "first", and not both `order` "prediction_time" and comparisons.
    digests
        Function that computes the ids' digests.
    overflow
        Storage for entries that do not fit into the table; None if the table may grow without limit.
    numbered
        Whether outcomes carry the number of their accepted prediction in the place of the label at
        prediction, and the row that resolved them in `assumed` (see `layout.LIMITS`).

    Raises
    ------
    ValueError
        If `spec` requires the row-wise `Join`.
    """

    def __init__(
        self, spec: JoinSpec, digests: Digests, overflow: Overflow | None = None, *, numbered: bool = False
    ) -> None:
        if spec.order != "resolution" and spec.comparisons:
            raise ValueError(f"expected order 'resolution' with comparisons, got {spec.order!r}")
        if spec.conflicts != "first":
            raise ValueError(f"conflicts of a compiled join must be 'first', got {spec.conflicts!r}")
        self.names = new_names()
        self.models, self.classes = self.names.models, self.names.classes
        self._join_models = JoinModels(spec.max_models, 2 * spec.horizon_ms)
        self._others = OtherRecords(self._join_models, folds=spec.folds)
        self._incoming = JoinRows(digests, self.names, self._others)
        self._arrays = new_arrays(spec, self.classes, outcomes=ROOM, numbered=numbered)
        self._overflow = overflow
        self._spec = spec
        self._durable = DurableEntries(self.names)
        self._order = PredictionOrder(spec.reorder_window_ms, spec.max_reordered)
        self._held_log = HeldLog()
        self._ordered = spec.order == "prediction_time"
        self._relations = Relations(spec.comparisons)
        self._owners = Owners(folds=spec.folds)
        self._pair_order = PairOrder()
        self._arrays = with_room_for_models(self._arrays, len(self.models.names))

    @property
    def start_ms(self) -> int | None:
        """Time at which reading began; see `Pipeline.start_ms`."""
        start_ms = int(self._arrays.limits["start_ms"][0])
        return None if start_ms == NO_TIME else start_ms

    @start_ms.setter
    def start_ms(self, start_ms: int | None) -> None:
        self._arrays.limits["start_ms"] = NO_TIME if start_ms is None else start_ms

    def rows(self, events: Sequence[Event]) -> Records:
        """Build the rows of events, in order.

        Null and invalid ones are counted when the join reaches their row.
        """
        return self._with_room(self._incoming.rows(events))

    def record_rows(self, records: RecordBatch) -> Records:
        """Build the rows of records in columns, as `rows` does.

        Event objects among them are converted one by one.
        """
        return self._with_room(self._incoming.record_rows(records))

    def place_events(self, rows: Records, places: NDArray[np.intp], events: Sequence[Event]) -> None:
        """Replace the rows at `places` by those of these event objects.

        All names in the other rows have numbers.
        """
        self._incoming.place_events(rows, places, events)
        self._with_room(rows)

    def predicted_scores(self, rows: Records) -> NDArray[np.float64]:
        """Look up the score of the predicted class of each row before it is joined, as `score_of` gives it.

        Empty if no prediction has scores; scores are dropped once their prediction is resolved.
        """
        return predicted_scores(rows, self.names)

    def accepted(self, rows: Records, scores: NDArray[np.float64], start: int, stop: int) -> PredictionBatch:
        """Put the accepted predictions of rows `start` to `stop`, which were just joined, into columns."""
        return accepted_predictions(rows, scores, start, stop, self.names)

    def prepare(self, rows: Records) -> Iterator[Work]:
        """Load everything into the table that these rows need.

        Do each piece of work before asking for the next.
        """
        overflow = self._overflow
        if overflow is not None and overflow.is_needed(self):
            yield from overflow.evict_if_full(self)
            yield from overflow.load_guests(self, rows)

    def load_oldest(self, rows: Records) -> Iterator[Work]:
        """Load the oldest entries or partners for which `take` stopped; prepare for the remaining rows."""
        overflow = self._overflow
        assert overflow is not None  # noqa: S101 - without it nothing is outside the table
        overflow.unload_guests(self)
        needed = int(self._arrays.totals["needed"][0])
        if needed != PARTNERS:
            yield from overflow.load_oldest(self, needed)
        yield from overflow.load_guests(self, rows)

    def finish(self) -> Iterator[Work]:
        """Bring the table into the state a commit requires, after all rows were joined."""
        overflow = self._overflow
        if overflow is not None:
            overflow.unload_guests(self)
            yield from overflow.load_oldest_prediction(self)

    def take(self, rows: Records, start: int) -> tuple[int, int]:
        """Join rows from `start` on; return the row at which it stopped, and the reason.

        After `DONE` and `TAKE_OUTCOMES`, call `take_outcomes`; after `CHECK_IDLE`, models may be idle at the
        time of the row; after `LOAD_OLDEST`, call `load_oldest`.
        """
        room = min(ROOM, ROOM_WITH_SCORES) if self.names.scores else ROOM
        while True:
            start, why = join_rows(self._arrays, rows, start, self.shift, room)
            self._others.count_up_to(start)
            if why == PLACE_MODEL:
                place_model(self._arrays, self.names, self._join_models, rows[start])
            elif why == GROW:
                self.grow()
            elif why == ROOM_FOR_PAIRS:
                needed = int(self._arrays.totals["pairs_needed"][0])
                self._arrays = with_room_for_pairs(self._arrays, needed)
            else:
                if self._overflow is not None:
                    self._overflow.record_guest_changes(self)
                return start, why

    def take_outcomes(self, clock_ms: int) -> Iterator[OutcomeBatch]:
        """Hand over the outcomes whose turn it is until `clock_ms`; exhaust the iterator.

        With the order of predictions, these are outcomes held earlier, and others are held.
        """
        count = int(self._arrays.totals["outcomes"][0])
        outcomes = take_outcomes(self._arrays, self.names, self._pair_order)
        if not self._ordered:
            if len(self._order):  # the settings asked for another order when they were held
                yield from self._noted(self._order.release_all(outcomes[:0]))
            if len(outcomes):
                yield outcomes
            return
        timing = copied(self._arrays.timing[:count])
        yield from self._noted(self._order.put(outcomes, timing, clock_ms))
        self._arrays.counters["outcomes_released_early"] += self._order.take_early()

    def release_held(self) -> Iterator[OutcomeBatch]:
        """Hand over everything held for the order of predictions, at the end of all records."""
        yield from self._noted(
            self._order.release_all(take_outcomes(self._arrays, self.names, self._pair_order))
        )

    def _noted(self, released: Iterator[tuple[OutcomeBatch, NDArray[np.int64]]]) -> Iterator[OutcomeBatch]:
        for outcomes, runs in released:
            self._held_log.note_released(runs)
            yield outcomes

    def retire(self, clock_ms: int) -> list[str]:
        """Remove the models that are idle at `clock_ms`, and return their names."""
        self._update_models()
        return retire(self._arrays, self.names, self._join_models, self._others, clock_ms)

    def release_names(self) -> None:
        """Release names that are not used any more, if there are many."""
        outside = None if self._overflow is None else self._overflow.cold
        release_names(self._arrays, self.names, outside, self._order)

    def totals(self) -> JoinTotals:
        """Totals, counters and models, which a commit writes in addition to the entries."""
        self._update_models()
        pairing = pairing_state(self._arrays, self.models, self._relations)
        streams = streams_state(self._arrays, self.names)
        models, order = self._join_models.state(), self._order.totals()
        return totals_of(self._arrays, models, self.counters, order, pairing, streams)

    def _update_models(self) -> None:
        """Update the activity of the models from the arrays."""
        update_models(self._arrays, self.names, self._join_models)
        held = self._order.held_by_model(len(self.models.names)).tolist()
        for model in self._join_models.models.values():
            model.held = held[self.models[model.name]]

    def changes(self, commit: int) -> Changes:
        """Changes of the entries for this commit.

        Each call assumes that those of the call before were committed.
        """
        changes = self._durable.changes(commit, self._arrays, self._overflow)
        self._held_log.write(self._order, changes)
        return changes

    def all_entries(self) -> Changes:
        """All entries, as a store would contain them; not for a join whose changes are committed."""
        self._arrays.places[: int(self._arrays.totals["top"][0])] = UNWRITTEN
        self._arrays.totals["obsolete"] = 0
        for names in (self.models, self.classes, self.names.segments, self.names.topics):
            names.mark_all_changed()
        self._durable = DurableEntries(self.names)
        return self._durable.changes(0, self._arrays)

    def run_changes(self) -> ColdChanges | None:
        """Changes of entries outside the table for the same commit; None without an overflow."""
        return None if self._overflow is None else self._overflow.changes()

    @property
    def entries_outside(self) -> int:
        """Number of entries outside the table, dead ones included."""
        return 0 if self._overflow is None else self._overflow.cold.entries

    def plan_merge(self) -> Merge | None:
        """Plan a merge of runs of entries outside the table; call its `run` in a thread.

        None if none is due.
        """
        return None if self._overflow is None else self._overflow.cold.plan_merge()

    def finish_merge(self, merge: Merge) -> None:
        """Use the result of a merge; not between `prepare` and `finish`."""
        assert self._overflow is not None  # noqa: S101 - it planned the merge
        self._overflow.cold.finish_merge(merge)

    def restore(self, totals: JoinTotals, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Continue from what the commits have written.

        Raises
        ------
        PackedError
            If this is not what commits write.
        """
        self._arrays, outside, held = self._durable.restore(self._arrays, totals, items, self._overflow)
        self._held_log.restore(held, totals.order, self.names, self._order)
        if self._overflow is not None:
            self._overflow.begin(self, outside.settled, outside.unmatched)
        self._others.restore(totals.counters)
        restore_counters(self._arrays.counters, self.names, totals.counters)
        self._arrays.counters["predictions_resolved"] += len(self._order) - self._order.assumed
        self._join_models.restore(totals.join_models)
        activity = restored_activity(self.names, totals.join_models)
        self._arrays = self._arrays._replace(activity=activity)
        self._arrays = restore_streams(
            self._arrays, self.names, self._owners, totals.fold_streams, folds=self._spec.folds
        )
        self._arrays = with_room_for_models(self._arrays, len(self.models.names))
        self._arrays = restore_pairing(self._arrays, self.models, self._relations, totals.pairing)
        self._arrays.totals["next_idle_check_s"] = self._join_models.next_look_s
        self._arrays.limits["assume"] = -1 if self._spec.assume is None else self.classes[self._spec.assume]
        self.start_ms = totals.start_ms

    def add_pairs(self, elsewhere: JoinCounters) -> None:
        """Count the pairs of outcomes that were joined elsewhere."""
        for name in ("pairs_made", "pairs_labels_differ", "pairs_expired"):
            self._arrays.counters[name] += getattr(elsewhere, name)

    @property
    def counters(self) -> JoinCounters:
        """Counters so far."""
        counters = counters_of(self._arrays.counters, self.names, self._others)
        counters.predictions_resolved -= len(self._order) - self._order.assumed
        return counters

    def holdings(self) -> Holdings:
        """Current holdings."""
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
            len(self._order),
            self._order.assumed,
            places={
                "memory": int(totals["used"]),
                "disk": 0 if self._overflow is None else self._overflow.entries(self),
            },
            oldest_ms=None if oldest < 0 else int(self._arrays.entries["record_ms"][oldest]),
        )

    @property
    def nbytes(self) -> int:
        """Number of bytes of the entries in use and of the hash table."""
        return self._arrays.slots.nbytes + int(self._arrays.totals["top"][0]) * self._arrays.entries.itemsize

    @property
    def arrays(self) -> Arrays:
        """Arrays that the loop reads and changes."""
        return self._arrays

    @arrays.setter
    def arrays(self, arrays: Arrays) -> None:
        self._arrays = arrays

    @property
    def scores(self) -> HeldScores:
        """Scores of the predictions in the table."""
        return self.names.scores

    @property
    def segments(self) -> NumberedSegments:
        """Numbers of the predictions' segments."""
        return self.names.segments

    @property
    def topics(self) -> NumberedTopics:
        """Numbers of topics."""
        return self.names.topics

    @property
    def shift(self) -> np.uint64:
        """64 minus the binary logarithm of the number of slots."""
        return shift_of(len(self._arrays.slots))

    @property
    def is_nearly_full(self) -> bool:
        """Tell whether to grow now; otherwise the loop grows when it must, which can take long.

        Always false for a join with an overflow, which makes room itself between pieces of work.
        """
        return self._overflow is None and is_nearly_full(self._arrays)

    def with_more_room(self) -> Arrays:
        """Compute larger arrays without changing the join; may run in a thread while nothing is joined."""
        return grown(self._arrays)

    def use(self, arrays: Arrays) -> None:
        """Use the result of `with_more_room`; nothing may have been joined or written in between."""
        self._arrays = arrays

    def grow(self) -> None:
        """Double the hash table or the entries, whichever is full."""
        self._arrays = grown(self._arrays, 0)

    def _with_room(self, rows: Records) -> Records:
        """Make room for the activity of all model numbers, including those in these rows."""
        self._arrays = self._owners.refreshed(self._arrays, self.names)
        self._arrays = with_room_for_models(self._arrays, len(self.models.names))
        self._arrays = self._relations.refreshed(self._arrays, self.models)
        return rows
