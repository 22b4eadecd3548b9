"""Test for the end of a drift."""

from __future__ import annotations

from streamwatch.core.alerting.notification import IncidentAlarm
from streamwatch.core.estimators.notifying.level import Level


def is_back(part: IncidentAlarm, level: Level | None) -> bool:
    """Tell whether the recent error is within its bound of the level before the alarm.

    To be asked only after as many outcomes as the level remembers: right after an alarm the faded error still
    reflects the time before it, so every alarm would end at once.
    """
    alarm = part.alarm
    if level is None or level.outcomes - alarm.outcome < level.n_eff:
        return False
    if alarm.after < part.before:
        return level.error + level.bound >= part.before
    return level.error - level.bound <= part.before
