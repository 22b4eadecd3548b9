"""Commands, one a file. Slow imports are made when a command runs, so that `--help` is quick."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Annotated, Final

import typer

from streamwatch.cli import (
    alerts,
    catalogue,
    check,
    config,
    demo,
    doctor,
    gate,
    inspect,
    replay,
    report,
    run,
    simulate,
    spark,
    state,
    tune,
)
from streamwatch.cli.build import description
from streamwatch.cli.compile import compile_estimators
from streamwatch.cli.options import EXIT_CONFIG
from streamwatch.core.jit.shipped import choose_processor

app = typer.Typer(
    help="Monitor deployed classifiers whose labels arrive late: is each model still better than repeating "
    "the last label, and if not, since when?\n\n"
    "Try it without Kafka:  [bold]streamwatch demo[/bold]\n\n"
    "Watch your own topics:  [bold]streamwatch inspect -b broker:9092 -t scores -t outcomes -w "
    "streamwatch.yaml[/bold], then  [bold]streamwatch check[/bold]  and  [bold]streamwatch run[/bold]\n\n"
    "See what each command does, with examples:  [bold]streamwatch COMMAND --help[/bold]",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # a traceback with local variables would print what records contain
)
app.command("run")(run.run)
app.command("demo")(demo.demo)
app.command("spark")(spark.spark)
app.command("simulate")(simulate.simulate)
app.command("replay")(replay.replay)
app.command("report")(report.report)
app.command("tune")(tune.tune)
app.command("inspect")(inspect.inspect)
app.command("check")(check.check)
app.command("doctor")(doctor.doctor)
app.command("gate")(gate.gate)
app.command("compile")(compile_estimators)
app.command("catalogue")(catalogue.catalogue)
app.add_typer(config.app, name="config")
app.add_typer(alerts.app, name="alerts")
app.add_typer(state.app, name="state")


def _version(*, asked: bool) -> None:
    if asked:
        typer.echo(description())
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and the build, and exit.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    del version


def main() -> None:
    """Entry point of the `streamwatch` command."""
    choose_processor()
    for stream in (sys.stdout, sys.stderr):
        # A name of a model or file may have characters that the encoding of the terminal lacks.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except OSError as error:
        if error.filename is not None or error.errno not in _OF_WRITING or not _stdout_is_unwritable():
            raise
        typer.echo(f"standard output cannot be written: {error.strerror or error}", err=True)
        sys.exit(EXIT_CONFIG)


_OF_WRITING: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EPIPE, errno.ECONNRESET}
)
"""Numbers of errors that a write to standard output may have; such an error names no file."""


def _stdout_is_unwritable() -> bool:
    """Tell whether standard output takes nothing more; what it still holds is dropped then.

    Writes a line end, as bytes that failed to be written may be gone already.
    """
    try:
        sys.stdout.flush()
        os.write(sys.stdout.fileno(), b"\n")
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the exit flushes again
        return True
    return False
