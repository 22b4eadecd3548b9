"""`streamwatch config`: the configuration file, explained and described, and the scrape job that fits it."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

import streamwatch
from streamwatch.cli.options import ConfigFile, Overrides, read_settings

_EXAMPLE: Final = Path(streamwatch.__file__).parent / "settings" / "example.yaml"
"""Written by `make generated`; read here without the settings, whose import takes most of a second."""

app = typer.Typer(
    help="Print an example configuration file, its JSON Schema, or the scrape job that fits one.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command("example")
def example() -> None:
    """Print a commented configuration file with every setting and its default.

    [dim]streamwatch config example > streamwatch.yaml[/dim]
    """
    typer.echo(_EXAMPLE.read_text("utf-8"), nl=False)


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of the configuration file, for editors and validation.

    [dim]streamwatch config schema > streamwatch.schema.json[/dim]
    """
    import json

    from streamwatch.settings import json_schema

    typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))


@app.command("scrape")
def scrape(
    config: ConfigFile = None,
    overrides: Overrides = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address at which Prometheus reaches the daemon. Default: http.listen.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the job by which Prometheus scrapes a daemon with these settings.

    Its limit of samples follows monitors.max_series, and it asks for a token
    or speaks TLS where the daemon does; files are named as examples.

    [dim]streamwatch config scrape -c prod.yaml --target streamwatch:9877[/dim]
    """
    from streamwatch.assembly.scraping import scrape_job

    typer.echo(scrape_job(read_settings(config, overrides), target), nl=False)
