"""Chains, queues and lists of entries that were read back."""

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
    """Hang entries in the chains of their ids, and those that wait in their queues, in order.

    Parameters
    ----------
    slots, entries, totals
        Of `Arrays`; the slots are empty, and enough.
    count
        How many entries there are.
    shift
        See `loop.take`.

    Returns
    -------
    int
        `count`, or an entry before that of whose id and model there is another.
    """
    t = totals[0]
    for x in range(count):
        e = entries[x]
        i = find_slot(slots, entries, e.low, e.high, shift)
        last = -1
        other = first_of(slots[i])
        while other >= 0:
            if entries[other]["model"] == e.model:
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
