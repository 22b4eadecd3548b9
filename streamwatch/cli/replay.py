"""`streamwatch replay`: the daemon's core over recorded events."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from typing import Annotated, Literal

import typer

from streamwatch.cli.compiling import telling_of_compiling
from streamwatch.cli.options import ConfigFile, Overrides, read_settings, refuse

_NO_KAFKA = {
    "kafka": {"bootstrap_servers": ["none:0"]},
    "topics": {"predictions": ["predictions"], "labels": ["labels"]},
}
EXIT_UNUSABLE = 1
"""Exit code where no line could be used."""


def replay(  # noqa: PLR0913  # one parameter per option
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="JSON lines, CSV or lines of kcat -J, .gz too; - for stdin."),
    ],
    *,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="NAME", help="All lines are records of this topic.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model of every prediction.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="FIELD=NAME,…",
            help="What id, model, prediction, label, timestamp, scores are called: prediction=y_hat,label=y.",
        ),
    ] = None,
    timestamp_unit: Annotated[
        Literal["ms", "s", "us", "ns", "iso8601"] | None,
        typer.Option(help="Unit of timestamps; that of the mappings if absent."),
    ] = None,
    layout: Annotated[
        Literal["jsonl", "csv", "kcat"] | None, typer.Option("--format", help="Found out if absent.")
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="OUT.csv", help="Write every estimate after every outcome."),
    ] = None,
    trace_comparisons: Annotated[
        str | None,
        typer.Option("--trace-comparisons", metavar="OUT.csv", help="The same of every pair of outcomes."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, no tables.")] = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
) -> None:
    """Evaluate recorded predictions and labels as the daemon would; no Kafka needed.

    Final estimates and alarms of a recording:

        streamwatch replay events.jsonl

    Columns id,model,prediction,label make an outcome of each row:

        streamwatch replay outcomes.csv --trace trace.csv --columns prediction=y_hat,label=y --model v3

    What kcat read of two topics, with the mappings of your settings:

        kcat -b broker -C -e -J -t scores > scores.jsonl; kcat -b broker -C -e -J -t truth > truth.jsonl
        streamwatch replay scores.jsonl truth.jsonl --json -c streamwatch.yaml -s join.horizon=2d

    Lines are decoded with the mappings of the settings' topics, or else by the default field names: a line of
    kcat by its topic's, any other by the one that fits, unless --topic names it. Several files are merged by
    time. Of the settings topics, join, time and monitors are used. Exit code: 1 when no line could be used.
    """
    settings = read_settings(config, overrides, otherwise=_NO_KAFKA)

    import sys

    from rich.console import Console

    from streamwatch.assembly import specs
    from streamwatch.assembly.replay import csv_columns, places_text, recorded_topics
    from streamwatch.lab.recorded import RecordingError
    from streamwatch.lab.replay import ReplaySpec
    from streamwatch.lab.replay import replay as evaluate
    from streamwatch.lab.replay_tables import print_result, to_json, unusable
    from streamwatch.settings import SettingsError

    try:
        topics = recorded_topics(settings, model=model, columns=_columns(columns), unit=timestamp_unit)
        if topic is not None and topic not in topics:
            refuse(f"--topic: expected one of {', '.join(topics)}, got {topic!r}")
        spec = ReplaySpec(
            sources=files,
            layout=layout,
            topics=topics,
            topic=topic,
            closed=list(topics) != [*_NO_KAFKA["topics"]],
            columns=csv_columns(topics),
            join=specs.join_spec(settings),
            merge=specs.merge_spec(settings),
            monitors=specs.monitors_spec(settings),
            trace=trace,
            trace_comparisons=trace_comparisons,
        )
        with telling_of_compiling():
            result = evaluate(spec, Console(stderr=True))
    except (RecordingError, SettingsError) as error:
        refuse(str(error))
    why = unusable(result)
    if as_json:
        sys.stdout.buffer.write(to_json(result) + b"\n")
        sys.stdout.flush()
    elif why is None:
        # A table sent to a file must not lose digits to an assumed width of 80.
        print_result(result, Console() if sys.stdout.isatty() else Console(width=160))
    if why is not None:
        refuse(f"{why}\n{places_text(topics)}", EXIT_UNUSABLE)


def _columns(text: str | None) -> dict[str, str]:
    """Read `prediction=y_hat,label=y`."""
    if text is None:
        return {}
    pairs = [part.partition("=") for part in text.split(",")]
    for field, equals, name in pairs:
        if not (field.strip() and equals and name.strip()):
            refuse(f"--columns: expected FIELD=NAME,… such as prediction=y_hat,label=y; got {text!r}")
    return {field.strip(): name.strip() for field, _, name in pairs}
