"""Notifications as the outbox has them after a restart."""

from __future__ import annotations

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.outbox import Outbox, new_entry


def stored(notification: Notification) -> Notification | None:
    """The notification decoded from the entry that a commit keeps of it."""
    outbox = Outbox(["receiver"])
    outbox.restore({notification.id: new_entry(notification, ["receiver"], 1)})
    return outbox.head("receiver")
