"""Main loop of the compiled join: processes rows in order, and due entries between them."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot, inner, prefetch
from streamwatch.core.join.counters import EVICTIONS, PENDING
from streamwatch.core.join.folding import owner_of
from streamwatch.core.join.layout import (
    ACCEPTED,
    ADMITTED,
    EARLY_LABELS,
    LABEL,
    NO_TIME,
    PREDICTION,
    PREDICTIONS,
    REFUSED,
    RESOLVED_FROM,
    RETAINED_LABELS,
    UNDECIDED,
    WITHDRAWAL,
    Records,
)
from streamwatch.core.join.leaving import (
    NO_ROOM,
    NO_ROOM_FOR_PAIRS,
    NOTHING_DUE,
    expire,
    expire_labels,
)
from streamwatch.core.join.names import JoinNames
from streamwatch.core.join.pairing import most_pairs
from streamwatch.core.join.rules import (
    accept,
    find_in_chain,
    label_all,
    label_folds,
    label_named,
    mark_models,
    refuse,
    repeat,
    withdraw,
)
from streamwatch.core.join.table import find_slot, first_of, free_dead, likely_first, pass_dedup_time
from streamwatch.core.predictions.kind import PREDICTED, PredictionBatch, scores_of_classes
from streamwatch.core.records.outcomes import SEGMENTS_FROM

DONE, ADMIT_MODEL, CHECK_IDLE, TAKE_OUTCOMES, GROW, LOAD_OLDEST, ROOM_FOR_PAIRS = range(7)
"""Reasons for which the loop stopped.

