"""Notifications to send."""

from __future__ import annotations

from typing import Literal

import msgspec

from streamwatch.core.alerting.notification import (
    AlarmCount,
    Digest,
    HintReason,
    IncidentAlarm,
    Notification,
    NotifiedHint,
    Reason,
    Severity,
)
from streamwatch.core.predictions.kind import ActiveHint
from streamwatch.core.records.events import Alarm, Judgement
from streamwatch.core.specs import UtilityKind

NOW_MS = 1_700_000_000_000


def alarm(model: str = "fraud-v3", detector: str = "page_hinkley", **changes: object) -> Alarm:
    made = Alarm(model, detector, 2, 4_321, NOW_MS - 5_000, NOW_MS - 5_000, 50.25, 50.0, 0.1, 0.3125, 1_998.5)
    return msgspec.structs.replace(made, **changes)


def firing(name: str = "firing_1", model: str = "fraud-v3", **changes: object) -> Notification:
    made = Notification(
        name, "firing", "warning", NOW_MS, f"incident_of_{model}", (part(alarm(model)),), ("page_hinkley",)
    )
    return msgspec.structs.replace(made, **changes)


def part(about: Alarm, **changes: object) -> IncidentAlarm:
    made = IncidentAlarm(about, "warning", about.event_ms, about.resolved_ms, about.before, NOW_MS)
    return msgspec.structs.replace(made, **changes)


def judged(verdict: Literal[-1, 0, 1] = -1, model: str = "fraud-v3", **changes: object) -> Alarm:
    judgement = Judgement("persistent", verdict, 4_000, NOW_MS - 60_000)
    return alarm(model, "verdict", before=0.0, after=float(verdict), judgement=judgement, **changes)


def judged_by_cohorts(
    verdict: Literal[-1, 0, 1] = -1,
    status: Literal["early", "confirmed", "retracted", ""] = "early",
    opponent: str = "majority",
    earliest_ms: int | None = None,
    latest_ms: int | None = None,
    utility: UtilityKind = "accuracy",
) -> Alarm:
    judgement = Judgement(
        opponent,
        verdict,
        4_000,
        NOW_MS - 60_000,
        basis="cohorts",
        status=status,
        earliest_ms=earliest_ms,
        latest_ms=latest_ms,
        utility=utility,
    )
    return alarm("fraud-v3", "verdict", before=-1.0, after=float(verdict), judgement=judgement)


def updated(of: Notification, *parts: IncidentAlarm, **changes: object) -> Notification:
    """With further parts, as news."""
    made = msgspec.structs.replace(
        of,
        id=f"updated_of_{of.id}",
        kind="updated",
        parts=(*of.parts, *parts),
        news=tuple(each.alarm.detector for each in parts),
    )
    return msgspec.structs.replace(made, **changes)


def resolved(
    of: Notification, reason: Reason = "back_to_level", ended_at_ms: int = NOW_MS + 60_000, **changes: object
) -> Notification:
    parts = tuple(
        msgspec.structs.replace(each, ended_at_ms=ended_at_ms, reason=reason) if each.is_open else each
        for each in of.parts
    )
    made = msgspec.structs.replace(
        of, id=f"resolved_of_{of.id}", kind="resolved", parts=parts, news=of.detectors
    )
    return msgspec.structs.replace(made, **changes)


def hinted(
    model: str = "fraud-v3",
    predicted_class: str | None = "fraud",
    given_ms: int = NOW_MS - 5_000,
    **changes: object,
) -> Notification:
    figures = (0.1, 0.3125) if predicted_class is not None else (0.91, 0.62)
    shown = ActiveHint(3, given_ms, predicted_class, predicted_class is not None, *figures)
    hint = NotifiedHint(model, shown)
    made = Notification("hint_1", "firing", "info", NOW_MS, f"incident_of_{model}", hint=hint)
    return msgspec.structs.replace(made, **changes)


def hint_over(
    of: Notification,
    reason: HintReason = "no_longer_active",
    ended_at_ms: int = NOW_MS + 60_000,
    **changes: object,
) -> Notification:
    assert of.hint is not None
    ended = msgspec.structs.replace(of.hint, ended_at_ms=ended_at_ms, reason=reason)
    made = msgspec.structs.replace(of, id=f"over_{of.id}", kind="resolved", hint=ended)
    return msgspec.structs.replace(made, **changes)


def digest(
    listed: int = 3,
    name: str = "digest_1",
    model: str = "m",
    issued_ms: int = NOW_MS,
    severity: Severity = "error",
) -> Notification:
    found = Digest(
        alarms=12_345,
        series=listed,
        first_at_ms=NOW_MS - 9_000_000,
        last_at_ms=NOW_MS - 4_000_000,
        tallies=tuple(AlarmCount(f"{model}-{i}", "adwin", 7) for i in range(listed)),
        earliest=tuple(alarm(f"{model}-{i}", ordinal=i) for i in range(listed)),
    )
    return Notification(name, "digest", severity, issued_ms, name, digest=found)
