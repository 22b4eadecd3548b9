"""`streamwatch replay`: the daemon's core over recorded events."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from typing import Annotated, Literal

import typer

from streamwatch.cli.options import ConfigFile, Overrides, read_settings, refuse

_NO_KAFKA = {
    "kafka": {"bootstrap_servers": ["none:0"]},
    "topics": {"predictions": ["recording"], "labels": ["recording-labels"]},
}


def replay(  # one parameter per option
    file: Annotated[str, typer.Argument(help="JSON lines or CSV, .gz too; - for standard input.")],
    *,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="OUT.csv", help="Write every estimate after every outcome."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, no tables.")] = False,
    layout: Annotated[
        Literal["jsonl", "csv"] | None, typer.Option("--format", help="Found out if absent.")
    ] = None,
    timestamp_unit: Annotated[
        Literal["ms", "s", "us", "ns", "iso8601"], typer.Option(help="Unit of `timestamp`.")
    ] = "ms",
    config: ConfigFile = None,
    overrides: Overrides = None,
) -> None:
    """Evaluate recorded predictions and labels as the daemon would; no Kafka needed.

    Final estimates and alarms of a recording:

        streamwatch replay events.jsonl

    Columns id,model,prediction,label make an outcome of each row:

        streamwatch replay outcomes.csv --trace trace.csv

    With your own settings, from a pipe:

        zcat old.jsonl.gz | streamwatch replay - --json -c streamwatch.yaml -s join.horizon=2d

    Only the sections join, time and monitors of the settings are used.
    """
    settings = read_settings(config, overrides, otherwise=_NO_KAFKA)

    import sys

    from rich.console import Console

    from streamwatch.assembly import specs
    from streamwatch.lab.recorded import RecordingError
    from streamwatch.lab.replay import ReplaySpec
    from streamwatch.lab.replay import replay as evaluate
    from streamwatch.lab.replay_tables import print_result, to_json
    from streamwatch.settings import SettingsError

    try:
        spec = ReplaySpec(
            source=file,
            layout=layout,
            timestamp_unit=timestamp_unit,
            join=specs.join_spec(settings),
            time=specs.time_spec(settings),
            monitors=specs.monitors_spec(settings),
            trace=trace,
        )
        result = evaluate(spec, Console(stderr=True))
    except (RecordingError, SettingsError) as error:
        refuse(str(error))
    if as_json:
        sys.stdout.buffer.write(to_json(result) + b"\n")
    else:
        # A table sent to a file must not lose digits to an assumed width of 80.
        print_result(result, Console() if sys.stdout.isatty() else Console(width=160))
