"""A limit of models, classes, comparisons, values of segments or series is reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from streamwatch.admin.doctor.facts import Facts
from streamwatch.admin.doctor.finding import Finding, Rule, Weight

CAUSES: Final[Mapping[str, str]] = {
    "models": "more models predict than the limit allows, or the mapped model is an id of each run",
    "classes": "more classes appear than the limit allows, or the mapped class is a score or free text",
    "comparisons": "more pairs of models are to be compared than the limit allows",
}
"""By the value of the label `limit`; the setting is `monitors.max_` and that."""
SEGMENTS: Final = "segments"
"""A limit that no setting changes."""


def _find(facts: Facts) -> Iterator[Finding]:
    for limit, count in facts.now.by("records_over_limit_total", "limit").items():
        if count and limit == SEGMENTS:
            yield Finding(
                Weight.INCOMPLETE,
                "segments",
                f"of {count:,.0f} predictions are not distinguished",
                "too many combinations of their values are waiting, or a mapped field is an id",
                "topics.predictions … mapping: {segments: …}: map fields with fewer values",
            )
        elif count:
            yield Finding(
                Weight.NOTHING_TRUE,
                f"monitors.max_{limit}",
                f"is reached: {count:,.0f} records are beyond it",
                CAUSES.get(limit, "more appears than the limit allows"),
                f"monitors: {{max_{limit}: …}}; check the names first: streamwatch inspect lists them",
            )
    if dropped := facts.now.total("series_dropped"):
        yield Finding(
            Weight.INCOMPLETE,
            "monitors.max_series",
            f"is reached: {dropped:,.0f} series are not in /metrics ({_parts(facts)})",
            "models × estimators and classes make more series than the limit allows",
            "monitors: {max_series: …} (streamwatch check computes it), or fewer forgetting or classes; the "
            "API has all numbers, and what rules and dashboards read is never left out",
        )


def _parts(facts: Facts) -> str:
    dropped = facts.now.by("series_dropped", "part")
    return ", ".join(f"{count:,.0f} {part}" for part, count in dropped.items() if count)


RULE = Rule("limits_reached", _find)
