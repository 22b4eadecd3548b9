"""Rules of the join: effect of an event on the entries of its id.

For one pair of id and model the first prediction counts (or as set by `JoinSpec.conflicts`), and the first
label, whether it named the model or not. A label without a model is counted once per record, by the first
prediction it meets; where it meets those of several models at once, as the first that applies of: joined,
corrected, duplicate, late, unusable (withdrawn, evicted, over limit). Every function here is compiled into
the loop that calls it.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import hot, inner
from streamwatch.core.join.counters import (
    DUPLICATE,
    EARLY,
    EVICTIONS,
    JOINED,
    ORPHAN,
    OVER_LIMIT,
    PENDING,
    RESULT_BY_STATE,
    RETAINED,
    UNMATCHED,
    WITHDRAWN,
)
from streamwatch.core.join.folding import owner_of
from streamwatch.core.join.layout import (
    BOTH,
    EARLY_LABELS,
    FIRST,
    LABEL_COLUMNS,
    MATCHED,
    NO_TIME,
    NUMBER_BITS,
    POSITION_MASK,
    PREDICTIONS,
    PREDICTIONS_ACCEPTED,
    RETAINED_LABELS,
    WITH_MODEL,
    WITHOUT_MODEL,
)
from streamwatch.core.join.leaving import (
    count,
    count_in,
    count_never_matched,
    discard_scores,
    end_without_label,
    evict_labels,
    evict_prediction,
    note_change,
    own_time,
    remove_label,
    resolve,
    stop_waiting,
)
from streamwatch.core.join.table import (
    add_dedup_entry,
    allocate_entry,
    append,
    enqueue,
    first_of,
    is_alive,
)

ACCEPTED_LABELS = LABEL_COLUMNS.index("accepted")
_RESULTS = np.array(RESULT_BY_STATE, np.int64)


@hot
def result_of(e, true_class):
    """Return the result of a label that meets an entry, see `counters.RESULT_BY_STATE`."""
    result = _RESULTS[e.state]
    if result == DUPLICATE and e.true_or_scores != true_class:
        return DUPLICATE - 1
    return result


@hot
def find_in_chain(t, first, model, owner):
    """Find the entry of (id, model), its waiting label, the label for all models, and the end of the chain.

    Returns -1 for each that does not exist. The first is a prediction or a dedup entry. The waiting label of
    a fold is that of its model, the `owner`; any other model owns itself.
    """
    own = early = bare = last = -1
    x = first
    while x >= 0:
        e = t.entries[x]
        if e.model < 0:
            bare = x
        elif e.state in (EARLY, RETAINED):
            if e.model == owner:
                early = x
        elif e.model == model and (e.state == PENDING or is_alive(t.totals[0], e)):
            own = x
        last = x
        x = np.int64(e.next)
    return own, early, bare, last


LONG_CHAIN = 8
"""Number of entries from which on marking the models of a chain pays, if rows of one id follow each other."""


@inner
def mark_models(t, first):
    """Mark the models with an entry in a chain; return the chain's number, 0 if it is short or has labels.

    Where that many models predict an id in consecutive rows, marks save a walk along the chain for each.
    """
    length = 0
    x = first
    while x >= 0:
        e = t.entries[x]
        if e.model < 0 or e.state in (EARLY, RETAINED):
            return 0
        length += 1
        x = np.int64(e.next)
    if length < LONG_CHAIN:
        return 0
    t.totals[0].marked_chains += 1
    x = first
    while x >= 0:
        t.activity[t.entries[x].model].chain = t.totals[0].marked_chains
        x = np.int64(t.entries[x].next)
    return t.totals[0].marked_chains


@hot
def new_entry(t, i, last, row, timestamp_ms, state):
    """Append a new entry for a row to a chain."""
    x = allocate_entry(t.entries, t.totals[0])
    e = t.entries[x]
    e.low = row.low
    e.high = row.high
    e.record_ms = row.record_ms
    e.timestamp_ms = timestamp_ms
    e.model = row.model
    e.predicted_class = -1
    e.true_or_scores = -1
    e.label_at_prediction = -1
    e.state = state
    e.topic = row.topic
    append(t.slots, t.entries, t.totals[0], i, last, x)
    return x


@hot
def record_match(t, bare, result):
    """Record that a label without a model matched a prediction; only the first time is counted."""
    if t.entries[bare].state == UNMATCHED:
        t.entries[bare].state = RETAINED
        position = t.log_positions[bare]
        if position < 0:
            t.guests[-1 - position] = MATCHED
            t.totals[0].cold_unmatched -= 1
        elif position & POSITION_MASK != 0:
            t.obsolete_positions[t.totals[0].obsolete] = -position
            t.totals[0].obsolete += 1
        t.totals[0].unmatched -= 1
        count(t.counters[0], WITHOUT_MODEL, t.entries[bare].topic, result)


@inner
def take_early(t, shift, early, result):
    """Remove a label with a model whose prediction has arrived."""
    t.totals[0].early -= 1
    count(t.counters[0], WITH_MODEL, t.entries[early].topic, result)
    remove_label(t, shift, EARLY_LABELS, early)


@inner
def refuse(t, shift, row, i, early, bare, last):
    """Refuse a prediction of a model over the limit."""
    t.counters[0].models_over_limit += 1
    discard_scores(t, row.scores)
    x = new_entry(t, i, last, row, NO_TIME, OVER_LIMIT)
    t.entries[x].predicted_class = row["class"]
    add_dedup_entry(t, x, OVER_LIMIT, row.record_ms)
    if early >= 0 and t.entries[early].state == EARLY and t.entries[early].model == row.model:
        take_early(t, shift, early, OVER_LIMIT)
    if bare >= 0:
        record_match(t, bare, OVER_LIMIT)


@hot
def note_prediction(a, row):
    """Note the time of a model's prediction."""
    a.last_ms = max(a.last_ms, row.record_ms)
    a.last_event_ms = max(a.last_event_ms, min(own_time(row.record_ms, row.timestamp_ms), row.record_ms))


