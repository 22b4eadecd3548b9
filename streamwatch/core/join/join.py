"""`CompiledJoin`: the compiled join's interface to Python, and owner of its arrays.

The work itself is done in the modules that it calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.activity import (
    ActivityReader,
    admit_model,
    release_names,
    restored_activity,
    retire,
    with_room_for_models,
)
from streamwatch.core.join.cold.merging import Merge
from streamwatch.core.join.cold.overflow import Overflow, Work
from streamwatch.core.join.cold.store import ColdChanges
from streamwatch.core.join.counted import OtherRecords, counters_of, restore_counters
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.durable.entries import DurableEntries
from streamwatch.core.join.durable.entry_logs import Changes
from streamwatch.core.join.durable.held_log import HeldLog
from streamwatch.core.join.durable.totals import JoinModelsState, JoinTotals, totals_of
from streamwatch.core.join.folding import Owners, restore_streams, streams_state
from streamwatch.core.join.held_scores import taken_scores
from streamwatch.core.join.layout import (
    ACTIVITY,
    BOTH,
    COUNTERS,
    FIRST,
    GENERATION,
    GENERATIONS_KEPT,
    LAST,
    LAST_CLASS,
    LIMITS,
    NEVER_MS,
    NO_TIME,
    PARTNER,
    PARTNERS,
    PREDICTIONS,
    STREAM,
    TIMING,
    TOTALS,
    UNWRITTEN,
    Arrays,
    Records,
    allocate_entries,
    allocate_log_positions,
    allocate_numbers,
    allocate_outcomes,
    allocate_side,
    allocate_slots,
    column_of,
    one_record,
    side_columns,
)
from streamwatch.core.join.loop import (
    ADMIT_MODEL,
    CHECK_IDLE,
    DONE,
    GROW,
    LOAD_OLDEST,
    ROOM_FOR_PAIRS,
    TAKE_OUTCOMES,
    accepted_predictions,
    join_rows,
    predicted_scores,
)
from streamwatch.core.join.models import JoinModels
from streamwatch.core.join.names import JoinNames, new_names
from streamwatch.core.join.pairing import (
    PairOrder,
    Relations,
    pairing_state,
    restore_pairing,
    with_room_for_pairs,
)
from streamwatch.core.join.prediction_order import Leaving, PredictionOrder
from streamwatch.core.join.rows import Digests, JoinRows
from streamwatch.core.join.series import Holdings
from streamwatch.core.join.table import rehash
from streamwatch.core.predictions.kind import PredictionBatch
from streamwatch.core.records.batch import RecordBatch, copied, words_of_array
from streamwatch.core.records.events import CARRIED, Event
from streamwatch.core.records.outcomes import PAIR_COLUMNS, OutcomeBatch
from streamwatch.core.specs import JoinSpec

# Outcomes that a compiled join hands over, with scores and segments of their predictions.


def take_outcomes(arrays: Arrays, names: JoinNames, order: PairOrder) -> OutcomeBatch:
    """Return the outcomes and pairs since the last call, and free the scores that are not needed any more."""
    totals = arrays.totals
    records = copied(arrays.outcomes[: int(totals["outcomes"][0])])
    discarded = int(totals["discarded"][0])
    paired = int(totals["pairs"][0])
    pairs = order.ordered(arrays.pairs[:paired], names.models) if paired else None
    totals["outcomes"] = totals["discarded"] = totals["pairs"] = 0
    scores = taken_scores(records, names.scores)
    names.scores.free(arrays.discarded[:discarded])
    return OutcomeBatch(records, names.models.names, names.classes.names, scores, names.segments.names, pairs)


# Initial arrays of a compiled join, and room for outcomes.


_FIRST_ENTRIES: Final = 1_024
_CONFLICTS: Final = {"first": FIRST, "last": LAST, "both": BOTH}
FIRST_PAIRS: Final = 1 << 14
"""Number of pairs for which there is room at first."""


def new_arrays(spec: JoinSpec, classes: Mapping[str, int], *, numbered: bool) -> Arrays:
    """Build the arrays of an empty join, without room for outcomes.

    Parameters
    ----------
    spec
        Limits of the join.
    classes
        Numbers of classes.
    numbered
        See `CompiledJoin`.
    """
    totals = one_record(TOTALS, free=-1, first=-1, last=-1, open_newest_ms=-1, open_first=-1, open_last=-1)
    for name in ("opened_ms", "dedup_clock_ms", "dead_first", "dead_last", "passed_ms", "clock_ms"):
        totals[name] = -1
    totals["pair_generation"] = -1
    totals["partners_ms"] = NEVER_MS
    columns = side_columns(spec)
    limits = one_record(
        LIMITS,
        horizon_ms=spec.horizon_ms,
        early_horizon_ms=spec.early_horizon_ms,
        dedup_horizon_ms=spec.dedup_horizon_ms,
        max_pending=spec.max_pending,
        max_labels=spec.max_labels,
        max_dedup_entries=spec.max_dedup_entries,
        retain_unmatched=spec.retain_unmatched,
        assume=-1 if spec.assume is None else classes[spec.assume],
        start_ms=NO_TIME,
        numbered=numbered,
        compares=bool(spec.comparisons),
        folds=spec.folds,
        shares_stream=spec.folds and spec.folds_share_stream,
        conflicts=_CONFLICTS[spec.conflicts],
        last_class=column_of(LAST_CLASS, columns),
    )
    limits["carried"] = [column_of(each.name, columns) for each in CARRIED]
    return Arrays(
        allocate_entries(_FIRST_ENTRIES),
        allocate_side(_FIRST_ENTRIES, len(columns)),
        allocate_slots(2 * _FIRST_ENTRIES),
        totals,
        np.zeros(1, COUNTERS),
        np.zeros(GENERATIONS_KEPT, GENERATION),
        np.zeros(0, ACTIVITY),
        limits,
        allocate_outcomes(0),
        np.zeros(0, TIMING),
        np.zeros(0, np.int32),
        allocate_log_positions(_FIRST_ENTRIES),
        allocate_log_positions(2 * _FIRST_ENTRIES),
        allocate_numbers(_FIRST_ENTRIES),
        np.zeros(0, np.int8),
        np.zeros((FIRST_PAIRS if spec.comparisons else 0, PAIR_COLUMNS), np.int32),
        np.zeros((0, 2, 0), np.uint64),
        np.zeros(0, PARTNER),
        np.zeros(0, np.int32),
        np.zeros(0, STREAM),
    )


def with_room_for_outcomes(arrays: Arrays, spec: JoinSpec, models: int) -> Arrays:
    """Return arrays with room for `ROOM` outcomes and those of one more id, on which each model may wait.

    There must be no outcomes now.
    """
    room = ROOM + models + 8
    timed = room if spec.order == "prediction_time" else 0
    outcomes, timing = allocate_outcomes(room), np.zeros(timed, TIMING)
    return arrays._replace(outcomes=outcomes, timing=timing, discarded=np.zeros(room, np.int32))


# Growth of a compiled join's arrays ahead of need, since copying millions of entries takes a while.


_LARGE: Final = 1 << 17
"""Number of entries from which on it is worth growing early; fewer take some milliseconds."""
_RESERVED: Final = 1 << 22
"""Number of entries up to which their room grows eightfold, beyond it twofold. Memory is touched only as
entries are used, so what is reserved costs addresses, while every growth copies all entries."""
_AHEAD: Final = 1 << 14
"""Number of records that a table that is not nearly full has room for."""


def shift_of(slots: int) -> np.uint64:
    """Shift that turns `low` of an id into its home slot in a table of `slots` slots, a power of two."""
    return np.uint64(65 - slots.bit_length())


def is_nearly_full(arrays: Arrays) -> bool:
    """Return whether a large table may need more entries or slots for the next records."""
    return len(arrays.entries) >= _LARGE and (_few_entries(arrays, _AHEAD) or _few_slots(arrays, _AHEAD))


def grown(arrays: Arrays, ahead: int = _AHEAD) -> Arrays:
    """Make room for more entries if `ahead` more records may need it, otherwise double the slots.

    Returns new arrays and leaves the given ones as they are.
    """
    return _with_entries(arrays) if _few_entries(arrays, ahead) else _with_slots(arrays)


def _few_entries(arrays: Arrays, ahead: int) -> bool:
    totals, room = arrays.totals[0], len(arrays.entries)
    if int(totals["top"]) + ahead < room:
        return False
    if ahead == 0:
        return int(totals["free"]) < 0
    waiting = ("pending", "early", "unmatched", "retained", "open_entries", "closed_entries")
    return sum(int(totals[name]) for name in waiting) + ahead >= room


def _few_slots(arrays: Arrays, ahead: int) -> bool:
    return int(arrays.totals["chains"][0]) + ahead >= len(arrays.slots) // 8 * 5


def _with_entries(arrays: Arrays) -> Arrays:
    before, top = len(arrays.entries), int(arrays.totals["top"][0])
    room = max(2 * before, min(8 * before, _RESERVED))
    entries = allocate_entries(room)
    words_of_array(entries)[:top] = words_of_array(arrays.entries)[:top]
    log_positions = allocate_log_positions(room)
    if arrays.log_positions[:top].any():  # otherwise its memory stays untouched
        log_positions[:top] = arrays.log_positions[:top]
    obsolete_positions = allocate_log_positions(2 * room)
    noted = int(arrays.totals["obsolete"][0])
    obsolete_positions[:noted] = arrays.obsolete_positions[:noted]
    changed = allocate_numbers(room)
    noted = int(arrays.totals["changed"][0])
    changed[:noted] = arrays.changed[:noted]
    side = allocate_side(room, arrays.side.shape[1])
    side[:top] = arrays.side[:top]
    return arrays._replace(
        entries=entries,
        side=side,
        log_positions=log_positions,
        obsolete_positions=obsolete_positions,
        changed=changed,
    )


def _with_slots(arrays: Arrays) -> Arrays:
    slots = allocate_slots(2 * len(arrays.slots))
    rehash(arrays.slots, slots, shift_of(len(slots)))
    return arrays._replace(slots=slots)


__all__ = ["CHECK_IDLE", "DONE", "LOAD_OLDEST", "TAKE_OUTCOMES", "CompiledJoin"]

ROOM: Final = 8_192
"""Number of outcomes handed over at a time; the last id may add more."""
SCORES_AT_ONCE: Final = 1 << 17
"""Number of scores handed over at a time, as far as that is known before."""


class CompiledJoin:
    """Join that emits outcomes in the order its rules ask for, and reports changed entries for commits.

    Parameters
    ----------
    spec
        Rules of the join.
    digests
        Function that computes the ids' digests.
    overflow
        Storage for entries that do not fit into the table; None if the table may grow without limit.
    numbered
        Whether outcomes have the number of their accepted prediction in `label_at_prediction`, and the row
        that resolved them in `assumed` (see `layout.LIMITS`); not with `conflicts` "last". Such outcomes are
        handed over in the order of resolution; with `order` "prediction_time", `timing` has their times.

    Raises
    ------
    ValueError
        If `numbered` with `conflicts` "last".
    """

    def __init__(
        self, spec: JoinSpec, digests: Digests, overflow: Overflow | None = None, *, numbered: bool = False
    ) -> None:
        if numbered and spec.conflicts == "last":
            raise ValueError("conflicts of a numbered join must be 'first' or 'both', got 'last'")
        self.names = new_names()
        self.models, self.classes = self.names.models, self.names.classes
        self._join_models = JoinModels(spec.max_models, 2 * spec.horizon_ms)
        self._activity = ActivityReader(self.names, self._join_models)
        self._others = OtherRecords(self._join_models, folds=spec.folds)
        self._incoming = JoinRows(digests, self.names, self._others)
        self.arrays = with_room_for_outcomes(
            new_arrays(spec, self.classes, numbered=numbered), spec, spec.max_models
        )
        """Arrays that the loop reads and changes."""
        self._loaded: int | None = None
        """Number of rows whose ids have all their entries in the table; None for all rows."""
        self._overflow = overflow
        if overflow is not None:
            overflow.contents.cold.keep_side(side_columns(spec), spec)
        self._spec = spec
        self._durable = DurableEntries(self.names, spec)
        self._order = PredictionOrder(spec.reorder_window_ms, spec.max_reordered)
        self._held_log = HeldLog()
        self._ordered = spec.order == "prediction_time" and not numbered
        self._relations = Relations(spec.comparisons)
        self._owners = Owners(folds=spec.folds)
        self._pair_order = PairOrder()
        self.arrays = with_room_for_models(self.arrays, len(self.models.names))

    @property
    def start_ms(self) -> int | None:
        """Record time from which topics are read, in ms; None if they are read from their beginning.

        A label without a prediction that is less than one horizon younger than this may belong to a
        prediction that was never read: it counts in `labels_before_start_total`, not as orphaned.
        """
        start_ms = int(self.arrays.limits["start_ms"][0])
        return None if start_ms == NO_TIME else start_ms

    @start_ms.setter
    def start_ms(self, start_ms: int | None) -> None:
        self.arrays.limits["start_ms"] = NO_TIME if start_ms is None else start_ms

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

    def convert_objects(self, rows: Records, indices: NDArray[np.intp], events: Sequence[Event]) -> None:
        """Convert these event objects, and replace the rows with these indices by theirs.

        All names in the other rows have numbers.
        """
        self._incoming.convert_objects(rows, indices, events)
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
        """Yield the work that loads everything these rows need into the table.

        Do each piece of work before asking for the next.
        """
        overflow = self._overflow
        self._loaded = None
        if overflow is not None and overflow.is_needed(self):
            yield from overflow.eviction.evict_if_full(self)
            self._loaded = yield from overflow.load_guests(self, rows)

    def load_oldest(self, rows: Records, start: int) -> Iterator[Work]:
        """Load what `take` stopped for at row `start`; prepare for the rows from there on."""
        overflow = self._overflow
        assert overflow is not None  # noqa: S101 - without it nothing is outside the table
        overflow.guests.unload(self)
        needed = int(self.arrays.totals["needed"][0])
        if needed != PARTNERS:
            yield from overflow.load_oldest(self, needed)
        self._loaded = start + (yield from overflow.load_guests(self, rows[start:]))

    def finish(self) -> Iterator[Work]:
        """Bring the table into the state a commit requires, after all rows were joined."""
        overflow = self._overflow
        if overflow is not None:
            overflow.guests.unload(self)
            yield from overflow.load_oldest_prediction(self)

    @property
    def may_commit(self) -> bool:
        """Return whether a commit would write the present state.

        It would not while rows are joined that have revised a prediction outside the table; `finish` stores
        its new values.
        """
        return self._overflow is None or not self._overflow.guests.are_revised(self)

    def take(self, rows: Records, start: int) -> tuple[int, int]:
        """Join rows from `start` on; return the row at which it stopped, and the reason.

        After `DONE` and `TAKE_OUTCOMES`, call `take_outcomes`; after `CHECK_IDLE`, models may be idle at the
        time of the row; after `LOAD_OLDEST`, call `load_oldest`.
        """
        held, room = self.names.scores, ROOM
        if held.scores:
            room = max(1, min(ROOM, SCORES_AT_ONCE * len(held) // held.scores))
        while True:
            start, why = join_rows(self.arrays, rows[: self._loaded], start, self.shift, room)
            self._others.count_up_to(start)
            if why == ADMIT_MODEL:
                admit_model(self.arrays, self.names, self._join_models, rows[start])
            elif why == GROW:
                self.grow()
            elif why == ROOM_FOR_PAIRS:
                needed = int(self.arrays.totals["pairs_needed"][0])
                self.arrays = with_room_for_pairs(self.arrays, needed)
            else:
                if self._overflow is not None:
                    self._overflow.guests.record_changes(self)
                if why == DONE and start < len(rows):  # entries of the ids of later rows are not loaded yet
                    self.arrays.totals["needed"] = PARTNERS
                    return start, LOAD_OLDEST
                return start, why

    def timing(self) -> Records:
        """Copy `TIMING` of the outcomes to be handed over, (n,); with `order` "prediction_time" only."""
        return copied(self.arrays.timing[: int(self.arrays.totals["outcomes"][0])])

    def take_outcomes(self, clock_ms: int) -> Iterator[OutcomeBatch]:
        """Yield the outcomes to be evaluated by `clock_ms`; exhaust the iterator.

        With `order` "prediction_time" these may have been held since earlier calls, and later ones are held.
        """
        timing = self.timing() if self._ordered else None
        outcomes = take_outcomes(self.arrays, self.names, self._pair_order)
        if timing is None:
            if len(self._order):  # the settings asked for another order when they were held
                yield from self._noted(self._order.release_all(outcomes[:0]))
            if len(outcomes):
                yield outcomes
            return
        yield from self._noted(self._order.put(outcomes, timing, clock_ms))
        self.arrays.counters["outcomes_released_early"] += self._order.take_early()

    def release_held(self) -> Iterator[OutcomeBatch]:
        """Hand over everything held for the order of predictions, at the end of all records."""
        yield from self._noted(
            self._order.release_all(take_outcomes(self.arrays, self.names, self._pair_order))
        )

    def _noted(self, released: Iterator[Leaving]) -> Iterator[OutcomeBatch]:
        for leaving in released:
            self._held_log.note_released(leaving.runs)
            yield leaving.outcomes

    def retire(self, clock_ms: int) -> list[str]:
        """Remove the models that are idle at `clock_ms`, and return their names."""
        self._update_models()
        return retire(self.arrays, self.names, self._join_models, self._others, clock_ms)

    def release_names(self) -> None:
        """Release names that are not used any more, if there are many."""
        outside = None if self._overflow is None else self._overflow.contents.cold
        release_names(self.arrays, self.names, outside, self._order)

    def totals(self) -> JoinTotals:
        """Totals, counters and models, which a commit writes in addition to the entries."""
        pairing = pairing_state(self.arrays, self.models, self._relations)
        streams = streams_state(self.arrays, self.names)
        models, order = self._activity.state(self.arrays, self._held()), self._order.totals()
        return totals_of(self.arrays, models, self.counters, order, pairing, streams)

    def _held(self) -> NDArray[np.int64]:
        """Count the outcomes held for their order, by model number."""
        return self._order.held_by_model(len(self.models.names))

    def _update_models(self) -> None:
        """Update the activity of the models from the arrays."""
        self._activity.update(self.arrays, self._held())

    def changes(self, commit: int) -> Changes:
        """Changes of the entries for this commit.

        Each call assumes that those of the call before were committed.
        """
        changes = self._durable.changes(commit, self.arrays, self._overflow)
        self._held_log.write(self._order, changes)
        return changes

    def all_entries(self) -> Changes:
        """All entries, as a store would contain them; not for a join whose changes are committed."""
        self.arrays.log_positions[: int(self.arrays.totals["top"][0])] = UNWRITTEN
        self.arrays.totals["obsolete"] = self.arrays.totals["changed"] = 0
        for names in (self.models, self.classes, self.names.segments, self.names.topics):
            names.mark_all_changed()
        self._durable = DurableEntries(self.names, self._spec)
        return self._durable.changes(0, self.arrays)

    def run_changes(self) -> ColdChanges | None:
        """Changes of entries outside the table for the same commit; None without an overflow."""
        return None if self._overflow is None else self._overflow.contents.changes()

    @property
    def entries_outside(self) -> int:
        """Number of entries outside the table, dead ones included."""
        return 0 if self._overflow is None else self._overflow.contents.cold.entries

    def plan_merge(self) -> Merge | None:
        """Plan a merge of runs of entries outside the table; call its `run` in a thread.

        None if none is due.
        """
        return None if self._overflow is None else self._overflow.contents.cold.plan_merge()

    def finish_merge(self, merge: Merge) -> None:
        """Use the result of a merge; not between `prepare` and `finish`."""
        assert self._overflow is not None  # noqa: S101 - it planned the merge
        self._overflow.contents.cold.finish_merge(merge)

    def restore(self, totals: JoinTotals, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Continue from what the commits have written.

        Raises
        ------
        PackedError
            If this is not what commits write.
        """
        self.arrays, outside, held = self._durable.restore(self.arrays, totals, items, self._overflow)
        self._held_log.restore(held, totals.order, self.names, self._order)
        if self._overflow is not None:
            self._overflow.begin(self, outside.settled, outside.unmatched)
        self._others.restore(totals.counters)
        restore_counters(self.arrays.counters, self.names, totals.counters)
        self.arrays.counters["predictions_resolved"] += len(self._order) - self._order.assumed
        self._join_models.restore(totals.join_models.models(), totals.join_models.looked)
        self._use_models()
        self.arrays = restore_streams(
            self.arrays, self.names, self._owners, totals.fold_streams, folds=self._spec.folds
        )
        self.arrays = with_room_for_models(self.arrays, len(self.models.names))
        self.arrays = restore_pairing(self.arrays, self.models, self._relations, totals.pairing)
        self.arrays.limits["assume"] = -1 if self._spec.assume is None else self.classes[self._spec.assume]
        self.start_ms = totals.start_ms

    def begin_anew(self, state: JoinModelsState, clock_ms: int) -> None:
        """Begin with nothing but the models of an earlier join, see `JoinModels.begin_anew`."""
        self._join_models.begin_anew(state.models(), state.looked, clock_ms)
        self._use_models()
        self.arrays = with_room_for_models(self.arrays, len(self.models.names))

    def _use_models(self) -> None:
        """Write the models' activity to the arrays, and make room for outcomes of all of them."""
        models = self._join_models.models
        self.arrays = self.arrays._replace(activity=restored_activity(self.names, models.values()))
        if len(models) > self._spec.max_models:  # the limit was lowered
            self.arrays = with_room_for_outcomes(self.arrays, self._spec, len(models))
        self.arrays.totals["next_idle_check_s"] = self._join_models.next_look_s

    def add_pairs(self, elsewhere: JoinCounters) -> None:
        """Count the pairs of outcomes that were joined elsewhere."""
        for name in ("pairs_made", "pairs_labels_differ", "pairs_expired"):
            self.arrays.counters[name] += getattr(elsewhere, name)

    @property
    def counters(self) -> JoinCounters:
        """Counters so far."""
        counters = counters_of(self.arrays.counters, self.names, self._others)
        counters.predictions_resolved -= len(self._order) - self._order.assumed
        return counters

    def holdings(self) -> Holdings:
        """Return the numbers of predictions, labels and outcomes that the join holds now."""
        self._update_models()
        totals = self.arrays.totals[0]
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
            tiers={
                "memory": int(totals["used"]),
                "disk": 0 if self._overflow is None else self._overflow.entries(self),
            },
            oldest_ms=None if oldest < 0 else int(self.arrays.entries["record_ms"][oldest]),
        )

    @property
    def nbytes(self) -> int:
        """Number of bytes of the entries in use and of the hash table."""
        each = self.arrays.entries.itemsize + self.arrays.side.shape[1] * self.arrays.side.itemsize
        return self.arrays.slots.nbytes + int(self.arrays.totals["top"][0]) * each

    @property
    def shift(self) -> np.uint64:
        """64 minus the binary logarithm of the number of slots."""
        return shift_of(len(self.arrays.slots))

    @property
    def is_nearly_full(self) -> bool:
        """Return whether to grow now; otherwise the loop grows when it must, which can take long.

        Always false for a join with an overflow, which makes room itself between pieces of work.
        """
        return self._overflow is None and is_nearly_full(self.arrays)

    def with_more_room(self) -> Arrays:
        """Compute larger arrays without changing the join; may run in a thread while nothing is joined."""
        return grown(self.arrays)

    def use(self, arrays: Arrays) -> None:
        """Use the result of `with_more_room`; nothing may have been joined or written in between."""
        self.arrays = arrays

    def grow(self) -> None:
        """Make room in the hash table or for entries, whichever is full."""
        self.arrays = grown(self.arrays, 0)

    def _with_room(self, rows: Records) -> Records:
        """Make room for the activity of all model numbers, including those in these rows."""
        self.arrays = self._owners.refreshed(self.arrays, self.names)
        self.arrays = with_room_for_models(self.arrays, len(self.models.names))
        self.arrays = self._relations.refreshed(self.arrays, self.models)
        return rows
