"""Whether a drift is over."""

from __future__ import annotations

from streamwatch.core.alerting.notification import IncidentAlarm
from streamwatch.core.estimators.notifying.level import Level


def is_back(part: IncidentAlarm, level: Level | None) -> bool:
    """Tell whether the recent error is within its bound of the level before the alarm.

    Asked only after as many outcomes as the level remembers: right after an alarm the faded error still tells
    of the time before it, and every alarm would be over at once.
    """
    alarm = part.alarm
    if level is None or level.outcomes - alarm.outcome < level.n_eff:
        return False
    if alarm.after < part.before:
        return level.error + level.bound >= part.before
    return level.error - level.bound <= part.before
