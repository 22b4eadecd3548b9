"""Predictions or labels are evicted because too many wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight

LIMITS: Final[Mapping[str, str]] = {
    "predictions_evicted_total": "max_pending",
    "labels_evicted_total": "max_labels",
    "dedup_entries_evicted_total": "max_dedup_entries",
}


def _find(facts: Facts) -> Iterator[Finding]:
    for name, limit in LIMITS.items():
        if count := facts.now.total(name):
            yield Finding(
                Weight.INCOMPLETE,
                f"join.{limit}",
                f"is reached: {count:,.0f} of the oldest were evicted",
                "more entries wait than the limit allows: labels are slower or rarer than expected",
                f"join: {{{limit}: …}} (streamwatch check computes the cost), or a shorter join.horizon",
            )


RULE = Rule("evicted", _find)
