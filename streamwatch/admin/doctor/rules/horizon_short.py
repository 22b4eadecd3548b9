"""Labels come after their predictions have expired."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight
from streamwatch.lab.inspection.horizon import duration_text

LEAST: Final = 0.01


def _find(facts: Facts) -> Iterator[Finding]:
    late = facts.now.total("labels_late_total")
    joined = facts.now.total("labels_joined_total")
    if not late or late < LEAST * (late + joined):
        return
    horizon = facts.configured.horizon_ms if facts.configured else None
    yield Finding(
        Weight.INCOMPLETE,
        "join.horizon",
        f"is too short for {late / (late + joined):.1%} of the labels: {late:,.0f} arrived after expiry",
        "labels take longer than predictions wait"
        + (f" ({duration_text(horizon)})" if horizon else "")
        + "; late labels differ from early ones, so the accuracy is that of quick labels",
        "join: {horizon: …}: try twice as long; streamwatch inspect shows the delays",
    )


RULE = Rule("horizon_short", _find)
