"""What became of every notification, by receiver: sent, failed, given up, or still owed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.outbox import Outbox
from streamwatch.core.metrics import family
from streamwatch.core.series import Family
from streamwatch.telemetry import InternalEvent, NotificationDropped, NotificationSent


class DeliveryAccounts:
    """Takes notifications that were sent or given up out of the outbox, and counts them.

    Parameters
    ----------
    outbox
        What is owed to whom.
    receivers
        Names.
    emit
        Told what happens.
    """

    def __init__(
        self, outbox: Outbox, receivers: Sequence[str], emit: Callable[[InternalEvent], None]
    ) -> None:
        self._outbox = outbox
        self._receivers = receivers
        self._emit = emit
        self._sent: Counter[str] = Counter(dict.fromkeys(receivers, 0))
        self._failed: Counter[tuple[str, str]] = Counter()
        self._dropped: Counter[tuple[str, str]] = Counter()

    def sent(self, name: str, notification: Notification, attempts: int) -> None:
        """Count a notification that a receiver took; one that it is owed no longer is none."""
        if self._outbox.settle(name, notification):
            self._sent[name] += 1
            self._emit(NotificationSent(name, notification.id, notification.kind, attempts))

    def failed(self, name: str, reason: str) -> None:
        """Count an attempt that failed."""
        self._failed[name, reason] += 1

    def drop(self, name: str, notification: Notification, reason: str, attempts: int) -> None:
        """Give a notification up for one receiver, and say so."""
        self._outbox.settle(name, notification)
        self._dropped[name, reason] += 1
        self._emit(
            NotificationDropped(
                name,
                notification.id,
                notification.kind,
                notification.incident,
                notification.model,
                ", ".join(notification.detectors),
                reason,
                attempts,
            )
        )

    def drop_beyond(self, name: str, most: int, reason: str) -> None:
        """Give up the oldest of what waits for a receiver, beyond so many."""
        if (beyond := self._outbox.size(name) - most) > 0:
            for notification in self._outbox.waiting(name)[:beyond]:
                self.drop(name, notification, reason, self._outbox.attempts(name, notification))

    def drop_issued_by(self, name: str, due_ms: int, reason: str) -> None:
        """Give up all that waits for a receiver and was issued by then."""
        for notification in [each for each in self._outbox.waiting(name) if each.issued_ms <= due_ms]:
            self.drop(name, notification, reason, self._outbox.attempts(name, notification))

    def families(self) -> list[Family]:
        """Notifications sent, failed, pending and dropped, by receiver, since the start."""
        pending = [((name,), float(self._outbox.size(name))) for name in self._receivers]
        return [
            family(
                "notifications_sent_total",
                [((name,), float(n)) for name, n in sorted(self._sent.items())],
            ),
            family("notifications_failed_total", _by_reason(self._failed)),
            family("notifications_pending", pending),
            family("notifications_dropped_total", _by_reason(self._dropped)),
        ]


def _by_reason(counts: Mapping[tuple[str, str], int]) -> list[tuple[tuple[str, str], float]]:
    """Samples of counts by (receiver, reason); labels are in alphabetical order."""
    return sorted(((reason, name), float(n)) for (name, reason), n in counts.items())
