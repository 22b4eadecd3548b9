"""Verdicts that alternate: from the third change of side within a week they are one state, not many alarms.

A rhythm of the data, such as one of day and night, takes a verdict from worse to better and back again and
again, and each change is true. Notifying each of them teaches people to ignore them. A verdict has two
sides here, worse and not worse, and a model begins as not worse. It *alternates* from the third change of
side within `WINDOW_MS` of event time on, and stays so until a side has held for as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import atan2, cos, hypot, pi, sin
from statistics import median
from typing import Final

import msgspec

from streamwatch.core.specs import DAY_MS, HOUR_MS

WINDOW_MS: Final = 7 * DAY_MS
"""Event time within which `LEAST_CHANGES` changes of side begin an alternation.

It ends when a side has held for as long: in host time while an alarm of the verdict is open, otherwise in
event time.
"""
LEAST_CHANGES: Final = 3
MOST_KEPT: Final = 64
"""Number of changes of side kept of one verdict; older ones are only counted."""
STEADY: Final = 0.7
"""Least length of the mean of times of day, as vectors on the unit circle, to report it as an hour."""


class SideChange(msgspec.Struct, frozen=True, array_like=True):
    """A change of side of a verdict."""

    changed_ms: int
    """Event time at which it was found."""
    since_ms: int
    """Event time from which the new side holds."""
    worse: bool


class Alternation(msgspec.Struct, frozen=True):
    """Facts about a verdict that alternates."""

    changes: int
    """Number of changes of side, including those that began the alternation."""
    first_ms: int
    """Event time from which the first of them holds."""
    worse: bool
    """Whether the verdict is worse now."""
    period_ms: int | None = None
    """Median time from one beginning of worse to the next; None before the second."""
    worse_from_hour: int | None = None
    """Hour of the day (UTC) at which the verdict becomes worse; None without a daily rhythm."""
    worse_until_hour: int | None = None
    """Hour of the day (UTC) at which it stops being worse, likewise."""

    @property
    def is_daily(self) -> bool:
        """Tell whether the median period is 20 to 28 hours."""
        return self.period_ms is not None and 20 * HOUR_MS <= self.period_ms <= 28 * HOUR_MS

    @property
    def is_weekly(self) -> bool:
        """Tell whether the median period is 6 to 8 days."""
        return self.period_ms is not None and 6 * DAY_MS <= self.period_ms <= 8 * DAY_MS


class Sides(msgspec.Struct, frozen=True):
    """Recent changes of side of one verdict."""

    recent: tuple[SideChange, ...] = ()
    """Changes, oldest first: those within `WINDOW_MS` of the newest; of an alternation up to `MOST_KEPT`."""
    before: int = 0
    """Number of changes of the alternation that are no longer in `recent`."""
    alternates: bool = False
    first_ms: int | None = None
    """`since_ms` of the alternation's first change; None while that is in `recent`."""

    def changed(self, changed_ms: int, since_ms: int, *, worse: bool) -> Sides:
        """Return the sides after a new verdict; unchanged if the verdict is on the same side."""
        if worse is self.is_worse:
            return self
        recent = (*self.recent, SideChange(changed_ms, since_ms, worse))
        if self.alternates:
            left_out = max(0, len(recent) - MOST_KEPT)
            first_ms = recent[0].since_ms if left_out and self.first_ms is None else self.first_ms
            return Sides(recent[left_out:], self.before + left_out, alternates=True, first_ms=first_ms)
        recent = tuple(each for each in recent if changed_ms - each.changed_ms < WINDOW_MS)
        return Sides(recent, 0, alternates=len(recent) >= LEAST_CHANGES)

    def settled(self) -> Sides:
        """Return the sides after the alternation has ended: only the newest change is kept."""
        return Sides(self.recent[-1:])

    def lapsed(self, at_ms: int) -> Sides:
        """Return the sides, settled if they alternate and the newest change is `WINDOW_MS` before `at_ms`."""
        if self.alternates and at_ms - self.recent[-1].changed_ms >= WINDOW_MS:
            return self.settled()
        return self

    @property
    def is_worse(self) -> bool:
        """Tell whether the side is worse now."""
        return bool(self.recent) and self.recent[-1].worse

    def alternation(self) -> Alternation | None:
        """Describe the alternation; None without one."""
        if not self.alternates:
            return None
        begins = [each.since_ms for each in self.recent if each.worse]
        ends = [each.since_ms for each in self.recent if not each.worse]
        lengths = [later - earlier for earlier, later in pairwise(begins)]
        period_ms = round(median(lengths)) if lengths else None
        first_ms = self.recent[0].since_ms if self.first_ms is None else self.first_ms
        found = Alternation(self.before + len(self.recent), first_ms, self.is_worse, period_ms)
        if not found.is_daily:
            return found
        return msgspec.structs.replace(
            found, worse_from_hour=hour_of_day(begins), worse_until_hour=hour_of_day(ends)
        )


def hour_of_day(times_ms: Sequence[int]) -> int | None:
    """Find the hour of the day (UTC, 0 to 23) around which times lie; None if they lie around no hour."""
    angles = [2 * pi * (at % DAY_MS) / DAY_MS for at in times_ms]
    if not angles:
        return None
    x, y = sum(map(cos, angles)) / len(angles), sum(map(sin, angles)) / len(angles)
    if hypot(x, y) < STEADY:
        return None
    return round(atan2(y, x) / (2 * pi) * 24) % 24
