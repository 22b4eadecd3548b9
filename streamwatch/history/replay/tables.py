"""Output of a replay's result, as tables for a person or as a JSON document."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from streamwatch.core.estimators.registers.fleet import VERDICT_WORDS
from streamwatch.core.metrics.series import Family, detail_at
from streamwatch.core.records.events import Alarm
from streamwatch.edge.decoders.mapping import REASONS
from streamwatch.edge.web.routes.comparisons import comparisons_of, shown_forgetting
from streamwatch.edge.web.routes.json_api import by_model, shown_details
from streamwatch.history.answers import UNKNOWN, answers, count, documents_of, first_answers, moment
from streamwatch.history.recordings.lines import BadLine
from streamwatch.history.replay.replay import ReplayResult

_SHOWN_ALARMS = 20
_LARGE = 1e9  # of evidence, a product, only the order of magnitude matters
_WORTH_REPORTING_SECONDS = 2.0
_YEAR_2000_MS = 946_684_800_000
_NO_OBJECT = frozenset({"not_an_object", "invalid_json"})
_OVER_LINES = {"[": "jq -c '.[]'", "{": "jq -c ."}
"""Beginnings of JSON documents that are not written line by line, and what converts them."""
_APART = (
    (
        "Predictions",
        (
            ("repeated", (("predictions_duplicate_total",),)),
            ("repeated with another class", (("predictions_conflict_total",),)),
            ("without a label within join.horizon", (("predictions_expired_total",),)),
            ("withdrawn", (("predictions_withdrawn_total",),)),
            ("evicted at join.max_pending", (("predictions_evicted_total",),)),
            ("of models beyond monitors.max_models", (("records_over_limit_total", "models"),)),
        ),
    ),
    (
        "Labels",
        (
            (
                "without a prediction",
                (
                    ("labels_orphaned_total",),
                    ("labels_before_start_total",),
                    ("labels_evicted_total",),
                    ("labels_waiting",),
                    ("labels_unmatched",),
                ),
            ),
            ("repeated", (("labels_duplicate_total",),)),
            ("that contradict an earlier one", (("labels_corrected_total",),)),
            ("after their prediction had expired", (("labels_late_total",),)),
            (
                "of a prediction withdrawn, evicted or beyond a limit",
                tuple(("labels_unusable_total", reason) for reason in ("withdrawn", "evicted", "over_limit")),
            ),
        ),
    ),
    (
        "Models",
        (("not shown, as they made no prediction for twice join.horizon", (("models_retired_total",),)),),
    ),
)
"""Counts of what ended without an outcome of its own: words, and the families whose numbers are added."""
_COLUMNS = (
    ("accuracy", "accuracy_ratio", ()),
    ("no\nchange", "baseline_accuracy_ratio", ("persistent",)),
    ("always the\nmajority", "baseline_accuracy_ratio", ("majority",)),
    ("κ", "kappa", ()),
    ("κ_m", "kappa_majority", ()),
    ("κ_per", "kappa_persistent", ()),
    ("κ⁺", "kappa_plus", ()),
    ("MCC", "mcc", ()),
    ("effective\noutcomes", "effective_sample_size", ()),
)
_DISPENSABLE = ("effective\noutcomes", "MCC", "κ_m", "κ", "κ⁺", "always the\nmajority")
"""Headings of the columns that are left out on a narrow terminal, the first ones first."""
_ALARM_COLUMNS = (
    "model",
    "detector",
    "outcome",
    "time (UTC)",
    "error before",
    "after",
    "statistic",
    "threshold",
)
_WIDEST = 10_000


def print_result(result: ReplayResult, console: Console) -> None:
    """Print estimates of every model, alarms, changes of verdicts, counts of lines, and the answers."""
    models, _ = by_model(result.families)
    _print_fitting(lambda left_out: _estimates(result.source, models, left_out), _DISPENSABLE, console)
    if sampled := _sampled(result):
        console.print(sampled)
    if compared := comparisons_of(result.families):
        console.print(_comparisons(compared, shown_forgetting(result.families) or ""))
    if result.alarms:
        _print_fitting(lambda left_out: _alarms(result, left_out), _ALARM_COLUMNS[-2:], console)
    else:
        console.print("No drift alarms, no verdict changes.")
    for line in leftovers(result):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    for line in first_answers(answers(documents_of(result.families, result.details))):
        console.print(line, style="bold", soft_wrap=True, highlight=False, markup=False)


def _print_fitting(
    build: Callable[[Sequence[str]], Table], dispensable: Sequence[str], console: Console
) -> None:
    """Print a table, without as many of the `dispensable` columns as a narrow terminal has no room for.

    `build` makes the table without the columns of these headings.
    """
    options = console.options.update(max_width=_WIDEST)
    for left_out in range(len(dispensable) + 1):
        table = build(dispensable[:left_out])
        if left_out == len(dispensable) or Measurement.get(console, options, table).maximum <= console.width:
            console.print(table)
            if left_out:
                names = ", ".join(heading.replace("\n", " ") for heading in dispensable[:left_out])
                text = f"(left out, as the terminal is narrow: {names})"
                console.print(text, soft_wrap=True, highlight=False)
            return


def leftovers(result: ReplayResult) -> list[str]:
    """Return lines of text on how much was read, and what of it was not evaluated."""
    rate = result.lines / result.seconds if result.seconds > 0.0 else 0.0
    took = f"in {result.seconds:.1f} s ({rate:,.0f} lines/s)"
    if result.compile_seconds >= _WORTH_REPORTING_SECONDS:
        took += f", after {result.compile_seconds:.0f} s of preparing the estimators"
    parts = [f"{result.lines:,} lines, {result.outcomes:,} outcomes {took}."]
    if result.pending:
        parts.append(f"{result.pending:,} predictions still waited for their label at the end.")
    parts += apart(result.families)
    if result.trace_rows:
        parts.append(f"{result.trace_rows:,} rows of trace written.")
    if result.back_in_time:
        parts.append(
            f"{result.back_in_time:,} lines have an earlier time than a line before them: a file is "
            "evaluated in the order of its lines."
        )
    if result.lines < result.clock_ms < _YEAR_2000_MS:
        last = datetime.fromtimestamp(result.clock_ms / 1000.0, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        parts.append(f"The last time is {last}: is --timestamp-unit right (s, ms, us, ns)?")
    if result.bad:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in result.bad.most_common())
        parts.append(f"{result.bad.total():,} lines could not be used: {reasons}.")
        parts += [f"  {_where(bad, result)}: {_reason(bad)}" for bad in result.first_bad]
        if result.bad.total() > len(result.first_bad):
            parts.append("  …")
    return parts


def apart(families: Sequence[Family]) -> list[str]:
    """Return lines of text on predictions, labels and models that came to no outcome, without zeros."""
    _, stream = by_model(families)
    parts: list[str] = []
    for heading, counts in _APART:
        totals = ((words, sum(detail_at(stream, *path) or 0 for path in paths)) for words, paths in counts)
        if shown := [f"{total:,.0f} {words}" for words, total in totals if total]:
            parts.append(f"{heading}: {', '.join(shown)}.")
    return parts


def _reason(bad: BadLine) -> str:
    """Describe why a line is unusable, and where mappings looked."""
    words = REASONS.get(bad.reason)
    reason = bad.reason if words is None else f"{bad.reason}: {words}"
    return f"{reason} ({bad.why})" if bad.why else reason


def unusable(result: ReplayResult) -> str | None:
    """Describe why no line could be used, with an example; None if any could."""
    if result.lines > result.bad.total():
        return None
    if not result.lines:
        return f"{result.source} holds no lines"
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in result.bad.most_common())
    example = next((bad for bad in result.first_bad if bad.reason == result.bad.most_common(1)[0][0]), None)
    text = f"none of {result.lines:,} lines could be used: {reasons}"
    if example is None:
        return text
    text_and_example = f"{text}\n{_where(example, result)}: {example.sample}"
    if example.reason in _NO_OBJECT and example.sample[:1] in _OVER_LINES:
        command = _OVER_LINES[example.sample[:1]]
        text_and_example += f"\nexpected a JSON object in each line, as {command} writes them"
    explained = example.why or example.reason in REASONS
    return f"{text_and_example}\n{_reason(example)}" if explained else text_and_example


def to_json(result: ReplayResult) -> bytes:
    """Encode a result as a JSON document.

    `models` and `stream` have the form of `/api/v1/models`, `comparisons` that of `/api/v1/comparisons`.
    """
    models, stream = by_model(result.families)
    return msgspec.json.encode(
        {
            "source": result.source,
            "lines": result.lines,
            "outcomes": result.outcomes,
            "pending": result.pending,
            "invalid": dict(result.bad),
            "first_invalid": [
                {"source": bad.source, "line": bad.number, "reason": bad.reason, "why": bad.why}
                for bad in result.first_bad
            ],
            "models": {
                name: {
                    "metrics": metrics,
                    "details": shown_details(result.details.get(name, {}), whole=False),
                }
                for name, metrics in models.items()
            },
            "comparisons": comparisons_of(result.families),
            "stream": stream,
            "alarms": [msgspec.to_builtins(alarm) for alarm in result.alarms],
        }
    )


def _where(bad: BadLine, result: ReplayResult) -> str:
    """Format a line's number, and its file if there are several."""
    return f"line {bad.number:,}" + (f" of {bad.source}" if bad.source != result.source else "")


