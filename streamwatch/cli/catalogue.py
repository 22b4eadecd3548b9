"""`streamwatch catalogue`: lists estimators with formula, source, parameters and cost."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

if TYPE_CHECKING:
    from rich.console import Console

Kind: TypeAlias = Literal[
    "mechanisms",
    "measures",
    "per_class",
    "bounds",
    "baselines",
    "comparisons",
    "detectors",
    "drift_weighted",
    "revisions",
]
Line: TypeAlias = dict[str, Any]

TITLES: dict[Kind, str] = {
    "mechanisms": "ways in which estimates forget; each gives one series of every measure "
    "(monitors.forgetting)",
    "measures": "measures of agreement; each is a metric, under every mechanism",
    "per_class": "measures of each class, under one mechanism (monitors.per_class)",
    "bounds": "bounds of the true accuracy: accuracy_bound_ratio (monitors.confidence_delta)",
    "baselines": "classifiers that a model must beat to be worth running: baseline_accuracy_ratio",
    "comparisons": "measures of two models on the same ids, under every mechanism but ADWIN "
    "(monitors.comparisons)",
    "detectors": "drift detectors, which raise alarms (monitors.detectors), in the order of labels or of "
    "predictions (monitors.detector_clocks)",
    "drift_weighted": "accuracies that weigh outcomes by their distance from drifts "
    "(monitors.drift_weighted)",
    "revisions": "measures of the first and the last prediction of an id, faded (join.conflicts: both, "
    "monitors.revisions)",
}
"""Description of each kind."""
_LABEL = 15


def catalogue(
    kind: Annotated[Kind | None, typer.Argument(help="List only this kind. Default: everything.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """List every forgetting mechanism, measure, bound, baseline and detector.

    Show the detectors with formula, source, cost (K classes, W outcomes in a
    window), and parameters with their ranges and defaults:

        streamwatch catalogue detectors

    Print everything as JSON:

        streamwatch catalogue --json
    """
    everything = document()
    listed: dict[Kind, list[Line]] = {
        name: lines for name, lines in everything.items() if kind in {None, name}
    }
    if as_json:
        import json

        typer.echo(json.dumps(listed, indent=2, ensure_ascii=False))
        return

    from rich.console import Console

    show(listed, Console(highlight=False))


def document() -> dict[Kind, list[Line]]:
    """Return the catalogue as JSON-like values by kind."""
    import msgspec

    from streamwatch.core.estimators.catalogue import listed

    return msgspec.to_builtins(listed())


def show(listed: dict[Kind, list[Line]], console: Console) -> None:
    """Print the catalogue: wrapped and in color on a terminal, a line per fact elsewhere."""
    from rich.text import Text

    for number, (kind, lines) in enumerate(listed.items()):
        title = Text.assemble(("\n" if number else "", ""), (kind, "bold"), f"  {TITLES[kind]}")
        console.print(title, soft_wrap=True)
        for line in lines:
            console.print(Text.assemble("\n  ", (line["name"], "bold cyan")), soft_wrap=True)
            for label in ("help", "formula", "source", "cost"):
                _fact("" if label == "help" else label, line[label], console)
            for parameter in line.get("parameters", ()):
                _fact(parameter["name"], _choice(parameter), console)


def _choice(parameter: Line) -> str:
    return (
        f"{parameter['meaning']}: {parameter['expected']}; {parameter['default']} by default. "
        f"{parameter['help']}"
    )


def _fact(label: str, content: str, console: Console) -> None:
    """Print a fact after its label, wrapped and indented on a terminal."""
    import textwrap

    from rich.text import Text

    before = f"    {label:<{_LABEL}}" if label else "    "
    width = max(console.width - len(before) - 1, 30)
    rows = textwrap.wrap(content, width, break_long_words=False) if console.is_terminal else [content]
    for number, row in enumerate(rows):
        head = before if number == 0 else " " * len(before)
        console.print(Text.assemble((head, "dim"), row), soft_wrap=True)
