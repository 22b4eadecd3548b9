"""Where a log can be read again, after bytes that do not even tell how long they are.

Brokers find a batch by an index with an entry every few kilobytes, then batch by batch: beyond the next entry
they find what follows the damage. Where that begins is searched by doubling, then by halving. A batch may be
reached from its last offset only, where the index points to it: `asked` then lies behind `position`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple, TypeAlias

Look: TypeAlias = int | Literal["unreadable", "end"]
"""What fetching from an offset brings: the offset at which a sound batch begins; an error, or bytes that are
no batch; nothing, at the end of the log."""


class ResumePositions(NamedTuple):
    """Positions at which reading goes on."""

    position: int
    """Offset of the first record that can be read."""
    asked: int
    """Offset by which a broker finds it."""


async def next_readable(
    look: Callable[[int], Awaitable[Look]], damaged: int, end: int, *, to_the_end: bool = True
) -> ResumePositions | None:
    """Find where reading goes on after `damaged`; None if it cannot yet.

    Parameters
    ----------
    look
        Tries an offset; raises what a lost connection raises.
    damaged
        Cannot be read.
    end
        Where the log ends.
    to_the_end
        Reading goes on there if nothing before can be read and that can; else it waits for a sound batch.
    """
    bad, step = damaged, 1
    found: ResumePositions | None = None
    while found is None and bad + step < end:
        candidate = bad + step
        seen = await look(candidate)
        if seen == "unreadable" or (seen == "end" and not to_the_end):
            bad, step = candidate, step * 2
        else:
            found = _from(seen, candidate, damaged)
    if found is None:
        if not to_the_end or end <= damaged or await look(end) == "unreadable":
            return None
        found = ResumePositions(end, end)
    least = min(found)
    while least - bad > 1:
        middle = (bad + least) // 2
        seen = await look(middle)
        if seen == "unreadable":
            bad = middle
        else:
            found = _from(seen, middle, damaged)
            least = min(middle, *found)
    return found


def _from(seen: Look, asked: int, damaged: int) -> ResumePositions:
    return ResumePositions(max(seen, damaged) if isinstance(seen, int) else asked, asked)
