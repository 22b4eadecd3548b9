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

from streamwatch.core.specs import DAY_MS

WINDOW_MS: Final = 7 * DAY_MS
"""Event time in which `LEAST_CHANGES` changes of side make a verdict alternate; host time that ends it."""
LEAST_CHANGES: Final = 3
MOST_KEPT: Final = 64
"""Number of changes of side kept of one verdict; older ones are only counted."""
HOUR_MS: Final = 3_600_000
STEADY: Final = 0.7
"""Least length of the mean of times of day, as vectors on the unit circle, that is called a time of day."""


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
    """Changes of side since it alternates, those that made it so included."""
    first_ms: int
    """Event time from which the first of them holds."""
    worse: bool
    """Whether it is worse now."""
    period_ms: int | None = None
    """Median time from one beginning of worse to the next; None before the second."""
    worse_from_hour: int | None = None
    """Hour of the day (UTC) at which it becomes worse; None if there is no such hour, or no daily rhythm."""
    worse_until_hour: int | None = None
    """Hour at which it ends being worse."""

    @property
    def is_daily(self) -> bool:
        """Tell whether it becomes worse once a day, by and large."""
        return self.period_ms is not None and 20 * HOUR_MS <= self.period_ms <= 28 * HOUR_MS

    @property
    def is_weekly(self) -> bool:
        """Tell whether it becomes worse once a week, by and large."""
        return self.period_ms is not None and 6 * DAY_MS <= self.period_ms <= 8 * DAY_MS


class Sides(msgspec.Struct, frozen=True):
    """Recent changes of side of one verdict."""

    recent: tuple[SideChange, ...] = ()
    """Oldest first; those of the window before the newest, and all while it alternates, up to `MOST_KEPT`."""
    before: int = 0
    """Changes since it alternates that are not among `recent` any more."""
    alternates: bool = False

    def changed(self, changed_ms: int, since_ms: int, *, worse: bool) -> Sides:
        """Return the sides after a verdict; the same if it has not changed sides."""
        if worse is self.is_worse:
            return self
        recent = (*self.recent, SideChange(changed_ms, since_ms, worse))
        if self.alternates:
            left_out = max(0, len(recent) - MOST_KEPT)
            return Sides(recent[left_out:], self.before + left_out, alternates=True)
        recent = tuple(each for each in recent if changed_ms - each.changed_ms < WINDOW_MS)
        return Sides(recent, 0, alternates=len(recent) >= LEAST_CHANGES)

    def settled(self) -> Sides:
        """Return the sides once one has held for long enough: it does not alternate, and is where it is."""
        return Sides(self.recent[-1:])

    @property
    def is_worse(self) -> bool:
        """Tell whether the side is worse now."""
        return bool(self.recent) and self.recent[-1].worse

    def alternation(self) -> Alternation | None:
        """Describe how it alternates; None if it does not."""
        if not self.alternates:
            return None
        begins = [each.since_ms for each in self.recent if each.worse]
        ends = [each.since_ms for each in self.recent if not each.worse]
        lengths = [later - earlier for earlier, later in pairwise(begins)]
        period_ms = round(median(lengths)) if lengths else None
        found = Alternation(self.before + len(self.recent), self.recent[0].since_ms, self.is_worse, period_ms)
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
