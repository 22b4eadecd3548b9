"""Bringing in memory before it is needed: with thousands of models every outcome would wait for it.

In three steps, as addresses become known: 16 outcomes ahead the model's record, 8 ahead the class rows and ring entries
its header points to, 4 ahead the class rows of the outcome a window will drop.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.kernel.compiled import hot, prefetch
from streamwatch.core.kernel.ring import position_of, predicted_of, truth_of
from streamwatch.core.kernel.totals import AGREED, FALSE, MISSED

LINE = 64
AHEAD = 16
"""Outcomes between asking for a record and needing it."""


@hot
def counts_of(m, truth, predicted, cells):
    """Bring in the per-class counts an outcome adds to: one place for a hit, two for a miss."""
    width = 8 * cells.shape[1]
    part = 8 * len(m.units)
    if truth == predicted:
        prefetch(cells, (m.cells + truth) * width + AGREED * part)
    else:
        prefetch(cells, (m.cells + truth) * width + MISSED * part)
        prefetch(cells, (m.cells + predicted) * width + FALSE * part)


@hot
def look_ahead(models, cells, rings, p, rows, truth, predicted, i):
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
        prefetch(rings, 4 * (row * rings.shape[1] + m.head))
        for j in range(len(p.sliding)):
            dropped = position_of(m.head, p.sliding[j].size - 1, rings.shape[1])
            prefetch(rings, 4 * (row * rings.shape[1] + dropped))
    if i + 4 < n:
        row = rows[i + 4]
        m = models[row]
        for j in range(len(p.sliding)):
            dropped = rings[row, position_of(m.head, p.sliding[j].size - 1, rings.shape[1])]
            counts_of(m, truth_of(dropped), predicted_of(dropped), cells)