DONE: no row is left. ADMIT_MODEL: it must be decided whether the model of the current row is
admitted. CHECK_IDLE: a model may be idle. TAKE_OUTCOMES: outcomes must be handed over, or many entries have
expired, more are due, and other tasks may run. GROW: there is no room for another entry. LOAD_OLDEST: the
oldest entries of a queue, or those of further ids, are outside the table and are needed. ROOM_FOR_PAIRS:
`pairs_needed` is more than there is room for, and no pairs are there to hand over.
"""

AHEAD = 12
"""Number of rows between prefetching a slot and using it."""
MOST_AHEAD = 4
"""Largest number of entries of an id whose neighbours in their queue are prefetched."""
FREED_PER_ROW = 4
"""Largest number of dead dedup entries freed per row."""
SECOND_MS = 1000


@hot
def look_ahead(t, rows, shift, r):
    """Prefetch what the rows after r will access: first their slots, then their entries.

    Of predictions that a label may resolve, also the entries beside them in their queue, from which they are
    taken out. Rows that follow one of the same id find everything there.
    """
    slots, entries, side, n = t.slots, t.entries, t.side, rows.shape[0]
    k = r + AHEAD
    if k < n and rows[k].low != rows[k - 1].low:
        prefetch(slots, 8 * np.int64(rows[k].low >> shift))
    k = r + AHEAD // 2
    if k < n and rows[k].low != rows[k - 1].low:
        first = likely_first(slots, rows[k].low, shift)
        if first >= 0:
            prefetch(entries, 64 * first)
            if side.shape[1] > 0:
                prefetch(side, 4 * side.shape[1] * first)
            if rows[k].side == LABEL:
                prefetch(t.log_positions, 8 * first)
    k = r + AHEAD // 4
    if k < n and rows[k].side == LABEL:
        first = likely_first(slots, rows[k].low, shift)
        if first >= 0:
            prefetch(entries, 64 * max(np.int64(entries[first].next), 0))
    k = r + AHEAD // 6
    if k < n and rows[k].side == LABEL:
        x = likely_first(slots, rows[k].low, shift)
        for _ in range(MOST_AHEAD):
            if x < 0:
                break
            e = entries[x]
            if e.state == PENDING:
                prefetch(entries, 64 * max(np.int64(e.earlier_or_generation), 0))
                prefetch(entries, 64 * max(np.int64(e.later), 0))
            x = np.int64(e.next)


@inner
def pass_time(t, shift, clock_ms, before_ms, room):
    """Process what is due at `clock_ms`; return why it stopped.

    `before_ms` is the record time of the row before. An expired prediction that becomes an outcome needs its
    partners in the table; those of predictions up to `partners_ms` are.
    """
    t.totals[0].needed = -1
    stopped = expire(t, shift, clock_ms // SECOND_MS, before_ms, room)
    if stopped == NOTHING_DUE:
        stopped = expire_labels(t, shift, clock_ms // SECOND_MS)
    if stopped != NOTHING_DUE:
        return stopped
    pass_dedup_time(t, clock_ms)
    t.totals[0].passed_ms = clock_ms
    return NOTHING_DUE


@inner
def queue_to_load(totals, limits, side):
    """Queue whose oldest entries must be loaded before a row that may evict them; -1 if none."""
    if side == PREDICTION:
        if totals.pending >= limits.max_pending and is_short(totals, PREDICTIONS):
            return PREDICTIONS
    elif totals.early + totals.retained >= limits.max_labels:
        for queue in (EARLY_LABELS, RETAINED_LABELS):
            if is_short(totals, queue):
                return queue
    return -1


@hot
def is_short(totals, queue):
    """Return whether a queue has entries outside, and fewer loaded ones than one row may evict."""
    return totals.cold[queue] > 0 and totals.front[queue] < EVICTIONS


@entry
def join_rows(t, rows, start, shift, room):
    """Join rows from `start` on; return (row at which it stopped, reason).

    Parameters
    ----------
    t
        `Arrays`; the counts of outcomes and discarded scores must be 0 unless continuing.
    rows
        Records `ROW`; `side` is changed for accepted predictions.
    start
        Row at which to start or continue.
    shift
        uint64: 64 minus the binary logarithm of the number of slots.
    room
        Number of outcomes and discarded scores at which the loop stops.
    """
    entries, slots, activity = t.entries, t.slots, t.activity
    totals = t.totals[0]
    full = slots.shape[0] // 8 * 5
    anything_cold = totals.cold[0] + totals.cold[1] + totals.cold[2] > 0
    numbered = t.limits[0].numbered > 0
    compares = t.limits[0].compares > 0
    folds = t.limits[0].folds > 0
    limit_ms = (totals.passed_ms // SECOND_MS + 1) * SECOND_MS
    chain = slot = end = np.int64(0)  # of the row before, if the models of its chain are marked
    for r in range(start, rows.shape[0]):
        look_ahead(t, rows, shift, r)
        row = rows[r]
        if row.record_ms >= limit_ms:
            stopped = pass_time(
                t, shift, row.record_ms, rows[r - 1].record_ms if r > 0 else totals.clock_ms, room
            )
            if stopped != NOTHING_DUE:
                if stopped == NO_ROOM_FOR_PAIRS:
                    return r, ROOM_FOR_PAIRS
                return r, TAKE_OUTCOMES if stopped == NO_ROOM else LOAD_OLDEST
            limit_ms = (totals.passed_ms // SECOND_MS + 1) * SECOND_MS
            chain = 0
            if row.record_ms // SECOND_MS >= totals.next_idle_check_s:
                return r, CHECK_IDLE
        if totals.outcomes + totals.discarded >= room:
            return r, TAKE_OUTCOMES
        if totals.dead_first >= 0:
            free_dead(slots, entries, totals, shift, FREED_PER_ROW)
            chain = 0
        if totals.chains >= full or (totals.free < 0 and totals.top >= entries.shape[0]):
            return r, GROW
        if row.side > WITHDRAWAL:
            chain = 0
            continue
        if anything_cold:
            needed = queue_to_load(totals, t.limits[0], row.side)
            if needed >= 0:
                totals.needed = needed
                return r, LOAD_OLDEST
        again = r > 0 and row.low == rows[r - 1].low and row.high == rows[r - 1].high
        if chain > 0 and again and row.side == PREDICTION:
            a = activity[row.model]
            if a.chain != chain and a["admission"] == ADMITTED and totals.pending < t.limits[0].max_pending:
                end = accept(t, shift, row, slot, -1, -1, end)
                a.chain = chain
                row.side = ACCEPTED
                continue
        marked = chain if again and row.side == PREDICTION else np.int64(0)
        chain = np.int64(0)
        i = find_slot(slots, entries, row.low, row.high, shift)
        first = first_of(slots[i])
        if compares:
            totals.pairs_needed = most_pairs(t, first, row.side == LABEL and (row.model < 0 or folds))
            if totals.pairs + totals.pairs_needed > t.pairs.shape[0]:
                return r, TAKE_OUTCOMES if totals.pairs > 0 else ROOM_FOR_PAIRS
        before = totals.outcomes
        if row.side == PREDICTION:
            own, early, bare, last = find_in_chain(t, first, row.model, owner_of(t, row.model))
            admission = activity[row.model]["admission"]
            if own >= 0:
                repeat(t, row, own)
                chain = marked  # no entry was added or removed
            elif admission == UNDECIDED:
                return r, ADMIT_MODEL
            elif admission == REFUSED:
                refuse(t, shift, row, i, early, bare, last)
            else:
                end = accept(t, shift, row, i, early, bare, last)
                row.side = ACCEPTED
                few = totals.pending < t.limits[0].max_pending and totals.dead_first < 0
                if again and few and early < 0 and bare < 0:
                    slot = i
                    chain = mark_models(t, first_of(slots[i]))
        elif row.side == LABEL:
            if row.model < 0:
                label_all(t, shift, row, i, first)
            elif folds:
                label_folds(t, shift, row, i, first)
            else:
                label_named(t, shift, row, i, first)
        else:
            withdraw(t, row, first)
        if numbered:
            for k in range(before, totals.outcomes):
                t.outcomes[k].assumed = RESOLVED_FROM + r
    if rows.shape[0] > 0:
        totals.clock_ms = rows[rows.shape[0] - 1].record_ms
    return rows.shape[0], DONE


# Accepted predictions of joined rows, as columns.


@entry
def put_accepted(rows, scores, start, stop, predicted):
    """Write the accepted predictions of rows `start` to `stop`; return their number.

    Parameters
    ----------
    rows
        Records `ROW`, (n,).
    scores
        Scores of the predicted classes, (n,), or (0,) if no prediction has scores.
    predicted
        Records `PREDICTED`, output, with room for all.
    """
    written = 0
    for r in range(start, stop):
        row = rows[r]
        if row.side != ACCEPTED:
            continue
        p = predicted[written]
        p.record_ms = row.record_ms
        p.event_ms = row.record_ms if row.timestamp_ms == NO_TIME else row.timestamp_ms
        p.score = scores[r] if scores.shape[0] > 0 else float("nan")
        p.model = row.model
        p["class"] = row["class"]
        for k in range(len(row.carried)):
            p.carried[k] = row.carried[k]
        written += 1
    return written


def predicted_scores(rows: Records, names: JoinNames) -> NDArray[np.float64]:
    """Look up the score of the predicted class of each row before it is joined, as `score_of` gives it.

    NaN for rows without one; empty if no prediction has scores. It must be called before the join, as scores
    are dropped once their prediction is resolved.
    """
    if not len(names.scores):
        return np.zeros(0)
    found = np.full(len(rows), np.nan)
    carried = rows["scores"]
    scored = np.flatnonzero((rows["side"] == PREDICTION) & (carried >= 0) & (carried < SEGMENTS_FROM))
    lists = names.scores.lists(carried[scored])
    found[scored] = scores_of_classes(lists, np.arange(len(scored)), rows["class"][scored])
    return found


def accepted_predictions(
    rows: Records, scores: NDArray[np.float64], start: int, stop: int, names: JoinNames
) -> PredictionBatch:
    """Put the accepted predictions of rows `start` to `stop` into columns."""
    records = np.empty(stop - start, PREDICTED)
    written = put_accepted(rows, scores, start, stop, records)
    return PredictionBatch(records[:written], names.models.names, names.classes.names)
