"""Route of the overview: a short row for each model, with numbers of `/api/v1/models` under one forgetting.

`GET /api/v1/overview`::

    {"published_timestamp_seconds": 1760000000.5, "forgetting": "fading:0.999", "rule": "better: …",
     "models": {"m": {"outcomes": 1200, "accuracy": 0.91, "lower": 0.88, "upper": 0.94,
                      "effective_sample_size": 1100.0, "no_change": 0.85, "majority": 0.6, "kappa_plus": 0.5,
                      "verdict": "better", "verdict_since_timestamp_seconds": 1759990000.0,
                      "verdict_since_outcome": 17, "lead": 0.06, "lead_lower": 0.03, "lead_upper": 0.09,
                      "alarms": 2, "last_alarm_timestamp_seconds": 1759999990.0,
                      "last_prediction_timestamp_seconds": 1760000000.1,
                      "last_label_timestamp_seconds": 1759999998.9,
                      "delay_median_seconds": 1.2, "delay_p90_seconds": 3.4,
                      "delay_median_within_seconds": 5.0, "delay_p90_within_seconds": 5.0, "pending": 17,
                      "joined": 0.97, "warning": "no label has matched any of 120 predictions",
                      "warning_page": "deploy/runbooks/NothingJoins.md",
                      "trouble": "incident", "incidents": 1, "incident_severity": "warning",
                      "incident_since_timestamp_seconds": 1759999990.0,
                      "verdict_before": "open", "verdict_changed_timestamp_seconds": 1759990100.0,
                      "first_horizon_ends_timestamp_seconds": 1761200000.0, "labels_assumed_as": "legit"}},
     "alarms": [{"model": "m", "detector": "adwin", "ordinal": 2, …}]}

`verdict` is by cohorts of prediction time if `monitors.cohort_verdicts` is set and there is one
(`headline_of`). The row then has `verdict_opponent` (`persistent_at_prediction` or `majority`),
`verdict_status` (`early` or `confirmed`) and `verdict_age_seconds`, the age at which predictions are judged;
`verdict_delays_moved_of` (`errors`, `hits`, or both) if label delays have changed on which an early verdict
relies. `verdict_provisional` (1) means that there is no verdict by cohorts yet, and `verdict` is the one in
the order of labels. `no_change` is the accuracy of the opponent of the verdict: by cohorts the last label
known when the prediction was made, in the order of labels the previous label (`no_change_of`).
`labels_sampled_ratio` is present where labels are requested with a known probability: accuracy, verdict and
lead are then from labels weighted by it (`sampled_headline_of`), and there is no baseline.

`trouble` is the first that applies of worse, incident, warning, open and better, the order in which models
need attention (`trouble_of`). `joined` is the share of predictions that are matched with a label so far.
`warning` names an error that no number shows, `warning_page` the page of the documentation with the remedy,
`waiting` the reason why a model that predicts has no outcome yet. `verdict_before` is the verdict before its
last change, if that is among the recent alarms. `first_horizon_ends_timestamp_seconds` is present until the
first prediction is one horizon old, or observed delays show that hardly any label takes longer: until then,
only quick labels are in. `labels_assumed_as` is present where predictions without a label count as a class
(`join.on_expiry`), `evaluation_since_timestamp_seconds` once a setting was changed that decides how outcomes
are made. Delays are counted in buckets: `delay_median_within_seconds` is a bound that half of them do not
exceed, `delay_median_seconds` an estimate within the bucket. Undefined values are absent. `alarms` are the
latest, newest first.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from streamwatch.core.estimators.registers.fleet import VERDICT_WORDS
from streamwatch.core.metrics.series import (
    Column,
    Columns,
    Family,
    Histogram,
    HistogramColumn,
    Report,
    detail_at,
    with_parts,
)
from streamwatch.core.records.events import Alarm
from streamwatch.core.specs import HEADLINE
from streamwatch.edge.web import documents
from streamwatch.edge.web.details import Caveats
from streamwatch.edge.web.documents import Trouble
from streamwatch.edge.web.ports import Asked, Route, encode, number
from streamwatch.edge.web.routes.json_api import alarm_document

# Headline of a model: its verdict against no change and against the majority.
#
# A verdict in the order of labels may be false where labels of hits and of errors have different delays and
# the traffic changes. So the headline is the verdict by cohorts of prediction time as soon as there is one;
# until then it is the verdict in the order of labels, marked as provisional.
# `headline_of` in `core.estimators.registers.cohorts.life` decides which of the verdicts by cohorts, against
# either opponent, it is.


Fields = dict[str, "float | str"]

REPLACED = (
    "verdict_since_timestamp_seconds",
    "verdict_earliest_timestamp_seconds",
    "verdict_latest_timestamp_seconds",
    "verdict_since_outcome",
    "lead",
    "lead_lower",
    "lead_upper",
)
"""Fields of the verdict in the order of labels, which are removed from a row with a verdict by cohorts."""

UNWEIGHTED = (
    *("accuracy", "lower", "upper", "effective_sample_size", "no_change", "majority", "kappa_plus"),
    *("verdict_provisional", "verdict_status", "verdict_delays_moved_of"),
    *("verdict_utility", "verdict_age_seconds", *REPLACED),
    *("verdict_before", "verdict_changed_timestamp_seconds"),
)
"""Fields from unweighted outcomes, which are removed from a row where labels are sampled."""


def headline_of(details: Mapping[str, object]) -> Fields:
    """Return the fields of a row that the headline sets.

    For a verdict in the order of labels these are only `verdict_utility`, and `verdict_provisional` while a
    verdict by cohorts is still to come. `verdict_opponent` is the opponent that the model is worse than, or
    else the one over which its lead is smaller. `lead` and its bounds are over this opponent; undefined ones
    are absent.
    """
    headline = details.get("headline")
    utility = details.get("utility")
    judged: Fields = {"verdict_utility": str(utility)} if utility in {"balanced", "costs"} else {}
    if (basis := detail_at(headline, "basis")) != "cohorts":
        return judged | ({"verdict_provisional": 1.0} if basis == "labels" else {})
    opponents = cast("Mapping[str, Mapping[str, Any]]", detail_at(details, "cohorts", "opponents"))
    chosen = detail_at(headline, "opponent")
    if not isinstance(chosen, str):
        chosen = min(opponents, key=lambda name: (opponents[name].get("lead", 0.0), name))
    row: Fields = judged | {"verdict": str(detail_at(headline, "verdict")), "verdict_opponent": chosen}
    times = ("since_timestamp_seconds", "earliest_timestamp_seconds", "latest_timestamp_seconds")
    row |= _named_numbers(headline, {name: f"verdict_{name}" for name in times})
    if isinstance(status := detail_at(headline, "status"), str):
        row["verdict_status"] = status
    row |= _named_numbers(opponents[chosen], {"lead": "lead", "lower": "lead_lower", "upper": "lead_upper"})
    return row | _named_numbers(detail_at(details, "cohorts"), {"age_seconds": "verdict_age_seconds"})


def delays_moved_of(details: Mapping[str, object]) -> Fields:
    """Return the field with the kinds of labels whose delays have changed; empty without any."""
    moved: Mapping[str, object] = detail_at(details, "late_labels", "delays_moved") or {}
    return {"verdict_delays_moved_of": " and ".join(sorted(moved))} if moved else {}


def sampled_headline_of(details: Mapping[str, object]) -> Fields:
    """Return the fields of a row that estimates from sampled labels set; empty without such labels.

    `verdict` is open while a lead has no interval. `labels_sampled_ratio` is the mean probability of a
    request; `labels_sampled_arrived_ratio` is present where requested labels are missing, and
    `labels_sampled_without_ratio` where some predictions carry no probability.
    """
    found = details.get("sampled_labels")
    leads = detail_at(found, "leads")
    if not isinstance(leads, Mapping):
        return {}
    by_opponent = cast("Mapping[str, Mapping[str, Any]]", leads)
    verdicts = {lead["verdict"] for lead in by_opponent.values()}
    verdict = "worse" if "worse" in verdicts else "better" if verdicts == {"better"} else "open"
    shown = {
        name: lead
        for name, lead in by_opponent.items()
        if "value" in lead and (verdict == "open" or lead["verdict"] == verdict)
    }
    row: Fields = {"verdict": verdict}
    if shown:
        opponent = min(shown, key=lambda name: (shown[name]["value"], name))
        row["verdict_opponent"] = opponent
        leading = {"value": "lead", "lower": "lead_lower", "upper": "lead_upper"}
        row |= _named_numbers(shown[opponent], leading)
    names = {"value": "accuracy", "lower": "lower", "upper": "upper"}
    names["effective_labels"] = "effective_sample_size"
    row |= _named_numbers(detail_at(found, "accuracy"), names)
    row |= _named_numbers(found, {"share_expected": "labels_sampled_ratio"})
    if detail_at(found, "labels_missing") is True:
        row |= _named_numbers(found, {"arrived_ratio": "labels_sampled_arrived_ratio"})
    if detail_at(found, "share_without_probability"):
        row |= _named_numbers(found, {"share_without_probability": "labels_sampled_without_ratio"})
    return row


def _named_numbers(found: object, names: Mapping[str, str]) -> Fields:
    """Return the numbers among `names` that are present, under their names in a row."""
    values = ((name, detail_at(found, source)) for source, name in names.items())
    return {name: value for name, value in values if isinstance(value, float)}


# Signs besides the verdict that a model needs attention: open incidents, changes of verdict, warnings,
# caveats.


TROUBLES: tuple[Trouble, ...] = ("worse", "incident", "warning", "open", "better")
"""Kinds of trouble, the most urgent first."""
SILENCE_SECONDS: Final = 3_600.0
"""Least time without labels after which they count as stopped, as in the alert rule LabelsStopped."""


def trouble_of(row: Mapping[str, float | str]) -> Trouble:
    """Return the most urgent trouble of a row."""
    if row.get("verdict") == "worse":
        return "worse"
    if row.get("incidents"):
        return "incident"
    if row.get("warning"):
        return "warning"
    return "better" if row.get("verdict") == "better" else "open"


RUNBOOKS: Final = "deploy/runbooks/"
"""Folder of the documentation's pages on alerts."""


