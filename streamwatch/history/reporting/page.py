"""Page of a report: the answer first, then the chart, the evidence, and raw numbers, folded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from streamwatch.core.estimators.registers.fleet import RIVALS
from streamwatch.core.metrics.series import detail_at
from streamwatch.history.answers import (
    UNKNOWN,
    answers,
    count,
    counted_verdicts,
    headline_of,
    interval_of,
    moment,
    no_change_of,
    percent,
    verdict_of,
    worst_first,
)
from streamwatch.history.reporting.sources import MOST_ALARMS as MOST_KNOWN_ALARMS
from streamwatch.history.reporting.sources import Document, Source
from streamwatch.history.reporting.writing import (
    Block,
    Fold,
    Grid,
    Heading,
    Listing,
    Page,
    Picture,
    Text,
    curves,
    reliability,
)

# Numbers of the API's documents as text.


def ratio(value: Any) -> str:
    """Format a share, lead or statistic with four decimals, from 1,000 on with four digits."""
    if not isinstance(value, int | float) or math.isnan(value):
        return UNKNOWN
    return f"{value:,.4f}" if abs(value) < 1_000 else f"{value:,.4g}"


def span(seconds: float) -> str:
    """Format a duration: 90 s, 15 min, 4 h, 14 d."""
    for unit, size in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{seconds / size:,.4g} {unit}"
    return f"{seconds:,.4g} s"


# Blocks on one model.


MOST_NAMED: Final = 10
"""Number of worse models that the first paragraph names."""
MOST_ALARMS: Final = 50
"""Most alarms of a model that are listed."""
_AMONG_LATEST: Final = f"among the latest {MOST_KNOWN_ALARMS:,} of all models"
_PROBABILITIES: Final = {
    "log_loss": "log loss",
    "brier_score": "Brier score",
    "calibration_error_ratio": "calibration error",
    "auc_ratio": "AUC",
}


def chart_of(name: str, source: Source) -> Picture | None:
    """Draw a model's accuracy beside its baselines, with its alarms; None without two points to draw."""
    history = source.histories.get(name)
    if history is None:
        return None
    return curves(name, history, source.alarms_of(name), no_change_of(source.models[name]))


def what_happened(name: str, source: Source) -> str:
    """Describe how much was evaluated, and the last drift alarm, in two sentences or three."""
    metrics = source.models[name]["metrics"]
    evaluated = f"{count(detail_at(metrics, 'outcomes_total'))} predictions were evaluated with their labels."
    drifts = [alarm for alarm in source.alarms_of(name) if alarm.get("judgement") is None]
    if not drifts and source.lacks_alarms:
        return f"{evaluated} No drift alarm is {_AMONG_LATEST}."
    if not drifts:
        return f"{evaluated} No drift alarm was raised."
    last, when = drifts[0], moment(drifts[0].get("timestamp_seconds"))
    at = f"at its outcome {count(last['outcome'])}" + ("" if when == UNKNOWN else f", {when}")
    was, raised = ("is", "are"), _AMONG_LATEST
    if not source.lacks_alarms:
        was, raised = ("was", "were"), "raised"
    times = f"one drift alarm {was[0]} {raised}"
    if len(drifts) > 1:
        times = f"{len(drifts):,} drift alarms {was[1]} {raised}"
    errors = ""
    if isinstance(last.get("before"), int | float) and isinstance(last.get("after"), int | float):
        errors = f" Its error was {percent(last['before'])} before and {percent(last['after'])} after."
    return f"{evaluated} {times.capitalize()}, the last {at}.{errors}"


def evidence_blocks(name: str, source: Source) -> Iterator[Block]:
    """Yield verdicts, estimates, alarms, calibration, delays and segments of one model."""
    document = source.models[name]
    metrics, details = document["metrics"], document["details"]
    yield Heading(3, "Verdicts")
    if detail_at(details, "headline", "basis") == "cohorts":
        yield Text(f"By cohorts of prediction time: {headline_of(document)}.")
    yield _verdicts(metrics)
    yield Heading(3, "Estimates")
    yield _estimates(metrics)
    yield Heading(3, "Drift alarms and changes of verdicts")
    yield from _alarms(source.alarms_of(name), source)
    if detail_at(metrics, "scored_outcomes_total"):
        yield Heading(3, "Calibration")
        yield from _probabilities(name, metrics, details)
    delays = detail_at(metrics, "label_delay_seconds")
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
            *(ratio(detail_at(metrics, name, opponent)) for name in ("lead", "lead_lower", "lead_upper")),
        )
        for opponent in detail_at(metrics, "verdict") or {}
    )
    return Grid("By opponent", ("opponent", "verdict", "lead", "from", "to"), rows)


