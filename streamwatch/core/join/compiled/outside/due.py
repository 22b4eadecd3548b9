"""Predictions that fall due while rows are joined, and whose partners must be in the table then."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import entry
from streamwatch.core.join.compiled.layout import NEVER_MS, PREDICTIONS, Records
from streamwatch.core.join.compiled.outside.table import Table
from streamwatch.core.join.compiled.waiting import deadline


@entry
def find_due(entries, totals, horizon_ms, limit_s, found):
    """Find the first predictions of the queue that are due by `limit_s`; return their number."""
    x = np.int64(totals[0]["first"][PREDICTIONS])
    n = 0
    while x >= 0 and n < found.shape[0] and deadline(entries[x]["record_ms"], horizon_ms) <= limit_s:
        found[n] = x
        n += 1
        x = np.int64(entries[x]["later"])
    return n


def due_predictions(table: Table, rows: Records, most: int) -> Records:
    """Return entries that fall due while these rows are joined, at most about `most`; tell the table how far.

    None are returned if what expires can have no pairs.
    """
    arrays = table.arrays
    totals, limits = arrays.totals, arrays.limits[0]
    totals["partners_ms"] = NEVER_MS
    if not (limits["compares"] and limits["assume"] >= 0 and len(rows)):
        return arrays.entries[:0]
    limit_s = int(rows["record_ms"][-1]) // 1000
    while True:
        found = np.empty(most, np.int64)
        due = found[: find_due(arrays.entries, totals, limits["horizon_ms"], limit_s, found)]
        entries = arrays.entries[due]
        if len(due) < most:
            return entries
        if entries["record_ms"][-1] > entries["record_ms"][0]:
            totals["partners_ms"] = entries["record_ms"][-1] - 1  # of the last time there may be more
            return entries
        most *= 2