def _estimates(source: str, models: Mapping[str, object], left_out: Sequence[str]) -> Table:
    title = escape(f"{source}: estimates at the end")
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("model", "outcomes", "forgetting"):
        justify = "right" if heading == "outcomes" else "left"
        table.add_column(heading, justify=justify, overflow="fold")
    columns = [each for each in _COLUMNS if each[0] not in left_out]
    for heading, _, _ in columns:
        table.add_column(heading, justify="right", overflow="fold")
    for model, metrics in sorted(models.items()):
        named = (escape(model), count(detail_at(metrics, "outcomes_total")))
        for forgetting in detail_at(metrics, "accuracy_ratio") or ():
            cells = (_number(detail_at(metrics, name, *more, forgetting)) for _, name, more in columns)
            table.add_row(*named, forgetting, *cells)
            named = ("", "")
    return table


def _sampled(result: ReplayResult) -> Table | None:
    """Build the table of models whose labels are asked for with a known probability; None without any."""
    documents = {model: details.get("sampled_labels") for model, details in result.details.items()}
    rows = {model: found for model, found in sorted(documents.items()) if found is not None}
    if not rows:
        return None
    table = Table(
        title="Of all predictions, by labels weighted with the probability of being asked for; the estimates "
        "above are of the labelled ones alone"
    )
    leads = ("lead over\nno change", "lead over\nthe majority")
    for column in ("model", "asked for", "arrived", "accuracy", *leads):
        table.add_column(column)
    for model, found in rows.items():
        estimates = [
            detail_at(found, "accuracy"),
            *(detail_at(found, "leads", name) for name in ("persistent_at_prediction", "majority")),
        ]
        table.add_row(
            escape(model),
            _number(detail_at(found, "share_expected")),
            _number(detail_at(found, "arrived_ratio")),
            *map(_interval, estimates),
        )
    return table


