"""Open incidents of each model, as the API shows them beside numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from streamwatch.core.alerting.notification import IncidentAlarm, Notification


def details_with_incidents(
    details: Mapping[str, Mapping[str, object]], incidents: Sequence[Notification]
) -> Mapping[str, Mapping[str, object]]:
    """Add the open incidents of models to what else is shown of them, those that began first first.

    Parameters
    ----------
    details
        Details by model.
    incidents
        The last notification of each open incident.
    """
    of_alarms = [each for each in incidents if each.hint is None]  # hints have a place of their own
    if not of_alarms:
        return details
    shown = {model: dict(told) for model, told in details.items()}
    for incident in sorted(of_alarms, key=lambda each: (each.model, each.started_at_ms, each.incident)):
        told = shown.setdefault(incident.model, {})
        earlier = told.get("open_incidents")
        told["open_incidents"] = [*(earlier if isinstance(earlier, list) else []), _document(incident)]
    return shown


def _document(incident: Notification) -> dict[str, object]:
    return {
        "incident": incident.incident,
        "severity": incident.severity,
        "started_timestamp_seconds": incident.started_at_ms / 1000,
        "alarms": [_alarm(part) for part in incident.parts if part.is_open],
    }


def _alarm(part: IncidentAlarm) -> dict[str, object]:
    """One open alarm: of a detector with the errors before and after, where they are defined."""
    told: dict[str, object] = {
        "detector": part.alarm.detector,
        "severity": part.severity,
        "started_timestamp_seconds": part.started_at_ms / 1000,
    }
    if part.alarm.judgement is None:
        errors = {"before": part.before, "after": part.alarm.after}
        told |= {name: value for name, value in errors.items() if isfinite(value)}
    return told
