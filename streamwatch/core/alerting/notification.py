"""Notifications: a drift began, it ended, or a digest of what was found in a backlog."""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias

import msgspec

from streamwatch.core.events import Alarm

Kind: TypeAlias = Literal["firing", "resolved", "digest"]
Severity: TypeAlias = Literal["info", "warning", "error", "critical"]
Reason: TypeAlias = Literal["back_to_level", "accepted_as_new_level", "verdict_changed", "model_retired"]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error", "critical")
"""From the least to the most severe."""


class Tally(msgspec.Struct, frozen=True):
    """Alarms of one (model, detector)."""

    model: str
    detector: str
    alarms: int


class Digest(msgspec.Struct, frozen=True):
    """Alarms too old to be told one by one."""

    alarms: int
    """All of them."""
    series: int
    """Pairs of (model, detector) they came from."""
    first_at_ms: int
    last_at_ms: int
    tallies: tuple[Tally, ...]
    """The pairs with most alarms, most first."""
    earliest: tuple[Alarm, ...]
    """The first of them in full, as they were found."""


class Notification(msgspec.Struct, frozen=True):
    """Message to every receiver that wants it.

    `id` stays the same over retries and restarts: whoever receives it twice can tell.
    """

    id: str
    kind: Kind
    severity: Severity
    issued_ms: int
    """When it was decided, host time: giving up is counted from here."""
    firing_id: str
    """The firing notification it is about; its own id if it is one itself or a digest."""
    alarm: Alarm | None = None
    """The newest alarm it is about; none in a digest."""
    started_at_ms: int = 0
    """Event time of the alarm that began it (of the first one in a digest)."""
    before: float = 0.0
    """Mean loss before the alarm that began it."""
    alarms: int = 1
    """Alarms of the same (model, detector) since then, itself included."""
    ended_at_ms: int | None = None
    reason: Reason | None = None
    """Reason for its end."""
    digest: Digest | None = None
    test: bool = False
    """Sent by hand, to see whether it arrives."""

    @property
    def series(self) -> str:
        """Model and detector: notifications of one series reach a receiver in order."""
        return f"{self.alarm.model}\0{self.alarm.detector}" if self.alarm else ""


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(Notification)


def encode(notification: Notification) -> bytes:
    """Bytes of a notification; equal ones give equal bytes (msgpack: JSON would lose undefined numbers)."""
    return _ENCODER.encode(notification)


def decode(notification: bytes) -> Notification:
    """Notification of bytes; raises ValueError for anything else."""
    return _DECODER.decode(notification)


def identify(kind: Kind, *parts: object) -> str:
    """An id made of everything that tells this notification apart from all others, in 128 bits."""
    written = msgspec.json.encode([kind, *map(str, parts)])
    return f"{kind}_{hashlib.sha256(written).hexdigest()[:32]}"
