"""Text output of `streamwatch state show`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamwatch.admin.sizes import size_text
from streamwatch.admin.state_show import Model, Overview
from streamwatch.history.samples import counted

_PARTS = {
    "entries": "join entries by id",
    "expiry": "index of deadlines",
    "dedup": "dedup keys of dedup entries",
    "journal": "journal",
    "models": "snapshots of models",
    "held": "outcomes that wait for their order",
    "outbox": "outbox",
    "meta": "sections and names",
    "log": "write-ahead log",
    "total": "all files",
}


def write(seen: Overview, console: Console) -> None:
    """Print facts, a table of models, and sizes."""
    for name, text in _facts(seen):
        console.print(f"[bold]{name:<16}[/bold] {escape(text)}", soft_wrap=True)
    if seen.models:
        console.print()
        console.print(_models(seen))
    console.print()
    console.print(_sizes(seen))


def _facts(seen: Overview) -> Iterator[tuple[str, str]]:
    yield "state", f"{seen.identity} in {seen.directory}"
    if seen.in_use_by is not None:
        by = f"process {seen.in_use_by}" if seen.in_use_by else "another process"
        yield "in use", f"by {by}: this is one of its latest commits; the newest is in its /metrics"
    yield "made", f"{_instant(seen.created_s)}, schema {seen.schema}, {seen.commits:,} commits"
    for each in seen.positions:
        yield "reads on", f"{each.topic}[{each.partition}] at {each.position:,}"
    yield "clock", "not known yet" if seen.clock_ms is None else _instant(seen.clock_ms / 1000)
    labels = seen.labels
    yield (
        "labels wait",
        (
            f"{labels['waiting']:,} with a model; {labels['retained']:,} without, "
            f"{labels['unmatched']:,} unmatched"
        ),
    )
    yield "dedup entries", f"{seen.dedup_entries:,}"
    if seen.order_buffer:
        yield "order buffer", counted(seen.order_buffer, "outcome")
    journal = seen.journal
    yield "journal", f"{counted(journal['outcomes'], 'outcome')} of {counted(journal['entries'], 'commit')}"
    yield "estimators", ", ".join(seen.estimators) or "none yet"
    for alarm in seen.alarms_open:
        since = _instant(alarm.started_at_ms / 1000)
        yield "alarm open", f"{alarm.model}: {alarm.detector}, {alarm.severity}, since {since}"
    owed = ", ".join(f"{number:,} to {receiver}" for receiver, number in seen.outbox.items())
    yield "outbox", owed or "nothing owed"
    waiting = seen.publications
    if waiting["commits"]:
        what = f"{counted(waiting['outcomes'], 'outcome')} and {counted(waiting['events'], 'event')}"
        commits = counted(waiting["commits"], "commit")
        yield "to be published", f"{what} of {commits}, as far as their topics do not have them"


def _models(seen: Overview) -> Table:
    """Build the table of models; a bin of ages is a column only if some model has predictions in it."""
    table = Table(title="pending predictions by age", title_justify="left")
    table.add_column("model")
    table.add_column("pending", justify="right")
    bounds = [f"< {_duration(seconds)}" for seconds in seen.age_bounds_seconds]
    bounds.append(f"≥ {_duration(seen.age_bounds_seconds[-1])}")
    shown = [i for i in range(len(bounds)) if any(model.ages and model.ages[i] for model in seen.models)]
    for i in shown:
        table.add_column(bounds[i], justify="right")
    aged = any(model.ages is not None for model in seen.models)
    if aged:
        table.add_column("oldest", justify="right")
    table.add_column("snapshot", justify="right")
    for model in seen.models:
        table.add_row(*_row(model, shown, aged=aged))
    return table


def _row(model: Model, shown: list[int], *, aged: bool) -> Iterator[str]:
    yield escape(model.model)
    yield f"{model.pending:,}"
    for i in shown:
        yield f"{model.ages[i]:,}" if model.ages else ""
    if aged:
        yield "" if model.oldest_seconds is None else _duration(model.oldest_seconds)
    yield "in the journal" if model.snapshot_bytes is None else size_text(model.snapshot_bytes)


def _sizes(seen: Overview) -> Table:
    table = Table(title="on disk", title_justify="left")
    table.add_column("part")
    table.add_column("bytes", justify="right")
    for part, size in seen.bytes.items():
        table.add_row(_PARTS.get(part, part), size_text(size))
    return table


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"
