"""Series of alarms and their notifications."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

ALARMS: Final = (
    gauge("alarms_open", "Announced alarms of a model that are not resolved yet.", "model", "severity"),
    counter(
        "alarms_suppressed_total",
        "Alarms that were counted but not announced, by reason: too few outcomes, within the "
        "cooldown, or one already open.",
        "reason",
    ),
    counter(
        "alarms_digested_total",
        "Alarms that were found while catching up and were too old to be sent one by one.",
    ),
    counter("notifications_sent_total", "Notifications that a receiver has accepted.", "receiver"),
    counter(
        "notifications_failed_total",
        "Failed attempts to deliver a notification, by receiver and reason.",
        "reason",
        "receiver",
    ),
    gauge("notifications_pending", "Notifications that wait to be delivered to a receiver.", "receiver"),
    counter(
        "notifications_dropped_total",
        "Notifications given up, by receiver and reason. Each is logged as an error.",
        "reason",
        "receiver",
    ),
)
