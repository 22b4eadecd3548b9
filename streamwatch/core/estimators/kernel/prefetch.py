"""Prefetching: with thousands of models, every outcome would otherwise wait for memory.

Three steps follow each other as addresses become known: 16 outcomes ahead the model's record, 8 ahead the
class rows and ring entries that its header points to, 4 ahead the class rows of outcomes that a window will
drop.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.forgetting.adwin import SMALL_WINDOW_BYTES
from streamwatch.core.estimators.forgetting.mechanisms import DEFERRED
from streamwatch.core.estimators.kernel.shadow import augmented_row, prior_row, transition_row
from streamwatch.core.estimators.memory.ring import position_of, predicted_class_of, true_class_of
from streamwatch.core.estimators.memory.totals import AGREED, FALSE, MISSED, N, columns_of
from streamwatch.core.estimators.verdicts.detector import LAST
from streamwatch.core.estimators.verdicts.opponents import MAJORITY, majority_column
from streamwatch.core.jit import hot, inner, prefetch

LINE = 64
NEAR_BYTES = 1 << 20
"""Size of all records of models up to which they stay in a core's cache, and nothing is prefetched."""
AHEAD = 16
"""Number of outcomes between prefetching a record and using it."""


@hot
def prefetch_counts(m, true_class, predicted_class, class_counts):
    """Prefetch the per-class counts that an outcome changes: one place for a hit, two for a miss."""
    width = 8 * class_counts.shape[1]
    part = 8 * columns_of(m)
    if true_class == predicted_class:
        prefetch_ends(class_counts, (m.class_counts + true_class) * width + AGREED * part, part)
    else:
        prefetch_ends(class_counts, (m.class_counts + true_class) * width + MISSED * part, part)
        prefetch_ends(class_counts, (m.class_counts + predicted_class) * width + FALSE * part, part)


@hot
def prefetch_ends(array, start, size):
    """Prefetch both ends of a few doubles, `size` bytes that may lie across a line's end."""
    prefetch(array, start)
    prefetch(array, start + size - 8)


@hot
def prefetch_label(class_counts, m, k):
    """Prefetch the count of a class for the majority opponent."""
    prefetch(class_counts, 8 * ((m.class_counts + k) * class_counts.shape[1] + majority_column(class_counts)))


@inner
def prefetch_entries(m, age, number, rings, row):
    """Prefetch `number` ring entries of age `age` and older."""
    for older in range(age, min(age + number, rings.shape[1]), LINE // rings.itemsize):
        prefetch(rings, rings.itemsize * (row * rings.shape[1] + position_of(m.head, older, rings.shape[1])))


@hot
def prefetch_shadows(m, s, predicted_class, shadows):
    """Prefetch the rows of shadow counts that an outcome reads and changes."""
    prior = 8 * prior_row(s)
    transition = 8 * transition_row(s, m.last)
    augmented = 8 * augmented_row(s, m.last, predicted_class)
    for offset in range(0, 8 * (s.span + 1) + LINE, LINE):
        prefetch(shadows, prior + offset)
        prefetch(shadows, transition + offset)
        prefetch(shadows, augmented + offset)


@hot
def prefetch_verdicts(models, class_counts, m, p, row, true_class, predicted_class):
    """Prefetch what the outcome notes for verdicts, and verdict records if steps are likely to be taken.

    Those are the records of all opponents if deferred steps are likely to be due, and where none are deferred
    the records likely to change. To guess that, the opponent's answer is taken to be the leading class for
    the majority and the previous label for all others.
    """
    for k in range(len(m.waiting)):
        w = m.waiting[k]
        prefetch_label(class_counts, m, true_class)
        prefetch_label(class_counts, m, m.labels[k].leader - 1)
        start = row * models.itemsize
        if w.answering != 0:
            prefetch(models, start + p.times_start + 8 * (m.outcomes - w.settled))
            due = m.outcomes + 2 >= w.due
            if not due and w.noted + 1 >= w.full:
                for j in range(len(m.verdicts)):
                    due |= may_differ(m, p, j, true_class, predicted_class)
            if due:
                prefetch(models, start + p.pace_start)
                for j in range(len(m.verdicts)):
                    if (w.answering >> p.opponents[j].kind) & 1:
                        prefetch_record(models, start + p.verdict_start + j * p.verdict_bytes, p)
        else:
            for j in range(len(m.verdicts)):
                if may_differ(m, p, j, true_class, predicted_class):
                    prefetch_record(models, start + p.verdict_start + j * p.verdict_bytes, p)


@hot
def prefetch_record(models, start, p):
    """Prefetch the record of a verdict that starts at a byte of `models`."""
    for offset in range(0, p.verdict_bytes, LINE):
        prefetch(models, start + offset)


@hot
def may_differ(m, p, j, true_class, predicted_class):
    """Guess whether this opponent's step changes its verdict record: the lead is not 0, or a block ends."""
    answer = m.labels[0].leader - 1 if p.opponents[j].kind == MAJORITY else m.last
    return (predicted_class == true_class) != (answer == true_class) or (m.pace[j].steps & LAST) == LAST


@hot
def prefetch_ahead(models, class_counts, rings, shadows, p, rows, true_class, predicted_class, i):
    """Prefetch what the outcomes after position i will access."""
    n = rows.shape[0]
    if i + AHEAD < n:
        start = rows[i + AHEAD] * models.itemsize
        for offset in range(0, p.hot_bytes, LINE):
            prefetch(models, start + offset)
        for j in range(len(p.windows)):
            prefetch(models, start + p.windows_start + j * p.window_bytes)
    if i + 8 < n:
        row = rows[i + 8]
        m = models[row]
        prefetch_counts(m, true_class[i + 8], predicted_class[i + 8], class_counts)
        prefetch(rings, rings.itemsize * (row * rings.shape[1] + m.head))
        for j in range(len(m.shadow)):
            prefetch_shadows(m, m.shadow[j], predicted_class[i + 8], shadows)
        prefetch_verdicts(models, class_counts, m, p, row, true_class[i + 8], predicted_class[i + 8])
        for j in range(len(p.sliding)):
            gathered = int(m.totals[N, len(m.fading) + j]) - p.sliding[j].size
            if gathered + 1 == DEFERRED:
                prefetch_entries(m, p.sliding[j].size - 1, DEFERRED, rings, row)
        for j in range(len(m.windows)):
            if m.pending[j] + 1 == p.windows[j].clock:  # a check is due: its buckets, and outcomes to enter
                start = row * models.itemsize + p.windows_start + j * p.window_bytes
                for offset in range(0, SMALL_WINDOW_BYTES, LINE):
                    prefetch(models, start + offset)
                prefetch_entries(m, 0, m.pending[j], rings, row)
    if i + 4 < n:
        row = rows[i + 4]
        m = models[row]
        for j in range(len(p.sliding)):
            gathered = int(m.totals[N, len(m.fading) + j]) - p.sliding[j].size
            if gathered + 1 == DEFERRED:
                for age in range(p.sliding[j].size - 1, p.sliding[j].size - 1 + DEFERRED):
                    entry = rings[row, position_of(m.head, age, rings.shape[1])]
                    prefetch_counts(m, true_class_of(entry), predicted_class_of(entry), class_counts)
