"""Alertmanager's API v2: `POST /api/v2/alerts`, repeated while an alarm is open.

An alert is its labels: model, detector and severity, never event time or ordinal, which would make each
repetition another alert. Each says when it ends if nothing more is heard: after four repetitions, as
Prometheus does, so that nothing burns for ever once this daemon is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from streamwatch.core.notices import Notice
from streamwatch.edge.notifiers.letter import Letter
from streamwatch.edge.notifiers.wording import description, iso, title

PATH = "/api/v2/alerts"
DIGEST_MS = 3_600_000
"""A digest is an alert for so long; nothing ends it."""


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """Letters for one Alertmanager."""

    repeat_ms: int = 60_000
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to every alert."""
    external_url: str = ""

    def letter(self, notice: Notice, now_ms: int) -> Letter:
        """One alert."""
        return _written([self._alert(notice, now_ms)])

    def reminder(self, standing: Sequence[Notice], now_ms: int) -> Letter:
        """All open alarms again."""
        return _written([self._alert(notice, now_ms) for notice in standing])

    def _alert(self, notice: Notice, now_ms: int) -> dict[str, Any]:
        starts_ms, ends_ms = self._span(notice, now_ms)
        alert: dict[str, Any] = {
            "labels": self._labels(notice),
            "annotations": _annotations(notice),
            "startsAt": iso(starts_ms),
            "endsAt": iso(ends_ms),
        }
        if self.external_url:
            alert["generatorURL"] = self.external_url
        return alert

    def _span(self, notice: Notice, now_ms: int) -> tuple[int, int]:
        """From when to when it is on; events from the future begin now: no end may precede its start."""
        match notice.kind:
            case "firing":
                return min(notice.started_at_ms, now_ms), now_ms + 4 * self.repeat_ms
            case "resolved":
                starts_ms = min(notice.started_at_ms, now_ms)
                return starts_ms, max(starts_ms, min(notice.ended_at_ms or now_ms, now_ms))
            case "digest":
                return notice.issued_ms, notice.issued_ms + DIGEST_MS

    def _labels(self, notice: Notice) -> dict[str, str]:
        labels = {**self.labels, "alertname": "StreamwatchDrift", "severity": notice.severity}
        if notice.alarm is None:
            return labels | {"alertname": "StreamwatchDriftDigest"}
        return labels | {"model": notice.alarm.model, "detector": notice.alarm.detector}


def _annotations(notice: Notice) -> dict[str, str]:
    annotations = {"summary": title(notice), "description": description(notice), "notice": notice.firing_id}
    alarm = notice.alarm
    if alarm is not None:
        annotations |= {
            "event_time": iso(alarm.at_ms),
            "ordinal": str(alarm.ordinal),
            "outcome": str(alarm.outcome),
            "statistic": f"{alarm.statistic:.6g}",
            "threshold": f"{alarm.threshold:.6g}",
            "before": f"{notice.before:.6g}",
            "after": f"{alarm.after:.6g}",
        }
    if notice.reason is not None:
        annotations["reason"] = notice.reason
    return annotations


def _written(alerts: list[dict[str, Any]]) -> Letter:
    return Letter(msgspec.json.encode(alerts))
