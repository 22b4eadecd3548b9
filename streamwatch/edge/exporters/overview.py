"""All models at a glance: one short row each, the same numbers as `/api/v1/models` under one forgetting.

`GET /api/v1/overview`::

    {"published_timestamp_seconds": 1760000000.5, "forgetting": "fading:0.999", "rule": "yes: …",
     "models": {"m": {"outcomes": 1200, "accuracy": 0.91, "lower": 0.88, "upper": 0.94,
                      "effective_outcomes": 1100.0, "persistent": 0.85, "majority": 0.6, "kappa_plus": 0.5,
                      "verdict": "yes", "alarms": 2, "last_alarm_timestamp_seconds": 1759999990.0,
                      "delay_median_seconds": 1.2, "delay_p90_seconds": 3.4, "pending": 17}},
     "alarms": [{"model": "m", "detector": "adwin", "ordinal": 2, …}]}

Undefined values are absent. `alarms` are the latest, newest first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from streamwatch.core.series import Family, Histogram, Report
from streamwatch.edge.exporters.alarms import told
from streamwatch.edge.exporters.json_text import JSON, encode, number
from streamwatch.edge.exporters.quantiles import quantile
from streamwatch.edge.exporters.verdict import LOWER, RULE, UPPER, verdict

Row: TypeAlias = "dict[str, float | str]"
ALARMS_SHOWN = 50

_PLAIN = {"outcomes_total": "outcomes", "pending_predictions": "pending"}
_FORGETTING = {
    "accuracy_ratio": "accuracy",
    "effective_outcomes": "effective_outcomes",
    "kappa_plus": "kappa_plus",
}
_NAMED = {
    ("accuracy_bound_ratio", LOWER): "lower",
    ("accuracy_bound_ratio", UPPER): "upper",
    ("baseline_accuracy_ratio", "persistent"): "persistent",
    ("baseline_accuracy_ratio", "majority"): "majority",
}
_READ = {"alarms_total", "last_alarm_timestamp_seconds", "label_delay_seconds", *_PLAIN, *_FORGETTING} | {
    name for name, _ in _NAMED
}


@dataclass(frozen=True, slots=True)
class Overview:
    """Rows of one report."""

    published_ms: int | None
    forgetting: str | None
    rows: Mapping[str, Row]


class OverviewExporter:
    """`/api/v1/overview`: what the status page shows first."""

    routes: Sequence[str] = ("/api/v1/overview",)
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    public = False

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """JSON, whatever is asked for."""
        del accept, asked
        return JSON

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes:
        """Every model's row."""
        del live, media_type, asked
        return encode(document(overview(report), report))


def document(seen: Overview, report: Report | None) -> dict[str, object]:
    """The whole picture as it is sent."""
    return {
        "published_timestamp_seconds": None if seen.published_ms is None else seen.published_ms / 1000,
        "forgetting": seen.forgetting,
        "rule": RULE,
        "models": seen.rows,
        "alarms": [told(alarm) for alarm in reversed(report.alarms[-ALARMS_SHOWN:])] if report else [],
    }


def overview(report: Report | None) -> Overview:
    """One row for each model that has any number."""
    if report is None:
        return Overview(None, None, {})
    families = {family.name: family for family in report.families if family.name in _READ}
    forgetting = main_forgetting(families.get("accuracy_ratio"))
    rows: dict[str, Row] = {}
    for family in families.values():
        _read(family, forgetting, rows)
    for row in rows.values():
        row["verdict"] = verdict(_number(row, "lower"), _number(row, "upper"), _number(row, "persistent"))
    return Overview(report.published_ms, forgetting, dict(sorted(rows.items())))


def main_forgetting(accuracy: Family | None) -> str | None:
    """The fading one if there is one: the recent past, without the jumps of a window."""
    if accuracy is None:
        return None
    at = accuracy.labels.index("forgetting")
    names = list(dict.fromkeys(values[at] for values, _ in accuracy.samples))
    return next((name for name in names if name.startswith("fading:")), names[0] if names else None)


def _read(family: Family, forgetting: str | None, rows: dict[str, Row]) -> None:
    """Put a family's samples where they belong in the rows; other forgettings are left out."""
    at = {label: index for index, label in enumerate(family.labels)}
    of_model, of_forgetting = at["model"], at.get("forgetting")
    which = at.get("bound", at.get("baseline"))
    plain = _PLAIN.get(family.name) or _FORGETTING.get(family.name)
    for values, value in family.samples:
        if of_forgetting is not None and values[of_forgetting] != forgetting:
            continue
        if isinstance(value, Histogram):
            row = rows.setdefault(values[of_model], {})
            for share, name in ((0.5, "delay_median_seconds"), (0.9, "delay_p90_seconds")):
                delay = quantile(share, value, family.bounds)
                if delay is not None:
                    row[name] = delay
            continue
        if math.isnan(value):
            continue
        row = rows.setdefault(values[of_model], {})
        if plain is not None:
            row[plain] = number(value)
        elif which is not None:
            name = _NAMED.get((family.name, values[which]))
            if name is not None:
                row[name] = number(value)
        elif family.name == "alarms_total":
            row["alarms"] = (_number(row, "alarms") or 0) + value
        else:
            latest = _number(row, family.name)
            row[family.name] = number(value if latest is None else max(latest, value))


def _number(row: Row, name: str) -> float | None:
    value = row.get(name)
    return float(value) if value is not None else None
