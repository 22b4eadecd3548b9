"""`streamwatch spark`: the same rules on Spark."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from typing import Annotated

import typer

from streamwatch.cli.options import ConfigFile, Overrides, read_settings, refuse

EXIT_FAILED = 1
"""Exit code where the next start may go on by itself."""
Master = Annotated[
    str | None,
    typer.Option(
        help="Spark master, such as local[2]. Default: the one that spark-submit sets.", show_default=False
    ),
]
AvailableNow = Annotated[
    bool, typer.Option("--available-now", help="Process the records that are there now, then exit.")
]


def spark(
    config: ConfigFile = None,
    overrides: Overrides = None,
    master: Master = None,
    *,
    available_now: AvailableNow = False,
) -> None:
    """Join and evaluate on Spark Structured Streaming, for more events than one process can handle.

    Run the job on this machine; results go to the topic spark.results_topic:

        streamwatch spark -c streamwatch.yaml --master 'local[2]'

    Serve the results with a daemon that uses the same file:

        streamwatch run -c streamwatch.yaml --set source=results

    Requires the extra `spark` and Java 17.

    Exit codes: 0 after a clean stop, 2 if settings or topics must be changed
    first, 1 for any other failure, such as brokers that cannot be reached
    within a minute: start it again.
    """
    try:
        import pyspark  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        from streamwatch.edge.extras import command_for

        refuse(f"streamwatch spark needs Spark: {command_for('spark')}, and Java 17")

    settings = read_settings(config, overrides)
    from streamwatch.assembly.spark import REFUSED, JobFailed, run_job

    try:
        run_job(settings, master, available_now=available_now)
    except REFUSED as error:
        refuse(str(error))
    except JobFailed as error:
        refuse(str(error), code=EXIT_FAILED)
