"""`streamwatch lab`: streams and experiments of the literature, a command each."""

from __future__ import annotations

import typer

from streamwatch.cli.lab import testbed

app = typer.Typer(
    help="Streams on which methods are tried, and the literature's experiments with the daemon's own core.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command("testbed")(testbed.write_stream)
