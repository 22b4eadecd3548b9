"""All models at a glance: one short row each, the same numbers as `/api/v1/models` under one forgetting.

`GET /api/v1/overview`::

    {"published_timestamp_seconds": 1760000000.5, "forgetting": "fading:0.999", "rule": "better: …",
     "models": {"m": {"outcomes": 1200, "accuracy": 0.91, "lower": 0.88, "upper": 0.94,
                      "effective_sample_size": 1100.0, "persistent": 0.85, "majority": 0.6, "kappa_plus": 0.5,
                      "verdict": "better", "verdict_since_timestamp_seconds": 1759990000.0,
                      "verdict_since_outcome": 17, "lead": 0.06, "lead_lower": 0.03, "lead_upper": 0.09,
                      "alarms": 2, "last_alarm_timestamp_seconds": 1759999990.0,
                      "delay_median_seconds": 1.2, "delay_p90_seconds": 3.4, "pending": 17,
                      "joined": 0.97, "warning": "no label has matched any of 120 predictions",
                      "trouble": "incident", "incidents": 1, "incident_severity": "warning",
                      "incident_since_timestamp_seconds": 1759999990.0,
                      "verdict_before": "open", "verdict_changed_timestamp_seconds": 1759990100.0,
                      "first_horizon_ends_timestamp_seconds": 1761200000.0, "labels_assumed_as": "legit"}},
     "alarms": [{"model": "m", "detector": "adwin", "ordinal": 2, …}]}

`trouble` is the first that holds of worse, incident, warning, open and better: the order in which models need
a look (`trouble`). `joined` is the share of predictions that have met their label so far. `warning` says what
is silently wrong, `waiting` why a model that predicts has no outcome yet. `verdict_before` is the verdict
before the last change of it that is among the recent alarms.
`first_horizon_ends_timestamp_seconds` is there until the first prediction is one horizon old: until then only
quick labels are in. `labels_assumed_as` is there where predictions without a label count as a class
(`join.on_expiry`). Undefined values are absent. `alarms` are the latest, newest first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from streamwatch.core.series import Family, Histogram, Report
from streamwatch.core.specs import HEADLINE
from streamwatch.edge.web.json_text import JSON, encode, number
from streamwatch.edge.web.quantiles import quantile
from streamwatch.edge.web.routes.alarms import VERDICTS, told
from streamwatch.edge.web.routes.trouble import (
    caveats_of,
    incidents_of,
    labels_stopped,
    trouble_of,
    verdict_changes,
    warning_of,
)

Row: TypeAlias = "dict[str, float | str]"
ALARMS_SHOWN = 50

LOWER = "hoeffding"
UPPER = "hoeffding_upper"
"""The bounds that assume least: any losses in [0, 1], as long as they are independent."""

RULE = (
    "better or worse: currently, than no change, which predicts the previous label, by the utility that "
    "monitors.utility sets for the model; open: neither is shown. If losses do not depend on "
    "earlier ones, the verdict on one model and opponent is false within monitors.verdict_outcomes outcomes "
    "with probability monitors.confidence_delta at most, however often one looks; it holds "
    "until the opposite is shown, and opens when nothing confirms it for as many outcomes"
)

_PLAIN = {"outcomes_total": "outcomes", "pending_predictions": "pending"}
_FORGETTING = {
    "accuracy_ratio": "accuracy",
    "effective_sample_size": "effective_sample_size",
    "kappa_plus": "kappa_plus",
}
_JUDGED = (
    "verdict_since_timestamp_seconds",
    "verdict_since_outcome",
    "lead",
    "lead_lower",
    "lead_upper",
)
_NAMED = {
    ("accuracy_bound_ratio", LOWER): "lower",
    ("accuracy_bound_ratio", UPPER): "upper",
    ("baseline_accuracy_ratio", "persistent"): "persistent",
    ("baseline_accuracy_ratio", "majority"): "majority",
    ("verdict", HEADLINE): "verdict",
    **{(name, HEADLINE): name for name in _JUDGED},
}
_JOINED, _ACCEPTED = "model_predictions_joined_total", "model_predictions_total"
_INVALID = "model_records_invalid_total"
_LAST_PREDICTION, _LAST_LABEL = "last_prediction_timestamp_seconds", "last_label_timestamp_seconds"
_BESIDE = {_JOINED, _ACCEPTED, _INVALID, _LAST_PREDICTION, _LAST_LABEL}
"""Families that are not read sample by sample."""
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
    families = {family.name: family for family in report.families if family.name in _READ | _BESIDE}
    forgetting = main_forgetting(families.get("accuracy_ratio"))
    rows: dict[str, Row] = {}
    for family in families.values():
        if family.name in _READ:
            _read(family, forgetting, rows)
    _join(families.get(_JOINED), families.get(_ACCEPTED), rows)
    if (invalid := families.get(_INVALID)) is not None:
        for (model, *_), value in invalid.samples:
            if not isinstance(value, Histogram):
                rows.setdefault(model, {})["invalid"] = value
    _add_signs(rows, report, families)
    for row in rows.values():
        row["verdict"] = VERDICTS[int(_number(row, "verdict") or 0.0)]
        row["trouble"] = trouble_of(row)
    return Overview(report.published_ms, forgetting, dict(sorted(rows.items())))


def _add_signs(rows: dict[str, Row], report: Report, families: Mapping[str, Family]) -> None:
    """Put what is no number of a family into the rows: warnings, caveats, incidents, changes of verdict."""
    stopped = labels_stopped(
        families.get(_LAST_PREDICTION), families.get(_LAST_LABEL), families.get("label_delay_seconds")
    )
    for model in rows.keys() | report.details.keys():
        details = report.details.get(model, {})
        if warning := "; ".join(filter(None, (warning_of(details), stopped.get(model)))):
            rows.setdefault(model, {})["warning"] = warning
        if model in rows:
            rows[model] |= {**caveats_of(details), **incidents_of(details)}
    for model, change in verdict_changes(report.alarms).items():
        if model in rows:
            rows[model] |= change


def main_forgetting(accuracy: Family | None) -> str | None:
    """The fading one if there is one: the recent past, without the jumps of a window."""
    if accuracy is None:
        return None
    at = accuracy.labels.index("forgetting")
    names = list(dict.fromkeys(values[at] for values, _ in accuracy.samples))
    return next((name for name in names if name.startswith("fading:")), names[0] if names else None)


def _join(joined: Family | None, accepted: Family | None, rows: dict[str, Row]) -> None:
    """Put the share of predictions that met their label into the rows, and who waits for the first label."""
    if joined is None or accepted is None:
        return
    totals = {values[0]: value for values, value in accepted.samples if not isinstance(value, Histogram)}
    for (model, *_), value in joined.samples:
        if not isinstance(value, Histogram) and totals.get(model):
            row = rows.setdefault(model, {})
            row["joined"] = value / totals[model]
            if not value and not row.get("outcomes"):
                row["waiting"] = f"no label has matched any of {totals[model]:,.0f} predictions yet"


def _read(family: Family, forgetting: str | None, rows: dict[str, Row]) -> None:
    """Put a family's samples where they belong in the rows; other forgettings are left out."""
    at = {label: index for index, label in enumerate(family.labels)}
    of_model, of_forgetting = at["model"], at.get("forgetting")
    which = at.get("bound", at.get("baseline", at.get("opponent")))
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