@hot
def carry(t, x, row):
    """Write the `carried` numbers of a prediction's row to the side columns of its entry x."""
    columns = t.limits[0].carried
    for k in range(len(columns)):
        if columns[k] >= 0:
            t.side[x, columns[k]] = row.carried[k]


@inner
def repeat(t, row, own):
    """Process a further prediction of an id and model.

    It repeats the class that counts so far (while a prediction waits under `both`, the class predicted last),
    or is in conflict with it.

    With `join.conflicts: last`, a conflicting one replaces a pending one: its class, scores,
    segments, sampling and own time count, and the label known when it arrived. The record time stays
    that of the first, and with it the deadline: a model that predicts again and again would otherwise never
    have a prediction expire. The topic stays, too, as a prediction is counted on one topic only. With `both`
    the first one counts, and only the class of the later one is kept, beside it.
    """
    e, limits, counters = t.entries[own], t.limits[0], t.counters[0]
    pending = e.state == PENDING
    stands = e.predicted_class
    if pending and limits.last_class >= 0 and t.side[own, limits.last_class] > 0:
        stands = np.int32(t.side[own, limits.last_class] - 1)
    if stands == row["class"]:
        counters.predictions_duplicate += 1
        discard_scores(t, row.scores)
        return
    counters.predictions_conflict += 1
    if not pending or limits.conflicts == FIRST:
        discard_scores(t, row.scores)
        return
    a = t.activity[row.model]
    note_prediction(a, row)
    if limits.conflicts == BOTH:
        t.side[own, limits.last_class] = row["class"] + 1
        discard_scores(t, row.scores)
    else:
        discard_scores(t, e.true_or_scores)
        e.predicted_class = row["class"]
        e.true_or_scores = row.scores
        e.timestamp_ms = own_time(row.record_ms, row.timestamp_ms)
        e.label_at_prediction = a.last_label
        carry(t, own, row)
    note_change(t, own)


@hot
def accept(t, shift, row, i, early, bare, last):
    """Accept a prediction: it waits, or is resolved by a label received before; return its entry."""
    totals, counters = t.totals[0], t.counters[0]
    entries, record_ms = t.entries, row.record_ms
    a = t.activity[row.model]
    counters.predictions_accepted += 1
    counters.topics[row.topic, PREDICTIONS_ACCEPTED] += 1
    totals.pending += 1
    a.pending += 1
    note_prediction(a, row)
    if row.topic > 0:
        a.topic = row.topic
    x = new_entry(t, i, last, row, row.timestamp_ms, PENDING)
    e = entries[x]
    e.predicted_class = row["class"]
    e.true_or_scores = row.scores
    e.label_at_prediction = a.last_label
    for column in range(t.side.shape[1]):
        t.side[x, column] = 0
    carry(t, x, row)
    if t.limits[0].numbered:
        e.label_at_prediction = counters.predictions_accepted & NUMBER_BITS
    first = first_of(t.slots[i])
    if early >= 0:
        true_class = entries[early].true_or_scores
        label_ms = own_time(entries[early].record_ms, entries[early].timestamp_ms)
        resolve(t, x, first, true_class, label_ms, record_ms, entries[early].topic)
        if entries[early].state == EARLY:
            label_model = entries[early].model
            take_early(t, shift, early, JOINED)
            if label_model != row.model:
                keep_for_folds(t, shift, row, i, x, label_model, true_class, label_ms)
        if bare >= 0:
            record_match(t, bare, result_of(entries[bare], true_class))
    elif bare >= 0:
        label_ms = own_time(entries[bare].record_ms, entries[bare].timestamp_ms)
        resolve(t, x, first, entries[bare].true_or_scores, label_ms, record_ms, entries[bare].topic)
        record_match(t, bare, JOINED)
    else:
        enqueue(t.entries, t.totals[0], PREDICTIONS, x)
    for _ in range(min(EVICTIONS, totals.pending - t.limits[0].max_pending)):
        evict_prediction(t, record_ms)
    return x


