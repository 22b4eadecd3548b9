"""Alertmanager's API v2: `POST /api/v2/alerts`, repeated while an alarm is open.

An alert is its labels: model, detector and severity, never event time or ordinal, which would make each
repetition another alert. Each says when it ends if nothing more is heard: after four repetitions, as
Prometheus does, so that nothing burns for ever once this daemon is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from yarl import URL

from streamwatch.core.alerting.notification import Notification
from streamwatch.edge.receivers.http import EndpointSpec, HttpReceiver
from streamwatch.edge.receivers.kind import ReceiverKind, ReceiverOptions
from streamwatch.edge.receivers.request import HttpRequestBody
from streamwatch.edge.receivers.texts import description, iso, title

PATH = "/api/v2/alerts"
DIGEST_MS = 3_600_000
"""A digest is an alert for so long; nothing ends it."""


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """Request bodies for one Alertmanager."""

    repeat_interval_ms: int = 60_000
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to every alert."""
    external_url: str = ""

    def request_body(self, notification: Notification, now_ms: int) -> HttpRequestBody:
        """One alert."""
        return _written([self._alert(notification, now_ms)])

    def reminder(self, open_alarms: Sequence[Notification], now_ms: int) -> HttpRequestBody:
        """All open alarms again."""
        return _written([self._alert(notification, now_ms) for notification in open_alarms])

    def _alert(self, notification: Notification, now_ms: int) -> dict[str, Any]:
        starts_ms, ends_ms = self._span(notification, now_ms)
        alert: dict[str, Any] = {
            "labels": self._labels(notification),
            "annotations": _annotations(notification),
            "startsAt": iso(starts_ms),
            "endsAt": iso(ends_ms),
        }
        if self.external_url:
            alert["generatorURL"] = self.external_url
        return alert

    def _span(self, notification: Notification, now_ms: int) -> tuple[int, int]:
        """From when to when it is on; events from the future begin now: no end may precede its start."""
        match notification.kind:
            case "firing":
                return min(notification.started_at_ms, now_ms), now_ms + 4 * self.repeat_interval_ms
            case "resolved":
                starts_ms = min(notification.started_at_ms, now_ms)
                return starts_ms, max(starts_ms, min(notification.ended_at_ms or now_ms, now_ms))
            case "digest":
                return notification.issued_ms, notification.issued_ms + DIGEST_MS

    def _labels(self, notification: Notification) -> dict[str, str]:
        labels = {**self.labels, "alertname": "StreamwatchDrift", "severity": notification.severity}
        if notification.alarm is None:
            return labels | {"alertname": "StreamwatchDriftDigest"}
        if notification.alarm.judgement is not None:
            labels |= {"alertname": "StreamwatchVerdict"}
        return labels | {"model": notification.alarm.model, "detector": notification.alarm.detector}


def _annotations(notification: Notification) -> dict[str, str]:
    annotations = {
        "summary": title(notification),
        "description": description(notification),
        "notification": notification.firing_id,
    }
    alarm = notification.alarm
    if alarm is not None:
        annotations |= {
            "event_time": iso(alarm.event_ms),
            "ordinal": str(alarm.ordinal),
            "outcome": str(alarm.outcome),
            "statistic": f"{alarm.statistic:.6g}",
            "threshold": f"{alarm.threshold:.6g}",
        }
        if alarm.judgement is None:
            annotations |= {"before": f"{notification.before:.6g}", "after": f"{alarm.after:.6g}"}
    if notification.reason is not None:
        annotations["reason"] = notification.reason
    return annotations


def _written(alerts: list[dict[str, Any]]) -> HttpRequestBody:
    return HttpRequestBody(msgspec.json.encode(alerts))


def build(spec: EndpointSpec, options: ReceiverOptions) -> HttpReceiver:
    """Post alerts to the API of an Alertmanager, and repeat them while they are open."""
    form = Alertmanager(options.repeat_interval_ms, options.labels, options.external_url)
    repeat_interval_seconds = options.repeat_interval_ms / 1000
    spec = replace(spec, url=alerts_url(spec.url), repeat_interval_seconds=repeat_interval_seconds)
    return HttpReceiver(spec, form, form.reminder)


def alerts_url(url: str) -> str:
    """Complete the address of an Alertmanager, or of its API, with the path of the API."""
    bare = URL(url)
    return str(bare.with_path(bare.path.rstrip("/").removesuffix(PATH) + PATH))


KIND = ReceiverKind("alertmanager", ("labels", "repeat_interval"), build)
