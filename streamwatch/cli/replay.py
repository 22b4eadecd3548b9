"""`streamwatch replay`: the daemon's core over recorded events."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from streamwatch.cli.compiling import telling_of_compiling
from streamwatch.cli.options import ConfigFile, Overrides, read_used_settings, refuse
from streamwatch.cli.recordings import (
    NO_KAFKA,
    USED,
    Columns,
    Files,
    LayoutName,
    Model,
    Topic,
    Unit,
    recorded_spec,
)

EXIT_UNUSABLE = 1
"""Exit code where no line could be used."""


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
    time. Of the settings (-c, or ./streamwatch.yaml if there is one) topics, join, time, monitors and folds
    are used; a fault elsewhere is a warning. Exit code: 1 when no line could be used.
    """
    settings = read_used_settings(config, overrides, USED, NO_KAFKA)

    import sys

    from rich.console import Console

    from streamwatch.assembly.replay import places_text
    from streamwatch.lab.recorded import RecordingError
    from streamwatch.lab.replay import replay as evaluate
    from streamwatch.lab.replay_tables import print_result, to_json, unusable
    from streamwatch.settings import SettingsError

    try:
        read = recorded_spec(settings, files, topic, model, columns, timestamp_unit, layout)
        spec = replace(read, trace=trace, trace_comparisons=trace_comparisons)
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
        refuse(f"{why}\n{places_text(spec.topics)}", EXIT_UNUSABLE)
