"""Slack's incoming webhooks: a header, sentences, and the figures.

A webhook cannot change a posted message, so each update of an incident is a new message with the incident's
id at the end. Names come from records: `&`, `<` and `>` are escaped, so that no model's name can mention a
channel or contain a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any

import msgspec

from streamwatch.core.alerting.notification import Notification
from streamwatch.edge.receivers.kind import (
    Configured,
    EndpointSpec,
    HttpRequestBody,
    ReceiverKind,
    ReceiverOptions,
)
from streamwatch.edge.receivers.texts import class_of, description, iso, labelled, link, share, title
from streamwatch.edge.receivers.texts import figures as hint_figures

_HEADER = 150
_SECTION = 3_000
"""Characters that Slack accepts in a header (`_HEADER`) and in a section (`_SECTION`)."""
_SIGNS = {"firing": "🔴", "updated": "🟠", "resolved": "🟢", "digest": "📋", "retraining": "🔁"}


@dataclass(frozen=True, slots=True)
class Slack:
    """`Format` for one Slack channel."""

    external_url: str = ""

    def request_body(self, notification: Notification, now_ms: int) -> HttpRequestBody:
        """Make a message of blocks, with one line of plain text for pop-ups."""
        del now_ms
        sign = _SIGNS[notification.kind]
        if notification.hint is not None and notification.kind == "firing":
            sign = "🟡"  # no alarm
        if notification.comparison is not None:
            sign = "⚪" if notification.kind == "resolved" else "🏆"
        headline = f"{sign} {title(notification)}"
        blocks: list[dict[str, Any]] = [
            {
                "type": "header",
                "text": {"type": "plain_text", "text": _cut(headline, _HEADER), "emoji": True},
            },
            {"type": "section", "text": _markdown(description(notification, self.external_url))},
        ]
        if notification.parts:
            figures = {
                "Model": notification.model,
                "Detectors": ", ".join(notification.detectors),
                "Severity": notification.severity,
            }
            drifts = [part for part in notification.parts if part.alarm.judgement is None]
            if drifts:
                newest = max(drifts, key=lambda part: part.alarm.outcome)
                figures["Error"] = f"{share(newest.before)} → {share(newest.alarm.after)}"
            for judgement in (part.alarm.judgement for part in notification.parts):
                if judgement is not None and judgement.basis == "cohorts":
                    figures["Verdict"] = f"by cohorts{f', {judgement.status}' * bool(judgement.status)}"
            blocks.append(_fields(figures))
        if (hint := notification.hint) is not None:
            active = hint.as_notified
            what = "Mean score" if active.predicted_class is None else f"Share of {class_of(active)}"
            figures = {"Model": hint.model, "Severity": notification.severity, what: hint_figures(active)}
            blocks.append(_fields(figures))
        if (pair := notification.comparison) is not None:
            figures = {"Challenger": pair.challenger, "Champion": pair.champion}
            figures["Verdict"] = f"by {pair.basis}{f', {pair.status}' * bool(pair.status)}"
            blocks.append(_fields(figures))
        if notification.labels or notification.runbook_url:
            context = [labelled(notification.labels), notification.runbook_url]
            blocks.append({"type": "context", "elements": [_markdown(" · ".join(filter(None, context)))]})
        footer = f"{notification.incident} · {iso(notification.issued_ms)}"
        blocks.append({"type": "context", "elements": [_markdown(footer)]})
        if self.external_url:
            text = {"type": "plain_text", "text": "Open streamwatch"}
            button = {"type": "button", "text": text, "url": link(self.external_url, notification)}
            blocks.append({"type": "actions", "elements": [button]})
        message = {
            "text": _cut(headline, _SECTION),
            "blocks": blocks,
            "mrkdwn": False,
            "parse": "none",
            "unfurl_links": False,
            "unfurl_media": False,
        }
        return HttpRequestBody(msgspec.json.encode(message))


def escaped(text: str) -> str:
    """Escape the three characters that have a meaning in Slack's texts: `&`, `<`, `>`."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, most: int) -> str:
    """Escape a text and cut it to `most` characters, never inside an escape."""
    kept = escaped(text)
    if len(kept) <= most:
        return kept
    sizes = accumulate(map(len, map(escaped, text)))
    return f"{escaped(text[: sum(1 for _ in takewhile(lambda size: size < most, sizes))])}…"


def _markdown(text: str) -> dict[str, str | bool]:
    """Text object in which Slack makes no links of names that look like addresses or channels."""
    return {"type": "mrkdwn", "text": _cut(text, _SECTION), "verbatim": True}


def _fields(figures: Mapping[str, str]) -> dict[str, Any]:
    fields = [_markdown(f"{name}: {value}") for name, value in figures.items()]
    return {"type": "section", "fields": fields}


def configure(spec: EndpointSpec, options: ReceiverOptions) -> Configured:
    """Make the format for an incoming webhook."""
    return Configured(spec, Slack(options.external_url))


KIND = ReceiverKind("slack", (), configure)
