"""Output of a replay's result, as tables for a person or as a JSON document."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain

import msgspec
from rich.console import Console
from rich.table import Table

from streamwatch.core.estimators.registers.fleet import VERDICT_WORDS
from streamwatch.core.metrics.series import Histogram, detail_at
from streamwatch.core.records.events import Alarm
from streamwatch.edge.decoders.mapping import REASONS
from streamwatch.edge.web.routes.comparisons import comparisons_of, shown_forgetting
from streamwatch.edge.web.routes.json_api import by_model, shown_details
from streamwatch.history.answers import answers
from streamwatch.history.recordings.lines import BadLine
from streamwatch.history.replay.replay import ReplayResult

_SHOWN_ALARMS = 20
_SHOWN_ANSWERS = 20
_LARGE = 1e9  # of evidence, a product, only the order of magnitude matters
_WORTH_REPORTING_SECONDS = 2.0
_YEAR_2000_MS = 946_684_800_000
_YEAR_10000_MS = 253_402_300_800_000
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


def print_result(result: ReplayResult, console: Console) -> None:
    """Print estimates of every model, alarms, changes of verdicts, counts of lines, and the answers."""
    values = {
        (family.name, *labels): value
        for family in result.families
        for labels, value in family.samples
        if not isinstance(value, Histogram)
    }
    order = {family.name: family.labels for family in result.families}
    console.print(_estimates(result, values, order))
    if sampled := _sampled(result):
        console.print(sampled)
    if compared := comparisons_of(result.families):
        console.print(_comparisons(compared, shown_forgetting(result.families) or ""))
    if result.alarms:
        console.print(_alarms(result))
    else:
        console.print("No drift alarms, no verdict changes.")
    for line in leftovers(result):
        console.print(line, soft_wrap=True, highlight=False)
    for line in _answers(result):
        console.print(line, style="bold", soft_wrap=True, highlight=False)


def _answers(result: ReplayResult) -> list[str]:
    """Return a sentence for each model: whether it is better than no change; worse models first."""
    models, _ = by_model(chain(result.families))
    found = list(
        answers(
            {
                name: {"metrics": metrics, "details": result.details.get(name, {})}
                for name, metrics in models.items()
            }
        )
    )
    more = [f"… and {len(found) - _SHOWN_ANSWERS:,} more models"] if len(found) > _SHOWN_ANSWERS else []
    return found[:_SHOWN_ANSWERS] + more


def leftovers(result: ReplayResult) -> list[str]:
    """Return lines of text on how much was read, and what of it was not evaluated."""
    rate = result.lines / result.seconds if result.seconds > 0.0 else 0.0
    took = f"in {result.seconds:.1f} s ({rate:,.0f} lines/s)"
    if result.compile_seconds >= _WORTH_REPORTING_SECONDS:
        took += f", after {result.compile_seconds:.0f} s of preparing the estimators"
    parts = [f"{result.lines:,} lines, {result.outcomes:,} outcomes {took}."]
    if result.pending:
        parts.append(f"{result.pending:,} predictions still waited for their label at the end.")
    if result.trace_rows:
        parts.append(f"{result.trace_rows:,} rows of trace written.")
    if result.bad:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in result.bad.most_common())
        parts.append(f"{result.bad.total():,} lines could not be used: {reasons}.")
        parts += [f"  {_where(bad, result)}: {_reason(bad)}" for bad in result.first_bad]
        if result.bad.total() > len(result.first_bad):
            parts.append("  …")
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
    return f"{text_and_example}\n{example.why}" if example.why else text_and_example


def to_json(result: ReplayResult) -> bytes:
    """Encode a result as a JSON document.

    `models` and `stream` have the form of `/api/v1/models`, `comparisons` that of `/api/v1/comparisons`.
    """
    models, stream = by_model(chain(result.families))
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


def _estimates(
    result: ReplayResult, values: Mapping[tuple[str, ...], float], order: Mapping[str, tuple[str, ...]]
) -> Table:
    table = Table(
        title=f"{result.source}: estimates at the end", title_justify="left", box=None, pad_edge=False
    )
    for heading in ("model", "outcomes", "forgetting"):
        table.add_column(heading, justify="right" if heading == "outcomes" else "left", no_wrap=True)
    for heading, _, _ in _COLUMNS:
        table.add_column(heading, justify="right")
    position = order["accuracy_ratio"].index("model")
    pairs = [key[1:] for key in values if key[0] == "accuracy_ratio"]
    pairs.sort(key=lambda labels: labels[position])  # stable: mechanisms stay in their order
    seen: set[str] = set()
    for labels in pairs:
        model = labels[position]
        forgetting = labels[1 - position]
        repeated = model in seen
        seen.add(model)
        outcomes = values.get(("outcomes_total", model), math.nan)
        cells = [
            _number(_value(values, order, name, {"model": model, "forgetting": forgetting}, more))
            for _, name, more in _COLUMNS
        ]
        table.add_row("" if repeated else model, "" if repeated else f"{outcomes:,.0f}", forgetting, *cells)
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
            model,
            _number(_float(found, "share_expected")),
            _number(_float(found, "arrived_ratio")),
            *map(_interval, estimates),
        )
    return table


def _interval(found: object) -> str:
    """Format an estimate with its interval, as far as they are defined."""
    value, lower = _float(found, "value"), _float(found, "lower")
    if math.isnan(lower):
        return _number(value)
    return f"{_number(value)} ({_number(lower)} to {_number(_float(found, 'upper'))})"


def _float(found: object, name: str) -> float:
    value = detail_at(found, name)
    return float(value) if isinstance(value, float | int) else math.nan


def _value(
    values: Mapping[tuple[str, ...], float],
    order: Mapping[str, tuple[str, ...]],
    name: str,
    labels: Mapping[str, str],
    more: tuple[str, ...],
) -> float:
    given = {**labels, **({"baseline": more[0]} if more else {})}
    key = tuple(given[label] for label in order.get(name, ()))
    return values.get((name, *key), math.nan)


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
            str(each["champion"]),
            str(each["challenger"]),
            str(each["verdict"]),
            f"{each['pairs']:,.0f}",
            *(_number(n if isinstance(n, int | float) else math.nan) for n in numbers),
        )
    return table


def _number(value: float) -> str:
    if math.isnan(value):
        return "–"
    if value >= _LARGE:
        return f"{value:.1e}"
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.4f}"


def _alarms(result: ReplayResult) -> Table:
    shown = result.alarms[-_SHOWN_ALARMS:]
    verdicts = sum(alarm.judgement is not None for alarm in result.alarms)
    drifts = len(result.alarms) - verdicts
    title = f"{drifts:,} drift alarm{'s' * (drifts != 1)}, {verdicts:,} verdict change{'s' * (verdicts != 1)}"
    if len(shown) < len(result.alarms):
        title += f"; the last {len(shown)}, and {len(result.alarms) - len(shown):,} more before them"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in (
        "model",
        "detector",
        "outcome",
        "time",
        "error before",
        "after",
        "statistic",
        "threshold",
    ):
        table.add_column(heading, justify="left" if heading in {"model", "detector", "time"} else "right")
    for alarm in shown:
        table.add_row(
            alarm.model,
            alarm.detector,
            f"{alarm.outcome:,}",
            _moment(alarm.event_ms),
            *_change(alarm),
            *map(_number, (alarm.statistic, alarm.threshold)),
        )
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


def _moment(event_ms: int) -> str:
    """Format date and time; empty before 2000, as of recordings without timestamps, or after 9999."""
    if not _YEAR_2000_MS <= event_ms < _YEAR_10000_MS:
        return ""
    return datetime.fromtimestamp(event_ms / 1000.0, tz=UTC).isoformat(sep=" ", timespec="seconds")
