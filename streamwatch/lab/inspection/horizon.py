"""How long predictions should wait, from the delays of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
STEPS_MS: Final = (
    *(count * MINUTE_MS for count in (1, 2, 5, 10, 30)),
    *(count * HOUR_MS for count in (1, 2, 6, 12)),
    *(count * DAY_MS for count in (1, 2, 3, 7, 14, 30, 60, 90, 180, 365)),
)
"""Durations that a person would write."""
ROOM: Final = 2
"""Times the longest delay seen: a sample does not show the longest there is."""


def suggested_ms(delays_ms: Sequence[int]) -> int:
    """Give the next round duration after twice the longest delay; the shortest step where there is none."""
    wanted = ROOM * max((*delays_ms, 0))
    return next((step for step in STEPS_MS if step >= wanted), STEPS_MS[-1])


def quantile_ms(delays_ms: Sequence[int], share: float) -> int:
    """Delay that a share of the sorted delays do not exceed.

    Raises
    ------
    IndexError
        There are none.
    """
    return delays_ms[min(len(delays_ms) - 1, int(share * len(delays_ms)))]


def duration_text(milliseconds: float) -> str:
    """Duration for a person: `3.2 h`; negative ones have their sign."""
    size = abs(milliseconds)
    for unit, length in (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", 1_000)):
        if size >= length:
            return f"{milliseconds / length:.3g} {unit}"
    return f"{milliseconds:.0f} ms"


def written(milliseconds: int) -> str:
    """Duration as settings write it; one of the steps."""
    for unit, length in (("d", DAY_MS), ("h", HOUR_MS)):
        if milliseconds % length == 0:
            return f"{milliseconds // length}{unit}"
    return f"{milliseconds // MINUTE_MS}m"
