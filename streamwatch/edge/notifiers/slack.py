"""Slack's incoming webhooks: a header, a sentence, and the figures.

Names come from records: `&`, `<` and `>` are escaped, so that no model can mention a channel or plant a link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from streamwatch.core.notices import Notice
from streamwatch.edge.notifiers.letter import Letter
from streamwatch.edge.notifiers.wording import description, iso, share, title

_HEADER = 150
_SECTION = 3_000
"""Characters Slack takes in a header and in a section."""
_SIGNS = {"firing": "🔴", "resolved": "🟢", "digest": "📋"}


@dataclass(frozen=True, slots=True)
class Slack:
    """Letters for one channel."""

    external_url: str = ""

    def letter(self, notice: Notice, now_ms: int) -> Letter:
        """The notice as blocks, with a plain line for notifications."""
        del now_ms
        headline = f"{_SIGNS[notice.kind]} {title(notice)}"
        blocks: list[dict[str, Any]] = [
            {
                "type": "header",
                "text": {"type": "plain_text", "text": _cut(headline, _HEADER), "emoji": True},
            },
            {"type": "section", "text": _markdown(description(notice))},
        ]
        alarm = notice.alarm
        if alarm is not None:
            figures = {
                "Model": alarm.model,
                "Detector": alarm.detector,
                "Severity": notice.severity,
                "Error": f"{share(notice.before)} → {share(alarm.after)}",
            }
            fields = [_markdown(f"{name}: {value}") for name, value in figures.items()]
            blocks.append({"type": "section", "fields": fields})
        footer = f"{notice.firing_id} · {iso(notice.issued_ms)}"
        blocks.append({"type": "context", "elements": [_markdown(footer)]})
        if self.external_url:
            text = {"type": "plain_text", "text": "Open streamwatch"}
            button = {"type": "button", "text": text, "url": self.external_url}
            blocks.append({"type": "actions", "elements": [button]})
        return Letter(msgspec.json.encode({"text": _cut(headline, _SECTION), "blocks": blocks}))


def escaped(text: str) -> str:
    """The three characters with a meaning of their own in Slack's texts."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, most: int) -> str:
    """Escaped, and short enough; never cut inside an escape."""
    kept = escaped(text)
    while len(kept) > most:
        text = text[:-1]
        kept = f"{escaped(text)}…"
    return kept


def _markdown(text: str) -> dict[str, str]:
    return {"type": "mrkdwn", "text": _cut(text, _SECTION)}
