"""Alarms found in a backlog, gathered into one notification instead of hundreds."""

from __future__ import annotations

import msgspec

from streamwatch.core.alerting.notification import (
    SEVERITIES,
    AlarmCount,
    Digest,
    Notification,
    Severity,
    identify,
)
from streamwatch.core.events import Alarm


class DigestState(msgspec.Struct, frozen=True):
    """State of a digest: alarms gathered, and how many digests went before."""

    counts: list[AlarmCount] = []
    earliest: list[Alarm] = []
    severity: Severity = "info"
    first_at_ms: int = 0
    last_at_ms: int = 0
    since_ms: int = 0
    taken: int = 0
    sent: int = 0


class BacklogDigest:
    """Counts old alarms by (model, detector) and keeps the first `size` of them.

    It is due once the backlog has been read, or `interval` after its first alarm.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._counts: dict[tuple[str, str], int] = {}
        self._earliest: list[Alarm] = []
        self._severity: Severity = SEVERITIES[0]
        self._first_at_ms = self._last_at_ms = self._since_ms = self._sent = 0
        self.taken = 0
        """Alarms ever gathered."""

    def add(self, alarm: Alarm, severity: Severity, now_ms: int) -> None:
        """Add one alarm to the digest."""
        if not self._counts:
            self._since_ms = now_ms
            self._severity = severity
            self._first_at_ms = self._last_at_ms = alarm.event_ms
        key = alarm.model, alarm.detector
        self._counts[key] = self._counts.get(key, 0) + 1
        if SEVERITIES.index(severity) > SEVERITIES.index(self._severity):
            self._severity = severity
        self._first_at_ms = min(self._first_at_ms, alarm.event_ms)
        self._last_at_ms = max(self._last_at_ms, alarm.event_ms)
        if len(self._earliest) < self._size:
            self._earliest.append(alarm)
        self.taken += 1

    def due(self, now_ms: int, interval_ms: int, *, behind: bool) -> bool:
        """Tell whether the digest is due."""
        return bool(self._counts) and (not behind or now_ms - self._since_ms >= interval_ms)

    def leave(self, identity: str, now_ms: int) -> Notification:
        """Return the digest as a notification, and begin an empty one."""
        most = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[: self._size]
        digest = Digest(
            alarms=sum(self._counts.values()),
            series=len(self._counts),
            first_at_ms=self._first_at_ms,
            last_at_ms=self._last_at_ms,
            tallies=tuple(AlarmCount(model, detector, n) for (model, detector), n in most),
            earliest=tuple(self._earliest),
        )
        name = identify("digest", identity, self._sent)
        self._counts, self._earliest = {}, []
        self._sent += 1
        return Notification(
            id=name,
            kind="digest",
            severity=self._severity,
            issued_ms=now_ms,
            incident=name,
            digest=digest,
        )

    def gathered(self) -> DigestState:
        """State of the digest, canonical: equal digests give equal states."""
        return DigestState(
            counts=[AlarmCount(model, detector, n) for (model, detector), n in sorted(self._counts.items())],
            earliest=self._earliest,
            severity=self._severity,
            first_at_ms=self._first_at_ms,
            last_at_ms=self._last_at_ms,
            since_ms=self._since_ms,
            taken=self.taken,
            sent=self._sent,
        )

    def restore(self, state: DigestState) -> None:
        """Continue from a `gathered` state."""
        self._counts = {(tally.model, tally.detector): tally.alarms for tally in state.counts}
        self._earliest = list(state.earliest)
        self._severity = state.severity
        self._first_at_ms, self._last_at_ms = state.first_at_ms, state.last_at_ms
        self._since_ms, self._sent = state.since_ms, state.sent
        self.taken = state.taken
