"""Ways in which predictions and labels stop waiting: resolved, expired, evicted, or dropped."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import hot, inner
from streamwatch.core.join.counters import (
    COUNTED_AS,
    EVICTED,
    EVICTIONS,
    EXPIRED,
    RESOLVED,
    UNMATCHED,
)
from streamwatch.core.join.folding import share_stream
from streamwatch.core.join.layout import (
    CHANGED,
    EARLY_LABELS,
    FRONT,
    GONE,
    LABEL_COLUMNS,
    NO_TIME,
    PARTNERS,
    POSITION_MASK,
    PREDICTIONS,
    PREDICTIONS_JOINED,
    RETAINED_LABELS,
    REVISED,
    UNWRITTEN,
    WITH_MODEL,
    WITHOUT_MODEL,
)
from streamwatch.core.join.pairing import meet, most_pairs
from streamwatch.core.join.table import (
    add_dedup_entry,
    deadline,
    dequeue,
    find_slot,
    first_of,
    free_entry,
    made_by,
    unchain,
)
from streamwatch.core.records.outcomes import SEGMENTS_FROM

NOTHING_DUE, NO_ROOM, NEEDS_OLDEST, NO_ROOM_FOR_PAIRS = range(4)
"""Reasons for which processing of due entries stops.

NOTHING_DUE: all due entries are processed; NO_ROOM: outcomes must be handed over first, or `DUE_AT_ONCE`
entries expired; NEEDS_OLDEST: the oldest entries, or the partners of those that fall due, are outside the
table; NO_ROOM_FOR_PAIRS: more room for pairs must be made.
"""
DUE_AT_ONCE = 8_192
"""Number of predictions, or of labels, that expire before other tasks may run: about a millisecond."""
ORPHANED = LABEL_COLUMNS.index("orphaned")
DROPPED = LABEL_COLUMNS.index("evicted")
BEFORE_START = LABEL_COLUMNS.index("before_start")
_FIRST_RESULT = min(COUNTED_AS)
_COLUMNS = np.array(
    [
        LABEL_COLUMNS.index(COUNTED_AS.get(result, "accepted"))
        for result in range(_FIRST_RESULT, max(COUNTED_AS) + 1)
    ],
    np.int64,
)


@hot
def count(counters, form, topic, result):
    """Count a label by its result, in the counter that `counters.COUNTED_AS` names."""
    count_in(counters, form, topic, _COLUMNS[result - _FIRST_RESULT])


@hot
def count_in(counters, form, topic, column):
    """Count a label in one of `LABEL_COLUMNS`, by form and by topic."""
    counters.labels[form, column] += 1
    counters.topics[topic, column] += 1


@hot
def own_time(record_ms, timestamp_ms):
    """Time of an event: its own if it has one, otherwise its record's."""
    return record_ms if timestamp_ms == NO_TIME else timestamp_ms


@hot
def discard_scores(t, scores):
    """Note that these scores are not needed any more; segment numbers are shared and not noted."""
    if 0 <= scores < SEGMENTS_FROM:
        t.discarded[t.totals[0].discarded] = scores
        t.totals[0].discarded += 1


@hot
def mark_obsolete(t, x):
    """Note that the values a commit, or a run, has of entry x are obsolete, if there are any."""
    position = t.log_positions[x]
    if position < 0:
        t.guests[-1 - position] = GONE
    elif position & POSITION_MASK != 0:
        t.obsolete_positions[t.totals[0].obsolete] = position
        t.totals[0].obsolete += 1
    if position != UNWRITTEN:
        t.log_positions[x] = UNWRITTEN


@hot
def note_change(t, x):
    """Note that pending prediction x differs from the values a commit, or a run, has of it, if any."""
    position = t.log_positions[x]
    if position < 0:
        t.guests[-1 - position] = REVISED
    elif position & POSITION_MASK != 0 and position & CHANGED == 0:
        t.log_positions[x] = position | CHANGED
        t.changed[t.totals[0].changed] = x
        t.totals[0].changed += 1


@hot
def stop_waiting(t, queue, x):
    """Remove an entry from its queue (guests are in none); must be called before `mark_obsolete`."""
    position = t.log_positions[x]
    if position < 0:
        t.totals[0].cold[queue] -= 1
    else:
        if position >= FRONT:
            t.totals[0].front[queue] -= 1
        dequeue(t.entries, t.totals[0], queue, x)


@hot
def is_first(totals, queue):
    """Return whether the first entry of a queue in the table is older than all of the queue outside it."""
    return totals.cold[queue] == 0 or totals.front[queue] > 0