_WARNING: Final = frozenset({"classes_disjoint", "scores_as_classes", "nothing_joins", "sampled_labels"})
"""Fields of the details of a model that a warning may come from."""


def warnings_of(details: Mapping[str, object]) -> list[tuple[str, str]]:
    """List errors of a model that no number shows, as (warning, page of the documentation)."""
    warnings: list[tuple[str, str]] = []
    if _WARNING.isdisjoint(details):
        return warnings
    predicted = detail_at(details, "classes_disjoint", "predicted_class")
    true = detail_at(details, "classes_disjoint", "true")
    if isinstance(predicted, list | tuple) and isinstance(true, list | tuple):
        warning = (
            f"predicted classes ({', '.join(map(str, predicted))}) and true classes "
            f"({', '.join(map(str, true))}) have nothing in common"
        )
        warnings.append((warning, f"{RUNBOOKS}ClassesDisjoint.md"))
    scores = detail_at(details, "scores_as_classes", "predicted_class")
    if isinstance(scores, list | tuple):
        warning = (
            f"predicted classes are scores ({', '.join(map(str, scores))}): map them as prediction: "
            "{score: …, threshold: …, above: …, below: …}"
        )
        warnings.append((warning, f"{RUNBOOKS}ScoresAsClasses.md"))
    predictions = detail_at(details, "nothing_joins", "predictions")
    if isinstance(predictions, int):
        warning = f"no label has matched any of {predictions:,} predictions"
        warnings.append((warning, f"{RUNBOOKS}NothingJoins.md"))
    arrived = detail_at(details, "sampled_labels", "arrived_ratio")
    if isinstance(arrived, float):
        if detail_at(details, "sampled_labels", "labels_missing") is True:
            warning = (
                f"only {arrived:.0%} of the labels that were asked for have come, of predictions whose "
                "labels should be there: estimates hold only if labels are lost regardless of the outcome"
            )
            warnings.append((warning, "docs/sampled-labels.md"))
        if detail_at(details, "sampled_labels", "probabilities_differ") is True:
            warning = "labels are not asked for as often as label_probability says: estimates are wrong"
            warnings.append((warning, "docs/sampled-labels.md"))
    return warnings


