"""Series of alarms and their notifications."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

ALARMS: Final = (
    gauge("alarms_open", "Announced alarms of a model that have not been resolved.", "model", "severity"),
    counter(
        "alarms_suppressed_total",
        "Alarms counted and not announced: too few outcomes, in the cooldown, or one already open.",
        "reason",
    ),
    counter("alarms_digested_total", "Alarms found in a backlog, too old to be sent one by one."),
    counter("notifications_sent_total", "Notifications a receiver has taken.", "receiver"),
    counter(
        "notifications_failed_total",
        "Attempts to deliver or to repeat that failed, by receiver and reason.",
        "reason",
        "receiver",
    ),
    gauge("notifications_pending", "Notifications waiting for a receiver.", "receiver"),
    counter(
        "notifications_dropped_total",
        "Notifications given up, by receiver and reason; each is an error in the log.",
        "reason",
        "receiver",
    ),
)