def _estimates(metrics: Document) -> Grid:
    names = ("accuracy_ratio", "kappa", "kappa_majority", "kappa_persistent", "kappa_plus", "mcc")
    forgettings = detail_at(metrics, "accuracy_ratio") or {}
    rows = tuple(
        (
            forgetting,
            *(ratio(detail_at(metrics, name, forgetting)) for name in names),
            count(detail_at(metrics, "effective_sample_size", forgetting)),
        )
        for forgetting in forgettings
    )
    headings = ("forgetting", "accuracy", "κ", "κ_m", "κ_per", "κ⁺", "MCC", "effective outcomes")
    return Grid("At the end", headings, rows)


def _alarms(alarms: list[Document], source: Source) -> Iterator[Block]:
    if not alarms:
        beyond = f" {_AMONG_LATEST}" if source.lacks_alarms else ""
        yield Text(f"No drift alarm, no change of a verdict{beyond}.")
        return
    title = "The latest first"
    if len(alarms) > MOST_ALARMS:
        title += f", {MOST_ALARMS} of {len(alarms):,}"
    rows = tuple(
        (
            alarm["detector"],
            count(alarm["outcome"]),
            moment(alarm.get("timestamp_seconds")),
            *_described(alarm),
            *(ratio(alarm.get(name)) for name in ("statistic", "threshold")),
        )
        for alarm in alarms[:MOST_ALARMS]
    )
    yield Grid(title, ("detector", "outcome", "time", "before", "after", "statistic", "threshold"), rows)


def _described(alarm: Document) -> tuple[str, str]:
    """Describe an alarm: errors before and after, or the verdict with its interval."""
    judgement = alarm.get("judgement")
    if judgement is None:
        return ratio(alarm.get("before")), ratio(alarm.get("after"))
    if judgement["basis"] == "cohorts":
        beside = judgement["opponent"] if judgement["verdict"] == "worse" else "no change and the majority"
        verdict = f"{judgement['verdict']} since {moment(judgement['since_timestamp_seconds'])}"
        return f"by cohorts, beside {beside}", ", ".join(
            filter(None, (verdict, interval_of(judgement), judgement["status"]))
        )
    return f"beside {judgement['opponent']}", f"{judgement['verdict']} since {judgement['since_outcome']:,}"


def _probabilities(name: str, metrics: Document, details: Document) -> Iterator[Block]:
    rows: list[tuple[str, str, str]] = []
    for metric, word in _PROBABILITIES.items():
        found = detail_at(metrics, metric)
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


_VERDICTS: Final = "better, worse, or open where neither is shown"


_CHEAP: Final = (
    "the majority, the most frequent class. A model that is not better than both could be replaced."
)
_MEANING: Final = {
    "persistent": f"No change means to predict the previous label; {_CHEAP}",
    "persistent_at_prediction": "No change means to predict the last label known when the prediction was "
    f"made; {_CHEAP}",
}


def page(source: Source) -> Page:
    """Build the page: the answer, the chart, the evidence, and raw numbers, folded, at the end."""
    names = list(source.models)
    if not names:
        title = "Report: no model has been seen"
    else:
        title = f"Report on model {names[0]}" if len(names) == 1 else f"Report on {len(names)} models"
    return Page(title, tuple(_blocks(source)))


def _blocks(source: Source) -> Iterator[Block]:
    names = list(source.models)
    if len(names) == 1:
        yield from _of_one(names[0], source)
    elif names:
        yield from _of_several(source)
    for note in source.remarks:
        yield Text(note)
    if source.comparisons:
        yield Heading(2, "Comparisons on the same ids")
        yield from _comparisons(source)
    yield from _raw(source)


def _of_one(name: str, source: Source) -> Iterator[Block]:
    [answer] = answers(source.models)
    yield Text(
        f"{answer}. {what_happened(name, source)} {_MEANING[no_change_of(source.models[name])]}", answers=True
    )
    if (drawn := chart_of(name, source)) is not None:
        yield drawn
    yield Heading(2, "Evidence")
    yield from evidence_blocks(name, source)


def _of_several(source: Source) -> Iterator[Block]:
    found = counted_verdicts(source.models)
    parts = [
        f"{_models(found['worse'])} worse than no change or the majority",
        f"{_models(found['better'])} better",
        f"of {len(found['open'])} neither is shown so far",
    ]
    worst = f" Worse: {', '.join(found['worse'][:MOST_NAMED])}." if found["worse"] else ""
    basis = {no_change_of(document) for document in source.models.values()}
    meaning = _MEANING[basis.pop()] if len(basis) == 1 else _MEANING["persistent"]
    yield Text(f"Of {len(source.models)} models {'; '.join(parts)}.{worst} {meaning}", answers=True)
    yield _overview(source)
    if source.worse is not None and source.worse["pairs"]:
        yield from _worse(source.worse)
    for answer, name in zip(answers(source.models), worst_first(source.models), strict=True):
        yield Heading(2, f"Model {name}")
        yield Text(f"{answer}. {what_happened(name, source)}")
        if (drawn := chart_of(name, source)) is not None:
            yield drawn
        yield from evidence_blocks(name, source)