def _interval(found: object) -> str:
    """Format an estimate with its interval, as far as they are defined."""
    value, lower, upper = (_number(detail_at(found, name)) for name in ("value", "lower", "upper"))
    return value if lower == UNKNOWN else f"{value} ({lower} to {upper})"


def _comparisons(compared: Sequence[Mapping[str, object]], forgetting: str) -> Table:
    """Build the table of comparisons: verdicts, and descriptive measures under one forgetting."""
    title = f"comparisons on the same ids; errors, Q and McNemar under {forgetting}, which describe"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("champion", "challenger", "verdict"):
        table.add_column(heading, no_wrap=True)
    for heading in ("pairs", "lead", "champion's\nerror", "challenger's\nerror", "Q", "McNemar"):
        table.add_column(heading, justify="right")
    for each in compared:
        measures = each["measures"]
        found = measures.get(forgetting, {}) if isinstance(measures, dict) else {}
        numbers = [each.get("lead")]
        numbers += [found.get(name) for name in ("champion_error_ratio", "challenger_error_ratio", "q")]
        numbers.append(found.get("mcnemar_calibrated"))
        table.add_row(
            escape(str(each["champion"])),
            escape(str(each["challenger"])),
            str(each["verdict"]),
            f"{each['pairs']:,.0f}",
            *map(_number, numbers),
        )
    return table


def _number(value: object) -> str:
    if not isinstance(value, int | float) or math.isnan(value):
        return UNKNOWN
    if value >= _LARGE:
        return f"{value:.1e}"
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.4f}"


def _alarms(result: ReplayResult, left_out: Sequence[str]) -> Table:
    shown = result.alarms[-_SHOWN_ALARMS:]
    verdicts = sum(alarm.judgement is not None for alarm in result.alarms)
    drifts = len(result.alarms) - verdicts
    title = f"{drifts:,} drift alarm{'s' * (drifts != 1)}, {verdicts:,} verdict change{'s' * (verdicts != 1)}"
    if len(shown) < len(result.alarms):
        title += f"; the last {len(shown)}, and {len(result.alarms) - len(shown):,} more before them"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    columns = [heading for heading in _ALARM_COLUMNS if heading not in left_out]
    for heading in columns:
        justify = "left" if heading in {"model", "detector", "time (UTC)"} else "right"
        table.add_column(heading, justify=justify, overflow="fold")
    for alarm in shown:
        cells = (
            escape(alarm.model),
            alarm.detector,
            f"{alarm.outcome:,}",
            "" if (when := moment(alarm.event_ms / 1000.0)) == UNKNOWN else when.removesuffix(" UTC"),
            *_change(alarm),
            *map(_number, (alarm.statistic, alarm.threshold)),
        )
        table.add_row(*cells[: len(columns)])
    return table


def _change(alarm: Alarm) -> tuple[str, str]:
    """Format errors before and after an alarm, or a verdict and the outcome since which it holds."""
    judgement = alarm.judgement
    if judgement is None:
        return _number(alarm.before), _number(alarm.after)
    word = VERDICT_WORDS[judgement.verdict]
    if judgement.basis == "cohorts":
        since = filter(None, (f"since about {judgement.since:,}", judgement.status))
        return word, ", ".join(since)
    return word, f"since {judgement.since:,}"
