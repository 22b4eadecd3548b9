"""`streamwatch replay`: evaluates recorded events as the daemon would."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from streamwatch.cli.compile import reporting_compilation
from streamwatch.cli.options import ConfigFile, Overrides, refuse
from streamwatch.cli.recordings import (
    Columns,
    Files,
    LayoutName,
    Model,
    Topic,
    Unit,
    read_used_settings,
    recorded_spec,
)
from streamwatch.cli.report import require_formats, settings_text, versions, write

EXIT_UNUSABLE = 1
"""Exit code if no line could be used."""


def replay(  # noqa: PLR0913  # one parameter per option
    files: Files,
    *,
    topic: Topic = None,
    model: Model = None,
    columns: Columns = None,
    timestamp_unit: Unit = None,
    layout: LayoutName = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace", metavar="OUT.csv", help="Write every estimate after every outcome to this file."
        ),
    ] = None,
    trace_comparisons: Annotated[
        str | None,
        typer.Option(
            "--trace-comparisons",
            metavar="OUT.csv",
            help="Write every comparison of models after every pair of outcomes to this file.",
        ),
    ] = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            "--report",
            metavar="OUT",
            help="Write a page to hand on, .html or .md, as `streamwatch report` does. May be repeated.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of tables.")
    ] = False,
    config: ConfigFile = None,
    overrides: Overrides = None,
) -> None:
    r"""Evaluate recorded predictions and labels as the daemon would, without Kafka.

    Print the final estimates and the alarms of a recording:

        streamwatch replay events.jsonl

    Read a CSV file whose rows hold a prediction and its label (the default
    columns are id, model, prediction and label), and trace every estimate:

        streamwatch replay outcomes.csv --trace trace.csv \
            --columns prediction=y_hat,label=y --model v3

    Write a page that can be handed on:

        streamwatch replay outcomes.csv --report report.html

    Replay two topics that kcat has recorded, with your own settings:

        kcat -b broker -C -e -J -t scores > scores.jsonl
        kcat -b broker -C -e -J -t truth > truth.jsonl
        streamwatch replay scores.jsonl truth.jsonl --json -c streamwatch.yaml

    Lines are decoded with the mappings of the topics in the settings, or with
    the default field names if there are none. A line of kcat uses the mapping
    of its topic; any other line uses the mapping that fits, unless --topic
    names one. Several files are merged by time. Only the sections topics,
    join, time, monitors and folds of the settings are used; an error in any
    other section is a warning.

    Exit codes: 0 on success, 1 if no line could be used, 2 if options or
    settings must be changed.
    """
    settings = read_used_settings(config, overrides)
    if report:
        require_formats(report, "--report")

    import sys

    from rich.console import Console

    from streamwatch.assembly.topics import paths_text
    from streamwatch.history.recordings.file import RecordingError
    from streamwatch.history.replay.replay import replay as evaluate
    from streamwatch.history.replay.tables import print_result, to_json, unusable
    from streamwatch.history.reporting.sources import Curves, of_result
    from streamwatch.settings import SettingsError

    try:
        read = recorded_spec(settings, files, topic, model, columns, timestamp_unit, layout)
        spec = replace(read, trace=trace, trace_comparisons=trace_comparisons)
        curves = Curves()
        if report:
            spec = replace(spec, look=curves.look)
        with reporting_compilation():
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
    if report and why is None:
        write(of_result(result, curves, versions(), settings_text(settings)), report, "--report")
    if why is None and not result.outcomes:
        text = f"no prediction has met a label\n{paths_text(spec.topics)}"
        typer.secho(text, err=True, fg=typer.colors.YELLOW)
    if why is not None:
        refuse(f"{why}\n{paths_text(spec.topics)}", EXIT_UNUSABLE)