CAVEATS: Final = tuple(name for name in Caveats.__annotations__ if name != "utility")
"""Fields of caveats, the same in `details` and in a row."""


def caveats_of(details: Mapping[str, object]) -> dict[str, float | str]:
    """Return the caveats in a model's details."""
    found = [(name, details[name]) for name in CAVEATS if name in details]
    return {name: value for name, value in found if isinstance(value, float | int | str)}


def incidents_of(details: Mapping[str, object]) -> dict[str, float | str]:
    """Return the number of open incidents, and severity and beginning of the latest; empty without any."""
    incidents = cast("Sequence[Mapping[str, Any]]", details.get("open_incidents", ()))
    if not incidents:
        return {}
    return {
        "incidents": len(incidents),
        "incident_severity": incidents[-1]["severity"],
        "incident_since_timestamp_seconds": incidents[-1]["started_timestamp_seconds"],
    }


def labels_of(details: Mapping[str, object]) -> dict[str, float | str]:
    """Return the field with the model's labels from settings; empty without any."""
    labels = cast("Mapping[str, str]", details.get("labels", {}))
    return {"labels": ", ".join(f"{name}={value}" for name, value in labels.items())} if labels else {}


def verdict_changes(alarms: Sequence[Alarm]) -> dict[str, dict[str, float | str]]:
    """Find, for each model, its verdict before the last change among recent alarms."""
    found: dict[str, dict[str, float | str]] = {}
    for alarm in alarms:
        if alarm.judgement is not None and alarm.judgement.is_headline and alarm.before != alarm.after:
            found[alarm.model] = {
                "verdict_before": VERDICT_WORDS[int(alarm.before)],
                "verdict_changed_timestamp_seconds": alarm.event_ms / 1000,
            }
    return found


