"""Changes of verdicts, as rows among the alarms."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.jit import inner


@inner
def append_change(pace, v, p, detector, position, row, outcome, before, alarms, count):
    """Write a change of the verdict to row `count` of `alarms`; return the new number of rows."""
    alarm = alarms[count]
    alarm.position = position
    alarm.row = row
    alarm.detector = detector
    alarm.ordinal = v.changes
    alarm.outcome = outcome
    alarm.statistic = v.claimed
    alarm.threshold = p.threshold
    alarm.before = float(before)
    alarm.after = float(v.verdict)
    alarm.n_eff = float(pace.steps)
    alarm.since = v.since
    alarm.since_ms = v.since_ms
    return count + 1
