"""Notifications do not reach a receiver, or there is none."""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight


def _find(facts: Facts) -> Iterator[Finding]:
    now = facts.now
    receivers = now.by("notifications_failed_total", "receiver") | now.by(
        "notifications_dropped_total", "receiver"
    )
    for receiver in receivers:
        dropped = now.total("notifications_dropped_total", receiver=receiver)
        waiting = now.total("notifications_pending", receiver=receiver)
        failed = now.by("notifications_failed_total", "reason", receiver=receiver)
        if not dropped and not (waiting and any(failed.values())):
            continue
        reason = max(failed, key=lambda name: failed[name], default="unknown")
        yield Finding(
            Weight.INCOMPLETE,
            f"receiver {receiver}",
            f"{dropped:,.0f} notifications given up, {waiting:,.0f} wait; most attempts fail with {reason}",
            "the endpoint refuses them or cannot be reached",
            f"streamwatch alerts test --receiver {receiver} shows the answer; then correct alerts.receivers",
        )
    if facts.configured is not None and not facts.configured.has_receivers and now.total("alarms_total"):
        yield Finding(
            Weight.WORTH_KNOWING,
            "alerts.receivers",
            f"is empty: {now.total('alarms_total'):,.0f} alarms were sent to nobody",
            "alarms appear only on the page and in /metrics",
            "alerts: {receivers: [{name: …, type: slack, url_file: …}]}, or the rules in deploy/prometheus",
        )


RULE = Rule("undelivered", _find)
