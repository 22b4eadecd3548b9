"""Rebuilding of chains and queues of entries that were read back."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Any

from streamwatch.core.jit import entry
from streamwatch.core.join.compiled.layout import EARLY_LABELS, PREDICTIONS, RETAINED_LABELS
from streamwatch.core.join.compiled.table import append, find_slot, first_of
from streamwatch.core.join.compiled.waiting import enqueue
from streamwatch.core.join.entry import EARLY, PENDING, RESOLVED


@entry
def link(slots: Any, entries: Any, totals: Any, count: int, shift: Any) -> int:
    """Add entries to the chains of their ids, and waiting ones to their queues, in order.

    Parameters
    ----------
    slots, entries, totals
        Fields of `Arrays`; the slots are empty, and enough.
    count
        Number of entries.
    shift
        See `loop.join_rows`.

    Returns
    -------
    int
        `count`, or the first entry whose id and model an earlier entry has, both labels or both predictions.
    """
    t = totals[0]
    for x in range(count):
        e = entries[x]
        i = find_slot(slots, entries, e.low, e.high, shift)
        last = -1
        other = first_of(slots[i])
        while other >= 0:
            waits = EARLY <= entries[other]["state"] < RESOLVED
            if entries[other]["model"] == e.model and waits == (EARLY <= e.state < RESOLVED):
                return x
            last = other
            other = entries[other]["next"] + 0
        append(slots, entries, t, i, last, x)
        if e.state == PENDING:
            enqueue(entries, t, PREDICTIONS, x)
        elif e.state == EARLY:
            enqueue(entries, t, EARLY_LABELS, x)
        elif e.state < RESOLVED:
            enqueue(entries, t, RETAINED_LABELS, x)
    return count