@hot
def write_outcome(t, x, true_class, event_ms, delay_ms, assumed, clock_ms):
    """Append an outcome, for which there must be room; `clock_ms` as in `TIMING`.

    An assumed one is resolved at its deadline, `event_ms`.
    """
    totals = t.totals[0]
    e = t.entries[x]
    a = t.activity[e.model]
    o = t.outcomes[totals.outcomes]
    o.low = e.low
    o.high = e.high
    o.event_ms = event_ms
    o.delay_ms = delay_ms
    o.resolved_ms = event_ms if assumed else clock_ms
    o.waited_ms = o.resolved_ms - e.record_ms
    o.made = made_by(a)
    o.model = e.model
    o.true_class = true_class
    o.predicted_class = e.predicted_class
    o.label_at_prediction = e.label_at_prediction
    o.scores = e.true_or_scores
    o.assumed = assumed
    last_class = t.limits[0].last_class
    o.last_class = t.side[x, last_class] if last_class >= 0 else 0
    columns = t.limits[0].carried
    for k in range(len(columns)):
        o.carried[k] = t.side[x, columns[k]] if columns[k] >= 0 else 0
    if t.timing.shape[0] > 0:
        times = t.timing[totals.outcomes]
        times.prediction_ms = own_time(e.record_ms, e.timestamp_ms)
        times.clock_ms = clock_ms
    totals.outcomes += 1


@hot
def resolve(t, x, first, true_class, label_ms, record_ms, label_topic):
    """Resolve a pending prediction, already out of its queue, by its label.

    `first` is the first entry of its chain; `label_topic` the number of the label's topic, 0 if unknown.
    """
    totals, counters = t.totals[0], t.counters[0]
    e = t.entries[x]
    a = t.activity[e.model]
    a.pending -= 1
    a.joined += 1
    totals.pending -= 1
    delay_ms = label_ms - own_time(e.record_ms, e.timestamp_ms)
    if delay_ms < 0:
        counters.labels_negative_delay += 1
        delay_ms = 0
    if t.limits[0].compares:
        meet(t, x, first, true_class)
    write_outcome(t, x, true_class, label_ms, delay_ms, 0, record_ms)
    if t.limits[0].shares_stream:
        share_stream(t, x, true_class)
    a.last_label = true_class
    if label_topic > 0:
        a.label_topic = label_topic
    counters.predictions_resolved += 1
    counters.topics[e.topic, PREDICTIONS_JOINED] += 1
    e.true_or_scores = true_class
    mark_obsolete(t, x)
    add_dedup_entry(t, x, RESOLVED, record_ms)


@inner
def end_without_label(t, x, state, record_ms):
    """Make a pending prediction that ends without a label a dedup entry with this state."""
    totals = t.totals[0]
    e = t.entries[x]
    a = t.activity[e.model]
    a.pending -= 1
    a.left += 1
    totals.pending -= 1
    stop_waiting(t, PREDICTIONS, x)
    e.true_or_scores = -1
    mark_obsolete(t, x)
    add_dedup_entry(t, x, state, record_ms)


@inner
def count_never_matched(t, form, topic, record_ms):
    """Count a label that never matched.

    It is orphaned unless its prediction may be older than the start.
    """
    limits = t.limits[0]
    unread = limits.start_ms != NO_TIME and record_ms < limits.start_ms + limits.horizon_ms
    count_in(t.counters[0], form, topic, BEFORE_START if unread else ORPHANED)


@inner
def remove_label(t, shift, queue, x):
    """Remove a waiting label."""
    stop_waiting(t, queue, x)
    mark_obsolete(t, x)
    unchain(t.slots, t.entries, t.totals[0], x, shift)
    free_entry(t.entries, t.totals[0], x)


@inner
def evict_labels(t, shift):
    """Evict the oldest labels beyond the limit."""
    totals, counters = t.totals[0], t.counters[0]
    for _ in range(min(EVICTIONS, totals.early + totals.retained - t.limits[0].max_labels)):
        early, kept = totals.first[EARLY_LABELS], totals.first[RETAINED_LABELS]
        if early >= 0 and (kept < 0 or t.entries[early].record_ms < t.entries[kept].record_ms):
            totals.early -= 1
            count_in(counters, WITH_MODEL, t.entries[early].topic, DROPPED)
            remove_label(t, shift, EARLY_LABELS, early)
        elif kept >= 0:
            totals.retained -= 1
            if t.entries[kept].state == UNMATCHED:
                totals.unmatched -= 1
                count_in(counters, WITHOUT_MODEL, t.entries[kept].topic, DROPPED)
            else:
                counters.labels_retained_evicted += 1
            remove_label(t, shift, RETAINED_LABELS, kept)