def labels_stopped(
    predicted: Family | None, labelled: Family | None, delays: Family | None
) -> dict[str, str]:
    """Return a warning for each model whose predictions continue while its labels have stopped.

    Parameters
    ----------
    predicted, labelled
        Event times of the latest prediction and of the latest label.
    delays
        Label delays: a model's labels have stopped when the latest label is older than the latest prediction
        by more than `SILENCE_SECONDS` and by more than twice what 99 % of its labels took.
    """
    if predicted is None or labelled is None or delays is None:
        return {}
    latest, at = _by_model(predicted), _by_model(labelled)
    silences = {model: latest.get(model, since) - since for model, since in at.items()}
    silent = {model: silence for model, silence in silences.items() if silence > SILENCE_SECONDS}
    if not silent:
        return {}
    of_model = delays.labels.index("model")
    usual = {
        values[of_model]: quantile(0.99, value, delays.bounds)
        for values, value in delays.samples
        if values[of_model] in silent and isinstance(value, Histogram)
    }
    return {
        model: f"labels have stopped: none in the last {_hours(silence)} of its predictions"
        for model, silence in silent.items()
        if silence > 2 * (usual.get(model) or 0.0)
    }


def _by_model(family: Family) -> dict[str, float]:
    at = family.labels.index("model")
    return {values[at]: value for values, value in family.samples if not isinstance(value, Histogram)}


def _hours(seconds: float) -> str:
    hours = seconds / 3_600
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.0f} days"


Row: TypeAlias = "dict[str, float | str]"
ALARMS_SHOWN = 50

LOWER = "hoeffding"
UPPER = "hoeffding_upper"
"""Bounds with the weakest assumptions: independent losses in [0, 1], of any distribution."""

RULE = (
    "better or worse: currently, than no change, which predicts the previous label, by the utility that "
    "monitors.utility sets for the model; with verdict_opponent, worse than that one, or better than both no "
    "change and the majority, by the same utility; open: neither is shown. If losses do not depend on "
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
_AT_PREDICTION = "persistent_at_prediction"
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
    ("baseline_accuracy_ratio", "persistent"): "no_change",
    ("baseline_accuracy_ratio", "persistent_at_prediction"): _AT_PREDICTION,
    ("baseline_accuracy_ratio", "majority"): "majority",
    ("verdict", HEADLINE): "verdict",
    **{(name, HEADLINE): name for name in _JUDGED},
}
_JOINED, _ACCEPTED = "model_predictions_joined_total", "model_predictions_total"
_INVALID = "model_records_invalid_total"
_LAST_PREDICTION, _LAST_LABEL = "last_prediction_timestamp_seconds", "last_label_timestamp_seconds"
_LATEST = {_LAST_PREDICTION, _LAST_LABEL, "last_alarm_timestamp_seconds"}
"""Times of which a row has the latest."""
_BESIDE = {_JOINED, _ACCEPTED, _INVALID}
"""Families that `_read` does not handle."""
_READ = {
    *_LATEST,
    "alarms_total",
    "label_delay_seconds",
    *_PLAIN,
    *_FORGETTING,
} | {name for name, _ in _NAMED}