@hot
def hold_label(t, shift, row, i, last, form, state):
    """Keep a label for later predictions."""
    totals, limits = t.totals[0], t.limits[0]
    if state != RETAINED:
        if not limits.retain_unmatched:
            count_never_matched(t, form, row.topic, row.record_ms)
            return
        t.counters[0].labels_early += 1
    x = new_entry(t, i, last, row, row.timestamp_ms, state)
    t.entries[x].true_or_scores = row["class"]
    if form == WITH_MODEL:
        totals.early += 1
        enqueue(t.entries, t.totals[0], EARLY_LABELS, x)
    else:
        totals.retained += 1
        totals.unmatched += state == UNMATCHED
        enqueue(t.entries, t.totals[0], RETAINED_LABELS, x)
    if totals.early + totals.retained > limits.max_labels:
        evict_labels(t, shift)


@hot
def label_named(t, shift, row, i, first):
    """Process a label with a model."""
    entries, counters = t.entries, t.counters[0]
    count_in(counters, WITH_MODEL, row.topic, ACCEPTED_LABELS)
    own, early, bare, last = find_in_chain(t, first, row.model, row.model)
    existing = own if own >= 0 else early if early >= 0 else bare
    if existing < 0:
        hold_label(t, shift, row, i, last, WITH_MODEL, EARLY)
        return
    result = result_of(entries[existing], row["class"])
    count(counters, WITH_MODEL, row.topic, result)
    if result == JOINED:
        stop_waiting(t, PREDICTIONS, own)
        label_ms = own_time(row.record_ms, row.timestamp_ms)
        resolve(t, own, first, row["class"], label_ms, row.record_ms, row.topic)


@inner
def keep_for_folds(t, shift, row, i, last, model, true_class, label_ms):
    """Keep a label that was met by a fold of its model for the model's other folds."""
    totals = t.totals[0]
    x = new_entry(t, i, last, row, label_ms, RETAINED)
    t.entries[x].model = model
    t.entries[x].true_or_scores = true_class
    t.entries[x].topic = 0
    totals.retained += 1
    enqueue(t.entries, t.totals[0], RETAINED_LABELS, x)
    if totals.early + totals.retained > t.limits[0].max_labels:
        evict_labels(t, shift)


@inner
def label_folds(t, shift, row, i, first):
    """Process a label with a model that may predict in folds."""
    entries, totals, counters = t.entries, t.totals[0], t.counters[0]
    count_in(counters, WITH_MODEL, row.topic, ACCEPTED_LABELS)
    label_ms = own_time(row.record_ms, row.timestamp_ms)
    result = ORPHAN
    folded = False
    last = -1
    x = first
    while x >= 0:
        e = entries[x]
        if e.model >= 0 and e.state not in (EARLY, RETAINED) and t.owners[e.model] == row.model:
            if e.state == PENDING:
                result = JOINED
                folded = folded or e.model != row.model
                stop_waiting(t, PREDICTIONS, x)
                resolve(t, x, first, row["class"], label_ms, row.record_ms, row.topic)
            elif is_alive(totals, e):
                result = min(result, result_of(e, row["class"]))
        last = x
        x = np.int64(e.next)
    if result == ORPHAN:
        _, early, bare, _ = find_in_chain(t, first, row.model, row.model)
        existing = early if early >= 0 else bare
        if existing < 0:
            hold_label(t, shift, row, i, last, WITH_MODEL, EARLY)
            return
        result = result_of(entries[existing], row["class"])
    count(counters, WITH_MODEL, row.topic, result)
    if folded:
        keep_for_folds(t, shift, row, i, last, row.model, row["class"], label_ms)


@hot
def label_all(t, shift, row, i, first):
    """Process a label without a model."""
    entries, totals, counters = t.entries, t.totals[0], t.counters[0]
    count_in(counters, WITHOUT_MODEL, row.topic, ACCEPTED_LABELS)
    result = ORPHAN
    last = -1
    x = first
    while x >= 0:
        e = entries[x]
        if e.state in (UNMATCHED, RETAINED) and e.model < 0:
            count(counters, WITHOUT_MODEL, row.topic, result_of(e, row["class"]))
            return
        if e.state == PENDING:
            result = JOINED
            stop_waiting(t, PREDICTIONS, x)
            label_ms = own_time(row.record_ms, row.timestamp_ms)
            resolve(t, x, first, row["class"], label_ms, row.record_ms, row.topic)
        elif e.state not in (EARLY, RETAINED) and is_alive(totals, e):
            result = min(result, result_of(e, row["class"]))
        last = x
        x = np.int64(e.next)
    if result == ORPHAN:
        hold_label(t, shift, row, i, last, WITHOUT_MODEL, UNMATCHED)
    else:
        count(counters, WITHOUT_MODEL, row.topic, result)
        hold_label(t, shift, row, i, last, WITHOUT_MODEL, RETAINED)


@inner
def withdraw(t, row, first):
    """Withdraw the pending predictions of an id, of one model or of all."""
    x = first
    while x >= 0:
        e = t.entries[x]
        if e.state == PENDING and (row.model < 0 or row.model == owner_of(t, e.model)):
            discard_scores(t, e.true_or_scores)
            end_without_label(t, x, WITHDRAWN, row.record_ms)
            t.counters[0].predictions_withdrawn += 1
        x = np.int64(e.next)
