"""Signs that a model needs a look, beside its verdict: open incidents, changes of it, warnings, caveats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, cast

from streamwatch.core.events import Alarm
from streamwatch.core.series import Family, Histogram, detail_at
from streamwatch.core.specs import HEADLINE
from streamwatch.edge.web.quantiles import quantile
from streamwatch.edge.web.routes.alarms import VERDICTS

Trouble: TypeAlias = Literal["worse", "incident", "warning", "open", "better"]
TROUBLES: tuple[Trouble, ...] = ("worse", "incident", "warning", "open", "better")
"""From what needs a look first to what needs none."""
SILENCE_SECONDS: Final = 3_600.0
"""Labels that are silent for less have not stopped; as in the alert rule LabelsStopped."""


def trouble_of(row: Mapping[str, float | str]) -> Trouble:
    """Find what about a row of the overview needs a look first."""
    if row.get("verdict") == "worse":
        return "worse"
    if row.get("incidents"):
        return "incident"
    if row.get("warning"):
        return "warning"
    return "better" if row.get("verdict") == "better" else "open"


def warning_of(details: Mapping[str, object]) -> str:
    """Say what is silently wrong with a model; empty if nothing is."""
    said: list[str] = []
    predicted = detail_at(details, "classes_disjoint", "predicted_class")
    true = detail_at(details, "classes_disjoint", "true")
    if isinstance(predicted, list | tuple) and isinstance(true, list | tuple):
        said.append(
            f"predicted classes ({', '.join(map(str, predicted))}) and true classes "
            f"({', '.join(map(str, true))}) have nothing in common"
        )
    scores = detail_at(details, "scores_as_classes", "predicted_class")
    if isinstance(scores, list | tuple):
        said.append(
            f"predicted classes are scores ({', '.join(map(str, scores))}): map them as prediction: "
            "{score: …, threshold: …, above: …, below: …}"
        )
    predictions = detail_at(details, "nothing_joins", "predictions")
    if isinstance(predictions, int):
        said.append(f"no label has matched any of {predictions:,} predictions")
    return "; ".join(said)


CAVEATS: Final = (
    "first_horizon_ends_timestamp_seconds",
    "first_horizon_predictions",
    "first_horizon_labelled",
    "first_horizon_only_label",
    "labels_assumed_as",
)
"""Names of caveats, in `details` and in a row."""


def caveats_of(details: Mapping[str, object]) -> dict[str, float | str]:
    """Caveats beside the verdict, under the same names as in `details`."""
    found = ((name, details.get(name)) for name in CAVEATS)
    return {name: value for name, value in found if isinstance(value, float | int | str)}


def incidents_of(details: Mapping[str, object]) -> dict[str, float | str]:
    """Count open incidents, and give the severity and the beginning of the latest; empty without any."""
    incidents = details.get("open_incidents")
    if not isinstance(incidents, list | tuple) or not incidents:
        return {}
    latest = cast("Sequence[object]", incidents)[-1]
    severity, started = detail_at(latest, "severity"), detail_at(latest, "started_timestamp_seconds")
    if not isinstance(severity, str) or not isinstance(started, float):
        return {}
    return {
        "incidents": len(incidents),
        "incident_severity": severity,
        "incident_since_timestamp_seconds": started,
    }


def verdict_changes(alarms: Sequence[Alarm]) -> dict[str, dict[str, float | str]]:
    """Find the verdict on no change that models had before the last change of it, among recent alarms."""
    found: dict[str, dict[str, float | str]] = {}
    for alarm in alarms:
        if alarm.judgement is not None and alarm.judgement.opponent == HEADLINE:
            found[alarm.model] = {
                "verdict_before": VERDICTS[int(alarm.before)],
                "verdict_changed_timestamp_seconds": alarm.event_ms / 1000,
            }
    return found


def labels_stopped(
    predicted: Family | None, labelled: Family | None, delays: Family | None
) -> dict[str, str]:
    """Say of which models predictions go on and labels do not, in words, by model.

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
    latest = _by_model(predicted)
    found: dict[str, str] = {}
    usual = {
        values[delays.labels.index("model")]: quantile(0.99, value, delays.bounds)
        for values, value in delays.samples
        if isinstance(value, Histogram)
    }
    for model, at in _by_model(labelled).items():
        silence = latest.get(model, at) - at
        if silence > max(SILENCE_SECONDS, 2 * (usual.get(model) or 0.0)):
            found[model] = f"labels have stopped: none in the last {_hours(silence)} of its predictions"
    return found


def _by_model(family: Family) -> dict[str, float]:
    at = family.labels.index("model")
    return {values[at]: value for values, value in family.samples if not isinstance(value, Histogram)}


def _hours(seconds: float) -> str:
    hours = seconds / 3_600
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.0f} days"
