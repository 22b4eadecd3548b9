"""Alertmanager's API v2: `POST /api/v2/alerts`, repeated while an alarm is open.

An alert is its labels: model, detector and severity, never event time or ordinal, which would make each
repetition another alert. So each alarm of an incident is an alert of its own, and Alertmanager makes them one
notification where its route groups by model, as the one in `deploy/` does. Each says when it ends if nothing
more is heard: after four repetitions, as Prometheus does, so that nothing burns for ever once this daemon is
gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from yarl import URL

from streamwatch.core.alerting.notification import (
    IncidentAlarm,
    Notification,
    NotifiedComparison,
    NotifiedHint,
    Severity,
)
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
    severities: frozenset[Severity] | None = None
    """Severities of the alarms it is sent; None: all."""

    def request_body(self, notification: Notification, now_ms: int) -> HttpRequestBody:
        """One alert for each alarm of the incident that is open, or ended with this notification."""
        if notification.digest is not None:
            return _written([self._digest(notification)])
        if notification.hint is not None:
            return _written([self._hint(notification, notification.hint, now_ms)])
        if notification.comparison is not None:
            return _written([self._comparison(notification, notification.comparison, now_ms)])
        # An alarm that ended before may have begun again in a later incident: its end is sent once.
        news = notification.news
        parts = (part for part in notification.parts if part.is_open or part.alarm.detector in news)
        return _written([self._alert(notification, part, now_ms) for part in self._wanted(parts)])

    def reminder(self, open_incidents: Sequence[Notification], now_ms: int) -> HttpRequestBody:
        """All open alarms, hints and verdicts on challengers again."""
        alarms = [
            self._alert(incident, part, now_ms)
            for incident in open_incidents
            for part in self._wanted(part for part in incident.parts if part.is_open)
        ]
        hints = [self._hint(each, each.hint, now_ms) for each in open_incidents if each.hint is not None]
        compared = [
            self._comparison(each, each.comparison, now_ms)
            for each in open_incidents
            if each.comparison is not None
        ]
        return _written(alarms + hints + compared)

    def _wanted(self, parts: Iterable[IncidentAlarm]) -> Iterable[IncidentAlarm]:
        return (part for part in parts if self.severities is None or part.severity in self.severities)

    def _alert(self, notification: Notification, part: IncidentAlarm, now_ms: int) -> dict[str, Any]:
        name = "StreamwatchDrift" if part.alarm.judgement is None else "StreamwatchVerdict"
        return self._written_alert(
            notification,
            {
                "labels": {
                    **notification.labels,
                    **self.labels,
                    "alertname": name,
                    "severity": part.severity,
                    "model": part.alarm.model,
                    "detector": part.alarm.detector,
                },
                "annotations": _annotations(notification, self.external_url) | _figures(part),
                **self._span(part.started_at_ms, part.ended_at_ms, now_ms),
            },
        )

    def _hint(self, notification: Notification, hint: NotifiedHint, now_ms: int) -> dict[str, Any]:
        active = hint.as_notified
        figures = {"event_time": iso(active.given_ms), "ordinal": str(active.ordinal)}
        figures |= {"before": f"{active.before:.6g}", "after": f"{active.now:.6g}"}
        return self._written_alert(
            notification,
            {
                "labels": {
                    **notification.labels,
                    **self.labels,
                    "alertname": "StreamwatchEarlyHint",
                    "severity": notification.severity,
                    "model": hint.model,
                    "detector": EARLY_HINT,
                },
                "annotations": _annotations(notification, self.external_url) | figures,
                **self._span(active.given_ms, hint.ended_at_ms, now_ms),
            },
        )

    def _comparison(
        self, notification: Notification, pair: NotifiedComparison, now_ms: int
    ) -> dict[str, Any]:
        figures = {"verdict": "better" if pair.verdict > 0 else "worse", "basis": pair.basis}
        if pair.status:
            figures["status"] = pair.status
        return self._written_alert(
            notification,
            {
                "labels": {
                    **notification.labels,
                    **self.labels,
                    "alertname": "StreamwatchComparison",
                    "severity": notification.severity,
                    "model": pair.challenger,
                    "champion": pair.champion,
                    "detector": COMPARISON,
                },
                "annotations": _annotations(notification, self.external_url) | figures,
                **self._span(pair.since_ms, pair.ended_at_ms, now_ms),
            },
        )

    def _span(self, started_ms: int, ended_ms: int | None, now_ms: int) -> dict[str, str]:
        """Beginning and end of an alert; of an open one, when it ends if nothing more is heard."""
        starts_ms = min(started_ms, now_ms)  # events from the future begin now: no end precedes its start
        if ended_ms is None:
            ends_ms = now_ms + 4 * self.repeat_interval_ms
        else:
            ends_ms = max(starts_ms, min(ended_ms, now_ms))
        return {"startsAt": iso(starts_ms), "endsAt": iso(ends_ms)}

    def _digest(self, notification: Notification) -> dict[str, Any]:
        return self._written_alert(
            notification,
            {
                "labels": {
                    **self.labels,
                    "alertname": "StreamwatchDriftDigest",
                    "severity": notification.severity,
                },
                "annotations": _annotations(notification, self.external_url),
                "startsAt": iso(notification.issued_ms),
                "endsAt": iso(notification.issued_ms + DIGEST_MS),
            },
        )

    def _written_alert(self, notification: Notification, alert: dict[str, Any]) -> dict[str, Any]:
        """With the address of the model's page, if there is one."""
        page = link(self.external_url, notification)
        return alert | {"generatorURL": page} if page else alert


