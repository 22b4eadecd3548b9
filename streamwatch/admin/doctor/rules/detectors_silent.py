"""Detectors say nothing yet, because a model has too few outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight

DEFAULT: Final = 100
"""Of `alerts.min_outcomes`."""


def _find(facts: Facts) -> Iterator[Finding]:
    least = facts.configured.min_outcomes if facts.configured else DEFAULT
    for model in facts.models:
        outcomes = facts.now.value("outcomes_total", model=model) or 0.0
        if 0 < outcomes < least:
            yield Finding(
                Weight.WORTH_KNOWING,
                f"model {model}",
                f"has {outcomes:,.0f} outcomes: its alarms are not announced before {least:,}",
                "few labels have arrived so far",
                f"wait, or alerts: {{min_outcomes: {max(1, round(outcomes))}}}",
            )


RULE = Rule("detectors_silent", _find)
