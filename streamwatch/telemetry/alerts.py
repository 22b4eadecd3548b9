"""Happenings of alarms: that they were raised, and how telling people of them went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streamwatch.telemetry.happening import Happening, Level


@dataclass(frozen=True)
class AlarmRaised(Happening):
    """A detector of a model declared a drift."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "model"
    model: str
    detector: str
    ordinal: int
    outcome: int
    at_ms: int
    before: float
    after: float


@dataclass(frozen=True)
class AlertDelivered(Happening):
    """An outlet has taken a notice of an alarm."""

    sampled_by: ClassVar[str | None] = "outlet"
    outlet: str
    notice: str
    kind: str
    attempts: int


@dataclass(frozen=True)
class AlertFailed(Happening):
    """An outlet did not take a notice; it is tried again."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "outlet"
    outlet: str
    host: str
    notice: str
    reason: str
    attempts: int
    retry_in_seconds: float


@dataclass(frozen=True)
class AlertDead(Happening):
    """An outlet will never be told of this: it refused, or could not be reached for too long."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "outlet"
    outlet: str
    notice: str
    kind: str
    model: str
    detector: str
    reason: str
    attempts: int


@dataclass(frozen=True)
class OutletGone(Happening):
    """An outlet answered that it exists no more: nothing is sent to it until the next start."""

    level: ClassVar[Level] = "error"
    outlet: str
    host: str
    reason: str
