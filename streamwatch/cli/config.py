"""`streamwatch config`: the configuration file, explained and described."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

import typer

app = typer.Typer(
    help="Write a configuration file to start from, or the schema of it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command("example")
def example() -> None:
    """Print a commented configuration file with every setting at its default.

    [dim]streamwatch config example > streamwatch.yaml[/dim]
    """
    from streamwatch.settings import example as written

    typer.echo(written(), nl=False)


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of the configuration file, for editors and checks.

    [dim]streamwatch config schema > streamwatch.schema.json[/dim]
    """
    import json

    from streamwatch.settings import json_schema

    typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