def _annotations(notification: Notification, external_url: str) -> dict[str, str]:
    annotations = {
        "summary": title(notification),
        "description": description(notification, external_url),
        "incident": notification.incident,
    }
    if notification.runbook_url:
        annotations["runbook_url"] = notification.runbook_url
    return annotations


def _figures(part: IncidentAlarm) -> dict[str, str]:
    """Figures of one alarm: what is no label, lest each repetition were another alert."""
    alarm = part.alarm
    figures = {
        "event_time": iso(alarm.event_ms),
        "ordinal": str(alarm.ordinal),
        "outcome": str(alarm.outcome),
        "statistic": f"{alarm.statistic:.6g}",
        "threshold": f"{alarm.threshold:.6g}",
    }
    if alarm.judgement is None:
        figures |= {"before": f"{part.before:.6g}", "after": f"{alarm.after:.6g}"}
    else:
        figures |= {"basis": alarm.judgement.basis, "opponent": alarm.judgement.opponent}
        if alarm.judgement.status:
            figures["status"] = alarm.judgement.status
    if part.reason is not None:
        figures["reason"] = part.reason
    return figures


def _written(alerts: list[dict[str, Any]]) -> HttpRequestBody:
    return HttpRequestBody(msgspec.json.encode(alerts))


def configure(spec: EndpointSpec, options: ReceiverOptions) -> Configured:
    """Post alerts to the API of an Alertmanager, and repeat them while they are open."""
    every_ms: int = options.own["repeat_interval"]
    form = Alertmanager(every_ms, options.own["labels"], options.external_url, spec.severities)
    repeat_interval_seconds = every_ms / 1000
    spec = replace(spec, url=alerts_url(spec.url), repeat_interval_seconds=repeat_interval_seconds)
    return Configured(spec, form, form.reminder)


def alerts_url(url: str) -> str:
    """Complete the address of an Alertmanager, or of its API, with the path of the API."""
    bare = URL(url)
    return str(bare.with_path(bare.path.rstrip("/").removesuffix(PATH) + PATH))


RESERVED = ("alertname", "detector", "model", "severity")
"""Labels of alerts that are not for the operator to choose."""


def labelled(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Check names of labels; raises ValueError for one that is none, or that every alert sets."""
    for name in labels:
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name):
            raise ValueError(f"expected label names of letters, digits and _, got {name!r}")
        if name in RESERVED:
            raise ValueError(f"label {name!r} is reserved: every alarm sets it")
    return labels


KIND = ReceiverKind(
    "alertmanager",
    (
        OwnKey("labels", "texts", "labels to add to every alert.", parse=labelled),
        OwnKey("repeat_interval", "duration", "how often open alarms are sent again.", default=60_000),
    ),
    configure,
    groups=True,
    reads_digests=False,
)
