"""Tables and lines of `streamwatch inspect` on stderr: mapping, pairs, rates, delays, classes, lone ids."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest

from rich.console import Console
from rich.markup import escape as markup_escape
from rich.measure import Measurement
from rich.table import Table

from streamwatch.core.join.caveats import CAUSE
from streamwatch.edge.decoders.mapping import REASONS, notation
from streamwatch.inspection.guessed import Choice, Guess
from streamwatch.inspection.guessing import duration_text, quantile_ms
from streamwatch.inspection.joined import JoinedSample
from streamwatch.inspection.words import printable

_WIDEST = 10_000
"""Width in which no table is broken."""


def escape(text: str) -> str:
    """Escape control characters and rich's markup in a text of records."""
    return markup_escape(printable(text))


def show(guess: Guess, sample: JoinedSample | None, console: Console, *, partial: bool = False) -> None:
    """Print the guess and the join of the sample; `partial` tells that topics have records beyond it."""
    for note in guess.notes:
        console.print(escape(note))
    if guess.topics:
        _show_mapping(guess, console)
    if sample is None:
        return
    console.print(_pairs(sample))
    met = f"{sample.joined:,} of {sample.predictions:,} predictions ({sample.rate:.1%})"
    labels = f"{sample.labels_met:,} of {sample.labels:,} labels matched a prediction"
    for topic, read in sample.read.items():
        console.print(f"read of {escape(topic)}: {read.text()}")
    console.print(f"join rate of the sample: {met} matched a label; {labels}")
    for line in unmatched(sample, partial=partial):
        console.print(line)
    if sample.joined:
        console.print(f"predicted class equals true class in {sample.agreed / sample.joined:.1%} of them")
    if sample.dated:
        shown = [duration_text(quantile_ms(sample.delays_ms, share)) for share in (0.5, 0.9)]
        longest = duration_text(sample.delays_ms[-1])
        console.print(f"label delay: median {shown[0]}, 90 % within {shown[1]}, longest {longest}")
    for kind, counts in (("predicted", sample.predicted_classes), ("true", sample.true_classes)):
        console.print(f"{kind} classes: {escape(_shares(counts))}")
    for (topic, reason), count in sample.invalid.most_common():
        words = f": {REASONS[reason]}" if reason in REASONS else ""
        invalid = f"{count:,} {'record' if count == 1 else 'records'} of {escape(topic)} would be invalid"
        console.print(f"[red]{invalid}: {reason}{words}[/red]")
    for each in sample.repeats.many():
        console.print(f"[red]model {escape(each.model)} {each.summary}; {CAUSE}[/red]")
    if sample.lone_predictions or sample.lone_labels:
        console.print(_lone(sample))


def unmatched(sample: JoinedSample, *, partial: bool = False) -> list[str]:
    """Describe how many unmatched predictions may be too young, and unmatched labels too old, for the sample.

    If it is `partial`, labels may also belong to predictions that were not read. Empty if records have no
    times.
    """
    found: list[str] = []
    if lone := sample.predictions - sample.joined:
        cause = f"of {lone:,} predictions without a label"
        if sample.not_due:
            cause += (
                f", {sample.not_due:,} are younger than every one that has its label: theirs may still come"
            )
        else:
            cause += ", none is younger than every one that has its label: theirs are not in the sample, or "
            cause += "never come"
        found.append(cause)
    if alone := sample.labels - sample.labels_met:
        cause = f"of {alone:,} labels without a prediction"
        if sample.before:
            cause += f", {sample.before:,} are older than the first prediction of the sample"
        else:
            cause += ", none is older than the first prediction of the sample: "
            if partial:
                cause += "predictions that were not read (--sample reads more), "
            cause += "labels of other systems, or ids that differ"
        found.append(cause)
    return found if sample.dated else []


def _show_mapping(guess: Guess, console: Console) -> None:
    """Print the proposed fields as a table, or as lines where a table would break paths, to be copied."""
    table = Table(title="proposed mapping", title_justify="left")
    lines = ["proposed mapping"]
    for name in ("topic", "field", "path", "sure", "why", "else"):
        table.add_column(name)
    for topic in (each for one in guess.topics for each in (one, *one.others)):
        first = heading = escape(f"{topic.topic} ({topic.side})")
        for name in ("id", "model", "prediction", "label", "timestamp"):
            choice = getattr(topic, name)
            if not isinstance(choice, Choice):
                continue
            path, why, other = map(escape, (notation(choice.locations), choice.why, choice.runner_up))
            table.add_row(first, name, path, f"{choice.confidence:.0%}", why, other)
            lines += [heading] if first else []
            lines.append(f"  {name}: {path}")
            lines.append(f"    {choice.confidence:.0%} sure: {why}{f'; else {other}' if other else ''}")
            first = ""
    if Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum <= console.width:
        console.print(table)
        return
    for line in lines:
        console.print(line, soft_wrap=True)


def _pairs(sample: JoinedSample) -> Table:
    table = Table(title="examples of joined pairs", title_justify="left")
    for name in ("id", "model", "predicted", "true", "delay"):
        table.add_column(name)
    for pair in sample.pairs:
        delay = duration_text(pair.delay_ms) if sample.dated else "unknown"
        table.add_row(*map(escape, (pair.id, pair.model, pair.predicted_class, pair.true_class)), delay)
    return table


def _lone(sample: JoinedSample) -> Table:
    table = Table(title="ids without a match", title_justify="left")
    table.add_column("of predictions")
    table.add_column("of labels")
    for prediction, label in zip_longest(sample.lone_predictions, sample.lone_labels, fillvalue=""):
        table.add_row(escape(prediction), escape(label))
    return table


def _shares(counts: Counter[str]) -> str:
    total = counts.total()
    shown = ", ".join(f"{name} {count / total:.1%}" for name, count in counts.most_common(8))
    return shown + (f", … ({len(counts)} classes)" if len(counts) > 8 else "")
