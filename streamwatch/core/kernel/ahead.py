"""Bringing in memory before it is needed: with thousands of models every outcome would wait for it.

In three steps, as addresses become known: 16 outcomes ahead the model's record, 8 ahead the class rows and
ring entries its header points to, 4 ahead the class rows of outcomes a window will drop.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.kernel.adwin import SMALL_WINDOW_BYTES
from streamwatch.core.kernel.compiled import hot, inner, prefetch
from streamwatch.core.kernel.forgetting import DEFERRED
from streamwatch.core.kernel.ring import position_of, predicted_of, truth_of
from streamwatch.core.kernel.shadow import augmented_row, prior_row, transition_row
from streamwatch.core.kernel.totals import AGREED, FALSE, MISSED, N, columns_of

LINE = 64
AHEAD = 16
"""Outcomes between asking for a record and needing it."""


@hot
def counts_of(m, truth, predicted, cells):
    """Bring in the per-class counts an outcome adds to: one place for a hit, two for a miss."""
    width = 8 * cells.shape[1]
    part = 8 * columns_of(m)
    if truth == predicted:
        prefetch(cells, (m.cells + truth) * width + AGREED * part)
    else:
        prefetch(cells, (m.cells + truth) * width + MISSED * part)
        prefetch(cells, (m.cells + predicted) * width + FALSE * part)


@inner
def entries_of(m, age, number, rings, row):
    """Bring in the ring entries of this age and older."""
    for older in range(age, min(age + number, rings.shape[1]), LINE // rings.itemsize):
        prefetch(rings, rings.itemsize * (row * rings.shape[1] + position_of(m.head, older, rings.shape[1])))


@hot
def shadow_of(m, s, truth, predicted, shadows):
    """Bring in the rows of shadow counts an outcome reads and adds to."""
    prefetch(shadows, 8 * (prior_row(s) + truth))
    transition = 8 * transition_row(s, m.last)
    augmented = 8 * augmented_row(s, m.last, predicted)
    for offset in range(0, 8 * (s.span + 1) + LINE, LINE):
        prefetch(shadows, transition + offset)
        prefetch(shadows, augmented + offset)


@hot
def look_ahead(models, cells, rings, shadows, p, rows, truth, predicted, i):
    """Bring in what the outcomes after position i will touch."""
    n = rows.shape[0]
    if i + AHEAD < n:
        start = rows[i + AHEAD] * models.itemsize
        for offset in range(0, p.hot_bytes, LINE):
            prefetch(models, start + offset)
    if i + 8 < n:
        row = rows[i + 8]
        m = models[row]
        counts_of(m, truth[i + 8], predicted[i + 8], cells)
        prefetch(rings, rings.itemsize * (row * rings.shape[1] + m.head))
        for j in range(len(m.shadow)):
            shadow_of(m, m.shadow[j], truth[i + 8], predicted[i + 8], shadows)
        for j in range(len(p.sliding)):
            gathered = int(m.totals[N, len(m.fading) + j]) - p.sliding[j].size
            if gathered + 1 == DEFERRED:
                entries_of(m, p.sliding[j].size - 1, DEFERRED, rings, row)
        for j in range(len(m.windows)):
            if m.pending[j] + 1 == p.windows[j].clock:  # a check is due: its buckets and what will enter them
                start = row * models.itemsize + p.hot_bytes + j * p.window_bytes
                for offset in range(0, SMALL_WINDOW_BYTES, LINE):
                    prefetch(models, start + offset)
                entries_of(m, 0, m.pending[j], rings, row)
    if i + 4 < n:
        row = rows[i + 4]
        m = models[row]
        for j in range(len(p.sliding)):
            gathered = int(m.totals[N, len(m.fading) + j]) - p.sliding[j].size
            if gathered + 1 == DEFERRED:
                for age in range(p.sliding[j].size - 1, p.sliding[j].size - 1 + DEFERRED):
                    entry = rings[row, position_of(m.head, age, rings.shape[1])]
                    counts_of(m, truth_of(entry), predicted_of(entry), cells)