@dataclass(frozen=True, slots=True)
class Overview:
    """Rows of one report."""

    forgetting: str | None
    rows: Mapping[str, Row]


class OverviewExporter:
    """Exporter of `/api/v1/overview`."""

    routes: Sequence[Route] = (
        Route("/api/v1/overview", "One short row for every model, and the latest alarms", "Overview"),
    )

    def render(self, asked: Asked) -> bytes:
        """Render every model's row."""
        seen = overview(asked.report)
        latest = asked.report.alarms[-ALARMS_SHOWN:] if asked.report else ()
        return encode(
            documents.Overview(
                asked.published,
                seen.forgetting,
                RULE,
                cast("dict[str, documents.Row]", seen.rows),
                [alarm_document(alarm) for alarm in reversed(latest)],
            )
        )


def overview(report: Report | None) -> Overview:
    """Make a row for each model that a report has numbers of."""
    if report is None:
        return Overview(None, {})
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
        row.pop(_AT_PREDICTION, None)
        if not isinstance(row.get("verdict"), str):
            row["verdict"] = VERDICT_WORDS[int(_number(row, "verdict") or 0.0)]
        row["trouble"] = trouble_of(row)
    return Overview(forgetting, dict(sorted(rows.items())))


_PARTS: Final = ("confusion",)
"""Parts of the details of a model that its row needs.

Where the headline is by cohorts, it also needs these, and where that verdict is early, the delays.
"""


def _add_signs(rows: dict[str, Row], report: Report, families: Mapping[str, Family]) -> None:
    """Add warnings, caveats, incidents and changes of verdict to the rows."""
    stopped = labels_stopped(
        families.get(_LAST_PREDICTION), families.get(_LAST_LABEL), families.get("label_delay_seconds")
    )
    changes = verdict_changes(report.alarms)
    for model in dict.fromkeys((*rows, *report.details)):
        details = with_parts(report.details, model, _PARTS)
        if detail_at(details, "headline", "basis") == "cohorts":
            judged = with_parts(report.details, model, ("cohorts",))
            details = {**details, "cohorts": judged.get("cohorts")}
        silence = [(stopped[model], f"{RUNBOOKS}LabelsStopped.md")] if model in stopped else []
        if warnings := [*warnings_of(details), *silence]:
            row = rows.setdefault(model, {})
            row["warning"], row["warning_page"] = (
                "; ".join(warning for warning, _ in warnings),
                warnings[0][1],
            )
        if model in rows:
            row = rows[model]
            row |= {**caveats_of(details), **incidents_of(details), **labels_of(details)}
            row |= changes.get(model, {})
            if headline := headline_of(details):
                _replace_headline(row, headline)
            if row.get("verdict_status") == "early":
                row |= delays_moved_of(with_parts(report.details, model, ("late_labels",)))
        if sampled := sampled_headline_of(details):
            row = rows.setdefault(model, {})
            for name in UNWEIGHTED:
                row.pop(name, None)
            row |= sampled


def _replace_headline(row: Row, headline: Fields) -> None:
    """Replace the verdict in the order of labels, and its no change, by those of a headline by cohorts."""
    if "verdict" in headline:
        for name in (*REPLACED, "no_change"):
            row.pop(name, None)
        if (at_prediction := row.get(_AT_PREDICTION)) is not None:
            row["no_change"] = at_prediction
    row |= headline


def no_change_of(row: Row) -> str:
    """Return the baseline that is no change for a row's verdict."""
    return _AT_PREDICTION if "verdict_opponent" in row else "persistent"


