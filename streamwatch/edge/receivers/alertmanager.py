"""Alertmanager's API v2: `POST /api/v2/alerts`, repeated while an alarm is open.

Alertmanager identifies an alert by its labels. They are model, detector and severity, without event time or
ordinal, so that a repetition is the same alert. Each alarm of an incident is an alert of its own; a route
that groups by model, such as the one in `deploy/`, makes them one notification. An open alert's `endsAt` is
four repetitions ahead, as with Prometheus, so that no alert fires for ever once this daemon is gone.
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
"""Time from a digest's issue to its alert's `endsAt`; no later request ends it."""


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """`Format` for one Alertmanager."""

    repeat_interval_ms: int = 60_000
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to every alert."""
    external_url: str = ""
    severities: frozenset[Severity] | None = None
    """Severities of alarms to send; None: all."""

    def request_body(self, notification: Notification, now_ms: int) -> HttpRequestBody:
        """Make alerts for alarms that are open or ended now, or one for a hint, a comparison or a digest."""
        if notification.kind == "digest":
            return _written([self._digest(notification)])
        if notification.hint is not None:
            return _written([self._hint(notification, notification.hint, now_ms)])
        if notification.comparison is not None:
            return _written([self._comparison(notification, notification.comparison, now_ms)])
        # The end of an alarm is sent once: the same alarm may have begun again in a later incident.
        news = notification.news
        parts = (part for part in notification.parts if part.is_open or part.alarm.detector in news)
        return _written([self._alarm(notification, part, now_ms) for part in self._wanted(parts)])

    def reminder(self, open_incidents: Sequence[Notification], now_ms: int) -> HttpRequestBody:
        """Make a request that repeats all open alarms, hints and verdicts on challengers."""
        alarms = [
            self._alarm(incident, part, now_ms)
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

    def _alarm(self, notification: Notification, part: IncidentAlarm, now_ms: int) -> dict[str, Any]:
        return self._alert(
            notification,
            "StreamwatchDrift" if part.alarm.judgement is None else "StreamwatchVerdict",
            {"severity": part.severity, "model": part.alarm.model, "detector": part.alarm.detector},
            _figures(part),
            self._span(part.started_at_ms, part.ended_at_ms, now_ms),
        )

    def _hint(self, notification: Notification, hint: NotifiedHint, now_ms: int) -> dict[str, Any]:
        active = hint.as_notified
        figures = {"event_time": iso(active.given_ms), "ordinal": str(active.ordinal)}
        figures |= {"before": f"{active.before:.6g}", "after": f"{active.now:.6g}"}
        labels = {"model": hint.model, "detector": EARLY_HINT}
        span = self._span(active.given_ms, hint.ended_at_ms, now_ms)
        return self._alert(notification, "StreamwatchEarlyHint", labels, figures, span)

    def _comparison(
        self, notification: Notification, pair: NotifiedComparison, now_ms: int
    ) -> dict[str, Any]:
        figures = {"verdict": "better" if pair.verdict > 0 else "worse", "basis": pair.basis}
        if pair.status:
            figures["status"] = pair.status
        labels = {"model": pair.challenger, "champion": pair.champion, "detector": COMPARISON}
        span = self._span(pair.since_ms, pair.ended_at_ms, now_ms)
        return self._alert(notification, "StreamwatchComparison", labels, figures, span)

    def _digest(self, notification: Notification) -> dict[str, Any]:
        span = {"startsAt": iso(notification.issued_ms), "endsAt": iso(notification.issued_ms + DIGEST_MS)}
        return self._alert(notification, "StreamwatchDriftDigest", {}, {}, span)

    def _span(self, started_ms: int, ended_ms: int | None, now_ms: int) -> dict[str, str]:
        """`startsAt` and `endsAt` of an alert; of an open one, `endsAt` is four repetitions ahead."""
        starts_ms = min(started_ms, now_ms)  # events from the future begin now: no end precedes its start
        if ended_ms is None:
            ends_ms = now_ms + 4 * self.repeat_interval_ms
        else:
            ends_ms = max(starts_ms, min(ended_ms, now_ms))
        return {"startsAt": iso(starts_ms), "endsAt": iso(ends_ms)}

    def _alert(
        self,
        notification: Notification,
        name: str,
        labels: Mapping[str, str],
        figures: Mapping[str, str],
        span: Mapping[str, str],
    ) -> dict[str, Any]:
        """Make an alert; `figures` are annotations, as labels would make each repetition another alert."""
        annotations = {
            "summary": title(notification),
            "description": description(notification, self.external_url),
            "incident": notification.incident,
        }
        if notification.runbook_url:
            annotations["runbook_url"] = notification.runbook_url
        page = link(self.external_url, notification)
        return {
            "labels": {
                **notification.labels,
                **self.labels,
                "alertname": name,
                "severity": notification.severity,
                **labels,
            },
            "annotations": {**annotations, **figures},
            **span,
            **({"generatorURL": page} if page else {}),
        }


def _figures(part: IncidentAlarm) -> dict[str, str]:
    """Annotations with an alarm's figures."""
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
    """Make the format and the reminder for an Alertmanager, its URL completed to that of the API."""
    every_ms: int = options.own["repeat_interval"]
    form = Alertmanager(every_ms, options.own["labels"], options.external_url, spec.severities)
    repeat_interval_seconds = every_ms / 1000
    spec = replace(spec, url=alerts_url(spec.url), repeat_interval_seconds=repeat_interval_seconds)
    return Configured(spec, form, form.reminder)


def alerts_url(url: str) -> str:
    """Append the path of the API to the URL of an Alertmanager, unless the URL has it."""
    bare = URL(url)
    return str(bare.with_path(bare.path.rstrip("/").removesuffix(PATH) + PATH))


RESERVED = ("alertname", "champion", "detector", "model", "severity")
"""Labels that alerts set; settings cannot."""


def labelled(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return the labels; raises ValueError where a name is not valid for Alertmanager or is in `RESERVED`."""
    for name in labels:
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name):
            raise ValueError(f"expected label names of letters, digits and _, got {name!r}")
        if name in RESERVED:
            raise ValueError(f"label {name!r} is reserved: alerts set it themselves")
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
