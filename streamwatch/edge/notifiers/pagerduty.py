"""PagerDuty's Events API v2: an alarm triggers an incident, its end resolves it.

The key that makes them one incident is the firing notice's id. A digest triggers one that people close.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from streamwatch.core.notices import Notice
from streamwatch.edge.notifiers.letter import Letter
from streamwatch.edge.notifiers.wording import description, iso, title

URL = "https://events.pagerduty.com/v2/enqueue"
_SUMMARY = 1_024


@dataclass(frozen=True, slots=True)
class PagerDuty:
    """Letters for one service."""

    routing_key: str = field(repr=False)
    source: str = "streamwatch"
    external_url: str = ""

    def letter(self, notice: Notice, now_ms: int) -> Letter:
        """The notice as an event."""
        del now_ms
        event: dict[str, Any] = {
            "routing_key": self.routing_key,
            "event_action": "resolve" if notice.kind == "resolved" else "trigger",
            "dedup_key": notice.firing_id,
            "payload": self._payload(notice),
            "client": "streamwatch",
        }
        if self.external_url:
            event["client_url"] = self.external_url
        return Letter(msgspec.json.encode(event))

    def _payload(self, notice: Notice) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "summary": title(notice)[:_SUMMARY],
            "source": self.source,
            "severity": notice.severity,
            "timestamp": iso(notice.started_at_ms),
            "class": "drift digest" if notice.alarm is None else "drift",
            "custom_details": {"description": description(notice), "notice": notice.id},
        }
        if notice.alarm is not None:
            payload["component"] = notice.alarm.model
            payload["group"] = notice.alarm.detector
            payload["custom_details"]["alarm"] = notice.alarm
        return payload
