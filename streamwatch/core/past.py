"""Outcomes, hits and hits of no change per stretch of time, coarser as they age, of every model.

A tier keeps stretches of one length in as many slots; stretch number i (time // length) lies in slot i mod
slots. Of two stretches that want one slot the later has it. What a tier holds in the end so depends on which
outcomes came, not on their order or on how they were cut into batches, and a time in the far future costs
one slot of each tier instead of the past.

The time of an outcome is its own (`Outcome.event_ms`). Counts are whole, so sums are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

STRETCH: Final = np.dtype(
    [
        ("start_s", "<i8"),
        ("seconds", "<u4"),
        ("outcomes", "<u4"),
        ("right", "<u4"),
        ("no_change", "<u4"),
    ]
)
"""One stretch: where it starts (seconds since 1970), its length, its outcomes, how many of them the model had
right, and how many no change, which answers the previous label of the model's outcomes, had right."""
Stretches: TypeAlias = NDArray[np.void]
"""Of dtype `STRETCH`, shape (n,); never changed once it is made."""

MINUTE_S: Final = 60
FINE: Final = ((MINUTE_S, 240), (600, 288))
"""Length in seconds and slots of the finer tiers: minutes of four hours, ten minutes of two days."""
HOUR_S: Final = 3_600
GATHERED: Final = 256
"""Runs of outcomes in one minute that are gathered before they are put among the stretches: that costs some
hundred microseconds."""
NONE: Final = np.zeros(0, STRETCH)
NOTHING: Final = np.zeros((0, 4), np.int64)


class PastView(NamedTuple):
    """Everything kept of a model, or of a fold of one, at one moment."""

    settled: Stretches
    gathered: NDArray[np.int64]
    """Minute, outcomes, right, right of no change, to be added; shape (n, 4). A minute may repeat."""


def tiers(days: int) -> tuple[tuple[int, int], ...]:
    """Length in seconds and slots of every tier, the finest first; none for no days."""
    return (*FINE, (HOUR_S, 24 * days)) if days else ()


def past_bytes(days: int) -> int:
    """Bytes that the past of one model takes at most: every slot, what is gathered, and a view of that."""
    slots = sum(slots for _, slots in tiers(days))
    return STRETCH.itemsize * slots + 2 * NOTHING.itemsize * 4 * GATHERED if days else 0


def merged(views: Sequence[PastView], days: int) -> Stretches:
    """Put views together, as if their outcomes were of one model; by length, then start."""
    parts = [view.settled for view in views if len(view.settled)]
    minutes = np.concatenate([NOTHING, *(view.gathered for view in views)])
    for seconds, _ in tiers(days):
        part = np.zeros(len(minutes), STRETCH)
        part["start_s"] = minutes[:, 0] * MINUTE_S // seconds * seconds
        part["seconds"] = seconds
        for column, name in enumerate(("outcomes", "right", "no_change"), 1):
            part[name] = minutes[:, column]
        parts.append(part)
    if not parts:
        return NONE
    found = np.concatenate(parts)
    slot = np.full(len(found), -1, np.int64)
    for seconds, slots in tiers(days):
        own = found["seconds"] == seconds
        slot[own] = found["start_s"][own] // seconds % slots
    order = np.lexsort((found["start_s"], slot, found["seconds"]))
    found, slot = found[order], slot[order]
    if not len(found):
        return NONE
    begins = np.flatnonzero(np.concatenate(([True], differ(found["start_s"]) | differ(found["seconds"]))))
    kept = found[begins].copy()
    for name in ("outcomes", "right", "no_change"):
        kept[name] = np.add.reduceat(found[name], begins)
    own_slot = slot[begins]
    # The last of each slot is the latest; slots of a length that this version does not have are left out.
    last = np.ones(len(kept), np.bool_)
    last[:-1] = differ(own_slot) | differ(kept["seconds"])
    kept = kept[last & (own_slot >= 0)]
    return kept[np.lexsort((kept["start_s"], kept["seconds"]))]


def differ(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Tell which values differ from the one before; shape (n - 1,)."""
    return values[1:] != values[:-1]
