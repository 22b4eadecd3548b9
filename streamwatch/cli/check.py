"""`streamwatch check`: whether `run` would work, and how large it can grow."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from streamwatch.cli.options import EXIT_CONFIG, ConfigFile, Overrides, read_settings

if TYPE_CHECKING:
    from streamwatch.admin.check_result import CheckResult


def check(config: ConfigFile = None, overrides: Overrides = None) -> None:
    """Check the settings, reach Kafka, look for the topics and for room for state, work out the worst case.

    Before a deployment:

        streamwatch check -c prod.yaml

    Creates nothing and reads one batch of each topic. Exit code: 0 when all is well, 2 when something must be
    changed.
    """
    settings = read_settings(config, overrides)

    import asyncio

    from streamwatch.assembly.checks import check_all

    results = asyncio.run(check_all(settings))
    for result in results:
        show(result)
    if not all(result.good for result in results):
        raise typer.Exit(EXIT_CONFIG)


def show(result: CheckResult) -> None:
    """One line with a tick or a cross, its details below."""
    sign, color = ("✓", typer.colors.GREEN) if result.good else ("✗", typer.colors.RED)
    typer.echo(f"{typer.style(sign, fg=color)} {result.what}")
    for line in result.details:
        typer.echo(f"  {line}")
