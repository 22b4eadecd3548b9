"""PagerDuty's Events API v2: an incident's first notification and updates trigger, its end resolves.

The incident's id is the `dedup_key`, by which PagerDuty makes these events one incident. A digest and the
announcement of a retraining trigger incidents of their own, which people close.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.rules import COMPARISON, EARLY_HINT
from streamwatch.edge.receivers.kind import (
    Configured,
    EndpointSpec,
    HttpRequestBody,
    OwnKey,
    ReceiverKind,
    ReceiverOptions,
)
from streamwatch.edge.receivers.texts import description, iso, link, title

URL = "https://events.pagerduty.com/v2/enqueue"
_SUMMARY = 1_024


@dataclass(frozen=True, slots=True)
class PagerDuty:
    """`Format` for one PagerDuty service."""

    routing_key: str = field(repr=False)
    source: str = "streamwatch"
    external_url: str = ""

    def request_body(self, notification: Notification, now_ms: int) -> HttpRequestBody:
        """Make an event of the notification."""
        del now_ms
        event: dict[str, Any] = {
            "routing_key": self.routing_key,
            "event_action": "resolve" if notification.kind == "resolved" else "trigger",
            "dedup_key": notification.id if notification.kind == "retraining" else notification.incident,
            "payload": self._payload(notification),
            "client": "streamwatch",
        }
        if self.external_url:
            event["client_url"] = page = link(self.external_url, notification)
            event["links"] = [
                {"href": page, "text": "The model's page" if notification.model else "All models"}
            ]
        return HttpRequestBody(msgspec.json.encode(event))

    def _payload(self, notification: Notification) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "summary": title(notification)[:_SUMMARY],
            "source": self.source,
            "severity": notification.severity,
            "timestamp": iso(notification.started_at_ms),
            "class": _class_of(notification),
            "custom_details": {
                "description": description(notification, self.external_url),
                "notification": notification.id,
            },
        }
        if notification.labels:
            payload["custom_details"]["labels"] = notification.labels
        if notification.runbook_url:
            payload["custom_details"]["runbook_url"] = notification.runbook_url
        if notification.parts:
            payload["component"] = notification.model
            payload["group"] = ", ".join(notification.detectors)
            payload["custom_details"]["alarms"] = [part.alarm for part in notification.parts]
        if notification.hint is not None:
            payload["component"] = notification.model
            payload["group"] = EARLY_HINT
            payload["custom_details"]["hint"] = notification.hint.as_notified
        if notification.comparison is not None:
            payload["component"] = notification.model
            payload["group"] = COMPARISON
            payload["custom_details"]["comparison"] = notification.comparison
        return payload


def _class_of(notification: Notification) -> str:
    if notification.digest is not None:
        return "drift digest"
    if notification.gathered is not None:
        return "digest"
    if notification.kind == "retraining":
        return "retraining"
    if notification.hint is not None:
        return "early hint"
    if notification.comparison is not None:
        return "comparison"
    drifts = any(part.alarm.judgement is None for part in notification.parts)
    return "drift" if drifts else "verdict"


def configure(spec: EndpointSpec, options: ReceiverOptions) -> Configured:
    """Make the format for one PagerDuty service."""
    return Configured(spec, PagerDuty(options.own["routing_key"], external_url=options.external_url))


KIND = ReceiverKind(
    "pagerduty",
    (OwnKey("routing_key", "secret", "integration key of the service."),),
    configure,
    URL,
    reads_digests=False,
)
