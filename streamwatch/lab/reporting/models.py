"""What a report tells of one model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from streamwatch.lab.reporting.blocks import Block, Grid, Heading, Text
from streamwatch.lab.reporting.numbers import UNKNOWN, count, leaf, moment, ratio, span
from streamwatch.lab.reporting.pictures import curves, reliability
from streamwatch.lab.reporting.source import Document, Source

MOST_ALARMS: Final = 50
"""Alarms of a model that are listed."""
_WORDS: Final = {1.0: "better", -1.0: "worse", 0.0: "open"}
_PROBABILITIES: Final = {
    "log_loss": "log loss",
    "brier_score": "Brier score",
    "calibration_error_ratio": "calibration error",
    "auc_ratio": "AUC",
}


def verdict_of(metrics: Document, opponent: str) -> str:
    """The verdict on an opponent and since which outcome it holds."""
    value = leaf(metrics, "verdict", opponent)
    if not isinstance(value, int | float):
        return UNKNOWN
    since = leaf(metrics, "verdict_since_outcome", opponent)
    word = _WORDS.get(float(value), UNKNOWN)
    return word if since is None or word == "open" else f"{word} since outcome {count(since)}"


def model_blocks(name: str, source: Source) -> Iterator[Block]:
    """Verdicts, curves, alarms, calibration, delays and segments of one model."""
    document = source.models[name]
    metrics, details = document["metrics"], document["details"]
    alarms = [alarm for alarm in source.alarms if alarm["model"] == name]
    yield Heading(2, f"Model {name}")
    yield Heading(3, "Verdicts")
    yield _verdicts(metrics)
    history = source.histories.get(name)
    drawn = None if history is None else curves(name, history, alarms)
    if drawn is not None:
        yield Heading(3, "Curves")
        yield drawn
    yield Heading(3, "Estimates")
    yield _estimates(metrics)
    yield Heading(3, "Drift alarms and changes of verdicts")
    yield from _alarms(alarms)
    if leaf(metrics, "scored_outcomes_total"):
        yield Heading(3, "Calibration")
        yield from _probabilities(name, metrics, details)
    delays = leaf(metrics, "label_delay_seconds")
    if delays and delays["count"]:
        yield Heading(3, "Label delays")
        yield _delays(delays)
    for segment, found in details.get("segments", {}).items():
        yield Heading(3, f"Segment {segment}")
        yield _segment(segment, found)


def _verdicts(metrics: Document) -> Grid:
    rows = tuple(
        (
            opponent,
            verdict_of(metrics, opponent),
            *(ratio(leaf(metrics, name, opponent)) for name in ("lead", "lead_lower", "lead_upper")),
        )
        for opponent in leaf(metrics, "verdict") or {}
    )
    return Grid("By opponent", ("opponent", "verdict", "lead", "from", "to"), rows)


def _estimates(metrics: Document) -> Grid:
    names = ("accuracy_ratio", "kappa", "kappa_majority", "kappa_persistent", "kappa_plus", "mcc")
    forgettings = leaf(metrics, "accuracy_ratio") or {}
    rows = tuple(
        (
            forgetting,
            *(ratio(leaf(metrics, name, forgetting)) for name in names),
            count(leaf(metrics, "effective_sample_size", forgetting)),
        )
        for forgetting in forgettings
    )
    headings = ("forgetting", "accuracy", "κ", "κ_m", "κ_per", "κ⁺", "MCC", "effective outcomes")
    return Grid("At the end", headings, rows)


def _alarms(alarms: list[Document]) -> Iterator[Block]:
    if not alarms:
        yield Text("No drift alarm, no change of a verdict.")
        return
    title = "The latest first"
    if len(alarms) > MOST_ALARMS:
        title += f", {MOST_ALARMS} of {len(alarms):,}"
    rows = tuple(
        (
            alarm["detector"],
            count(alarm["outcome"]),
            moment(alarm.get("timestamp_seconds")),
            *_said(alarm),
            *(ratio(alarm.get(name)) for name in ("statistic", "threshold")),
        )
        for alarm in alarms[:MOST_ALARMS]
    )
    yield Grid(title, ("detector", "outcome", "time", "before", "after", "statistic", "threshold"), rows)


def _said(alarm: Document) -> tuple[str, str]:
    """Errors before and after, or what a verdict says."""
    judgement = alarm.get("judgement")
    if judgement is None:
        return ratio(alarm.get("before")), ratio(alarm.get("after"))
    return f"beside {judgement['opponent']}", f"{judgement['verdict']} since {judgement['since_outcome']:,}"


def _probabilities(name: str, metrics: Document, details: Document) -> Iterator[Block]:
    rows: list[tuple[str, str, str]] = []
    for metric, word in _PROBABILITIES.items():
        found = leaf(metrics, metric)
        by = found.items() if isinstance(found, dict) else [("", found)]
        rows += [(word, str(label), ratio(value)) for label, value in by if value is not None]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    yield Grid("Of the scores", ("measure", "of", "value"), tuple(rows))
    document = details.get("probabilities")
    drawn = None if document is None else reliability(name, document)
    if drawn is not None:
        yield drawn


def _delays(delays: Document) -> Grid:
    total, before = delays["count"], 0
    rows: list[tuple[str, str, str]] = []
    for bound, below in delays["buckets"].items():
        if below > before:
            edge = float(bound)
            rows.append(
                (
                    f"up to {span(edge)}" if math.isfinite(edge) else "longer",
                    count(below - before),
                    ratio(below / total),
                )
            )
            before = below
    mean = span(delays["sum"] / total)
    return Grid(f"From prediction to label; mean {mean}", ("delay", "labels", "share so far"), tuple(rows))


def _segment(segment: str, found: Document) -> Grid:
    values: list[dict[str, Any]] = list(found["values"])
    names = list(dict.fromkeys(name for each in values for name in each if name not in {"value", "outcomes"}))
    left = found.get("values_left_out", 0)
    title = f"By {segment}" + (f"; {left:,} values with less traffic are left out" if left else "")
    rows = tuple(
        (str(each["value"]), count(each["outcomes"]), *(ratio(each.get(name)) for name in names))
        for each in values
    )
    headings = ("value", "outcomes", *(name.removesuffix("_ratio").replace("_", " ") for name in names))
    return Grid(title, headings, rows)
