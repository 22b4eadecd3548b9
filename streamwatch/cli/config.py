"""`streamwatch config`: the configuration file, explained and described."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from pathlib import Path
from typing import Final

import typer

import streamwatch

_EXAMPLE: Final = Path(streamwatch.__file__).parent / "settings" / "example.yaml"
"""Written by `make generated`; read here without the settings, whose import takes most of a second."""

app = typer.Typer(
    help="Print an example configuration file, or its JSON Schema.",
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
