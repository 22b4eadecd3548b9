"""Internal events of alarms: that they were raised, and how telling people of them went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamwatch.telemetry.internal_event import InternalEvent, Level


@dataclass(frozen=True)
class AlarmRaised(InternalEvent):
    """A detector of a model declared a drift."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "model"
    model: str
    detector: str
    ordinal: int
    outcome: int
    event_ms: int
    before: float
    after: float


@dataclass(frozen=True)
class VerdictChanged(InternalEvent):
    """Report that a model is better or worse than no change, or no longer shown to be either."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "model"
    model: str
    opponent: str
    verdict: str
    since_outcome: int
    since_ms: int
    outcome: int
    event_ms: int


@dataclass(frozen=True)
class NotificationSent(InternalEvent):
    """A receiver has taken a notification of an alarm."""

    sampled_by: ClassVar[str | None] = "receiver"
    receiver: str
    notification: str
    kind: str
    attempts: int


@dataclass(frozen=True)
class NotificationFailed(InternalEvent):
    """A receiver did not take a notification; it is tried again."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "receiver"
    receiver: str
    host: str
    notification: str
    reason: str
    attempts: int
    retry_in_seconds: float


@dataclass(frozen=True)
class NotificationDropped(InternalEvent):
    """A receiver will never be told of this: it refused, or could not be reached for too long."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "receiver"
    receiver: str
    notification: str
    kind: str
    incident: str
    model: str
    detectors: str
    reason: str
    attempts: int


@dataclass(frozen=True)
class ReceiverGone(InternalEvent):
    """A receiver answered that it exists no more: nothing is sent to it until the next start."""

    level: ClassVar[Level] = "error"
    receiver: str
    host: str
    reason: str
