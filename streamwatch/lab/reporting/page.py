"""The page of a report: what is told, in which order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from streamwatch.lab.reporting.blocks import Block, Grid, Heading, Listing, Page, Text
from streamwatch.lab.reporting.models import model_blocks, verdict_of
from streamwatch.lab.reporting.numbers import count, leaf, moment, ratio
from streamwatch.lab.reporting.source import Source

_VERDICTS: Final = "better, worse, or open where neither is shown"


def page(source: Source) -> Page:
    """Everything that is known of a source, as blocks."""
    return Page(f"Models of {source.name}", tuple(_blocks(source)))


def _blocks(source: Source) -> Iterator[Block]:
    made = datetime.fromtimestamp(source.made_ms / 1000, tz=UTC).isoformat(sep=" ", timespec="seconds")
    published = f", of the daemon's report of {moment(source.now_s)}" if source.now_s is not None else ""
    yield Text(f"Made {made}{published}.")
    for note in source.notes:
        yield Text(note)
    yield Heading(2, "Models")
    if not source.models:
        yield Text("No model has been seen.")
    else:
        yield _overview(source)
    for name in source.models:
        yield from model_blocks(name, source)
    if source.comparisons:
        yield Heading(2, "Comparisons on the same ids")
        yield from _comparisons(source)
    yield Heading(2, "Stream")
    yield _stream(source)
    yield Heading(2, "Settings")
    if source.settings is None:
        yield Text("The API does not tell settings; give the file with --config to have them here.")
    else:
        yield Listing("Settings", source.settings)
    yield Grid("Versions", ("part", "version"), tuple(source.versions.items()))


def _overview(source: Source) -> Grid:
    rows: list[tuple[str, ...]] = []
    for name, document in source.models.items():
        metrics = document["metrics"]
        forgetting = source.histories.get(name, {}).get("forgetting") or "landmark"
        own = [alarm for alarm in source.alarms if alarm["model"] == name]
        rows.append(
            (
                name,
                count(leaf(metrics, "outcomes_total")),
                verdict_of(metrics, "persistent"),
                ratio(leaf(metrics, "accuracy_ratio", forgetting)),
                ratio(leaf(metrics, "baseline_accuracy_ratio", "persistent", forgetting)),
                ratio(leaf(metrics, "baseline_accuracy_ratio", "majority", forgetting)),
                ratio(leaf(metrics, "kappa_persistent", forgetting)),
                count(sum(alarm.get("judgement") is None for alarm in own)),
                count(sum(alarm.get("judgement") is not None for alarm in own)),
            )
        )
    headings = ("model", "outcomes", "better than no change?", "accuracy", "no change")
    headings += ("always the majority", "κ_per", "drift alarms", "verdict changes")
    shown = {str(each["forgetting"]) for each in source.histories.values() if each.get("forgetting")}
    under = f" under {' and '.join(sorted(shown))}" if shown else ""
    return Grid(f"All models; accuracies{under}", headings, tuple(rows))


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