def main_forgetting(accuracy: Family | None) -> str | None:
    """Return the forgetting shown first: a fading one if any, as windows cause jumps; None without any."""
    if accuracy is None:
        return None
    at = accuracy.labels.index("forgetting")
    names = list(dict.fromkeys(values[at] for values, _ in accuracy.samples))
    return next((name for name in names if name.startswith("fading:")), names[0] if names else None)


def _join(joined: Family | None, accepted: Family | None, rows: dict[str, Row]) -> None:
    """Add to rows the share of predictions matched with a label, and which models wait for a first one."""
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
    """Add a family's samples to the rows; those of other forgettings are left out.

    Of a column, all of whose series are alike, it is found out once what they are.
    """
    of_model = family.labels.index("model")
    for part in family.samples.parts if isinstance(family.samples, Columns) else (family.samples,):
        if isinstance(part, Column):
            keys = part.keys
            if (name := _field_of(family, (*keys.before, "", *keys.after), forgetting)) is not None:
                for model, value in zip(keys.models, part.values.tolist(), strict=True):
                    if not math.isnan(value):
                        _put(rows.setdefault(model, {}), name, value)
            continue
        for values, value in part.samples() if isinstance(part, HistogramColumn) else part:
            if (name := _field_of(family, values, forgetting)) is None:
                continue
            if isinstance(value, Histogram):
                _put_delays(rows.setdefault(values[of_model], {}), value, family.bounds)
            elif not math.isnan(value):
                _put(rows.setdefault(values[of_model], {}), name, value)


def _field_of(family: Family, values: Sequence[str], forgetting: str | None) -> str | None:
    """Field of the series with these label values; None if no row shows it.

    Where several series make one field, it has the name of the family.
    """
    named = dict(zip(family.labels, values, strict=True))
    if named.get("forgetting", forgetting) != forgetting:
        return None
    which = named.get("bound", named.get("baseline", named.get("opponent")))
    plain = _PLAIN.get(family.name) or _FORGETTING.get(family.name)
    return plain or (family.name if which is None else _NAMED.get((family.name, which)))


def _put(row: Row, name: str, value: float) -> None:
    """Add a value to a row; alarms of all detectors are added up, of their times the latest is kept."""
    if name == "alarms_total":
        row["alarms"] = (_number(row, "alarms") or 0) + value
    elif name in _LATEST:
        latest = _number(row, name)
        row[name] = number(value if latest is None else max(latest, value))
    else:
        row[name] = number(value)


def _put_delays(row: Row, delays: Histogram, bounds: Sequence[float]) -> None:
    """Add the quantiles of label delays to a row."""
    for share, name in ((0.5, "delay_median"), (0.9, "delay_p90")):
        if (delay := quantile(share, delays, bounds)) is not None:
            row[f"{name}_seconds"] = delay
        if (bound := within(share, delays, bounds)) is not None:
            row[f"{name}_within_seconds"] = bound


def _number(row: Row, name: str) -> float | None:
    value = row.get(name)
    return float(value) if value is not None else None


# Quantiles of a histogram, as Prometheus's `histogram_quantile` estimates them.


def quantile(share: float, histogram: Histogram, bounds: Sequence[float]) -> float | None:
    """Return the value below which `share` of the observations lie, interpolated linearly within buckets.

    It is the highest finite bound if the quantile is beyond that; None without observations or bounds.
    """
    rank, at = _bucket(share, histogram)
    if rank <= 0 or not bounds:
        return None
    if at >= len(bounds):
        return bounds[-1]
    below = histogram.counts[at - 1] if at else 0
    start = bounds[at - 1] if at else 0.0
    inside = histogram.counts[at] - below
    return start + (bounds[at] - start) * (rank - below) / inside if inside else bounds[at]


def within(share: float, histogram: Histogram, bounds: Sequence[float]) -> float | None:
    """Return the least bound that at least `share` of the observations do not exceed.

    None if it is beyond the highest finite bound, and without observations. Unlike `quantile`, which may be
    anywhere in a wide bucket, this is true of the observations themselves.
    """
    rank, at = _bucket(share, histogram)
    return bounds[at] if rank > 0 and at < len(bounds) else None


def _bucket(share: float, histogram: Histogram) -> tuple[float, int]:
    """Rank of the quantile, 0 without observations, and the bucket that contains it."""
    rank = share * histogram.counts[-1]
    return rank, bisect_left(histogram.counts, rank)