@inner
def evict_prediction(t, record_ms):
    """Evict the prediction that would expire first."""
    x = t.totals[0].first[PREDICTIONS]
    if x >= 0:
        discard_scores(t, t.entries[x].true_or_scores)
        end_without_label(t, x, EVICTED, record_ms)
        t.counters[0].predictions_evicted += 1


@inner
def expire(t, shift, limit_s, before_ms, room):
    """Expire due predictions, some at a time and while there is room for outcomes; return why it stopped.

    `limit_s` is the clock in seconds; `before_ms` the record time of the row before.
    """
    totals, counters, limits = t.totals[0], t.counters[0], t.limits[0]
    expired = 0
    while True:
        if not is_first(totals, PREDICTIONS):
            if deadline(totals.cold_ms[PREDICTIONS], limits.horizon_ms) > limit_s:
                return NOTHING_DUE
            totals.needed = PREDICTIONS
            return NEEDS_OLDEST
        x = totals.first[PREDICTIONS]
        if x < 0:
            return NOTHING_DUE
        e = t.entries[x]
        deadline_s = deadline(e.record_ms, limits.horizon_ms)
        if deadline_s > limit_s:
            return NOTHING_DUE
        if totals.outcomes + totals.discarded >= room or expired == DUE_AT_ONCE:
            return NO_ROOM
        expired += 1
        if limits.assume >= 0:
            if limits.compares:
                if e.record_ms > totals.partners_ms:
                    totals.needed = PARTNERS
                    return NEEDS_OLDEST
                first = first_of(t.slots[find_slot(t.slots, t.entries, e.low, e.high, shift)])
                totals.pairs_needed = most_pairs(t, first, False)
                if totals.pairs + totals.pairs_needed > t.pairs.shape[0]:
                    return NO_ROOM if totals.pairs > 0 else NO_ROOM_FOR_PAIRS
                meet(t, x, first, limits.assume)
            counters.outcomes_assumed += 1
            delay_ms = max(0, deadline_s * 1000 - own_time(e.record_ms, e.timestamp_ms))
            write_outcome(t, x, limits.assume, deadline_s * 1000, delay_ms, 1, before_ms)
            if limits.shares_stream:
                share_stream(t, x, limits.assume)
        else:
            discard_scores(t, e.true_or_scores)
        counters.predictions_expired += 1
        end_without_label(t, x, EXPIRED, deadline_s * 1000)
        t.entries[x].true_or_scores = limits.assume  # pairs need the class that was assumed


@hot
def labels_fall_due(t, queue, horizon_ms, limit_s):
    """Return whether the first label of a queue is due; if it must be loaded first, set `needed`."""
    totals = t.totals[0]
    if not is_first(totals, queue):
        if deadline(totals.cold_ms[queue], horizon_ms) <= limit_s:
            totals.needed = queue
        return False
    x = totals.first[queue]
    return x >= 0 and deadline(t.entries[x].record_ms, horizon_ms) <= limit_s


@inner
def expire_labels(t, shift, limit_s):
    """Expire due labels, some at a time; return why it stopped."""
    totals, limits = t.totals[0], t.limits[0]
    expired = 0
    while labels_fall_due(t, EARLY_LABELS, limits.early_horizon_ms, limit_s):
        if expired == DUE_AT_ONCE:
            return NO_ROOM
        expired += 1
        x = totals.first[EARLY_LABELS]
        totals.early -= 1
        count_never_matched(t, WITH_MODEL, t.entries[x].topic, t.entries[x].record_ms)
        remove_label(t, shift, EARLY_LABELS, x)
    if totals.needed >= 0:
        return NEEDS_OLDEST
    while labels_fall_due(t, RETAINED_LABELS, limits.horizon_ms, limit_s):
        if expired == DUE_AT_ONCE:
            return NO_ROOM
        expired += 1
        x = totals.first[RETAINED_LABELS]
        totals.retained -= 1
        if t.entries[x].state == UNMATCHED:
            totals.unmatched -= 1
            count_never_matched(t, WITHOUT_MODEL, t.entries[x].topic, t.entries[x].record_ms)
        remove_label(t, shift, RETAINED_LABELS, x)
    return NOTHING_DUE if totals.needed < 0 else NEEDS_OLDEST