_LISTED: Final = "Models that are worse, by cohorts of prediction time"


def _worse(found: Document) -> Iterator[Block]:
    """Yield the list of the models that are worse among all of the daemon, and its guarantee."""
    promised = f"{found['pairs']:,} pairs of a model and an opponent are judged: {found['rule']}"
    if not found["worse"]:
        yield Text(f"No model is listed as worse by cohorts of prediction time. {promised}.")
        return
    rows = tuple(
        (each["model"], RIVALS[each["opponent"]], count(each["e_value"]), each["verdict"])
        for each in found["worse"]
    )
    yield Grid(_LISTED, ("model", "worse than", "e-value", "verdict now"), rows)
    yield Text(f"The share is {found['share']:.0%}. {promised}. A model that has recovered may be listed.")


def _models(names: list[str]) -> str:
    return f"{len(names)} {'is' if len(names) == 1 else 'are'}"


def _raw(source: Source) -> Iterator[Block]:
    """Origin, counters, settings and versions, folded."""
    made = datetime.fromtimestamp(source.made_ms / 1000, tz=UTC).isoformat(sep=" ", timespec="seconds")
    published = f", of the daemon's report of {moment(source.now_s)}" if source.now_s is not None else ""
    origin = [Text(f"Made {made} of {source.name}{published}.")]
    yield Fold("Where this comes from", (*origin, *(Text(note) for note in source.notes)))
    yield Fold("Counters of the stream", (_stream(source),))
    if source.settings is None:
        settings = Text("The API does not return settings; give the file with --config to have them here.")
        yield Fold("Settings", (settings,))
    else:
        yield Fold("Settings", (Listing("Settings", source.settings),))
    yield Fold("Versions", (Grid("Versions", ("part", "version"), tuple(source.versions.items())),))


def _overview(source: Source) -> Grid:
    rows: list[tuple[str, ...]] = []
    for name, document in source.models.items():
        metrics = document["metrics"]
        forgetting = source.histories.get(name, {}).get("forgetting") or "landmark"
        own = source.alarms_of(name)
        rows.append(
            (
                name,
                count(detail_at(metrics, "outcomes_total")),
                headline_of(document),
                ratio(detail_at(metrics, "accuracy_ratio", forgetting)),
                ratio(detail_at(metrics, "baseline_accuracy_ratio", no_change_of(document), forgetting)),
                ratio(detail_at(metrics, "baseline_accuracy_ratio", "majority", forgetting)),
                count(sum(alarm.get("judgement") is None for alarm in own)),
                count(sum(alarm.get("judgement") is not None for alarm in own)),
            )
        )
    headings = ("model", "outcomes", "better than no change?", "accuracy", "no change")
    headings += ("always the majority", "drift alarms", "verdict changes")
    shown = {str(each["forgetting"]) for each in source.histories.values() if each.get("forgetting")}
    under = f" under {' and '.join(sorted(shown))}" if shown else ""
    counted = f"; alarms and changes {_AMONG_LATEST}" if source.lacks_alarms else ""
    return Grid(f"All models; accuracies{under}{counted}", headings, tuple(rows))


def _comparisons(source: Source) -> Iterator[Block]:
    yield Grid(
        f"Challengers beside their champions; the verdict: {_VERDICTS}",
        ("champion", "challenger", "pairs", "verdict", "since", "lead", "from", "to"),
        tuple(
            (
                each["champion"],
                each["challenger"],
                count(each["pairs"]),
                each["verdict"],
                moment(each.get("verdict_since_timestamp_seconds")),
                *(ratio(each.get(name)) for name in ("lead", "lead_lower", "lead_upper")),
            )
            for each in source.comparisons
        ),
    )
    yield Grid(
        "Errors of both, Q and McNemar's statistic, which describe",
        ("champion", "challenger", "forgetting", "champion's error", "challenger's error", "Q", "McNemar"),
        tuple(
            (
                each["champion"],
                each["challenger"],
                forgetting,
                *(
                    ratio(found.get(name))
                    for name in ("champion_error_ratio", "challenger_error_ratio", "q", "mcnemar_calibrated")
                ),
            )
            for each in source.comparisons
            for forgetting, found in each["measures"].items()
        ),
    )


def _stream(source: Source) -> Grid:
    rows = [
        (name.replace("_", " "), f"{value:,.12g}" if isinstance(value, int | float) else str(value))
        for name, value in sorted(source.stream.items())
        if not isinstance(value, dict)
    ]
    return Grid("Numbers of no model", ("number", "value"), tuple(rows))
