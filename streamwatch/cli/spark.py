"""`streamwatch spark`: the same rules on Spark."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from typing import Annotated

import typer

from streamwatch.cli.options import ConfigFile, Overrides, read_settings, refuse

Master = Annotated[
    str | None,
    typer.Option(
        help="Where Spark runs, such as local[2]; absent, what spark-submit says.", show_default=False
    ),
]
AvailableNow = Annotated[
    bool, typer.Option("--available-now", help="Read what there is now, and end, instead of going on.")
]


def spark(
    config: ConfigFile = None,
    overrides: Overrides = None,
    master: Master = None,
    *,
    available_now: AvailableNow = False,
) -> None:
    """Join and evaluate on Spark Structured Streaming, for more events than one process takes.

    On this machine, into the topic of spark.results_topic:

        streamwatch spark -c streamwatch.yaml --master 'local[2]'

    What it finds is served by a daemon with the same file:

        streamwatch run -c streamwatch.yaml --set source=results

    Needs the extra `spark` and Java 17. Exit code: 0 after a stop, 2 when settings or topics must be changed
    first, 1 for anything else.
    """
    try:
        import pyspark  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        from streamwatch.edge.extras import command_for

        refuse(f"streamwatch spark needs Spark: {command_for('spark')}, and Java 17")

    settings = read_settings(config, overrides)
    from streamwatch.assembly.spark import REFUSED, run_job

    try:
        run_job(settings, master, available_now=available_now)
    except REFUSED as error:
        refuse(str(error))
