"""`streamwatch check`: whether `run` would work, and how large it can grow."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from streamwatch.cli.options import EXIT_CONFIG, ConfigFile, Overrides, read_settings

if TYPE_CHECKING:
    from streamwatch.admin.kafka_check import CheckResult


def check(config: ConfigFile = None, overrides: Overrides = None) -> None:
    """Check settings, Kafka access, topics and disk, and compute worst-case memory and disk use.

    Run it before a deployment:

        streamwatch check -c prod.yaml

    It creates nothing, and reads one batch of each topic.

    Exit codes: 0 if everything is in order, 2 if something must be changed.
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
