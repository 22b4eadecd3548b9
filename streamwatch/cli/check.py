"""`streamwatch check`: whether `run` would work, and how large it can grow."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from streamwatch.cli.options import EXIT_CONFIG, ConfigFile, Overrides, read_settings

if TYPE_CHECKING:
    from streamwatch.assembly import Finding


def check(config: ConfigFile = None, overrides: Overrides = None) -> None:
    """Check the settings, reach Kafka, look for the topics and for room for state, work out the worst case.

    Before a deployment:

        streamwatch check -c prod.yaml

    Creates nothing and reads no record. Exit code: 0 when all is well, 2 when something must be changed.
    """
    settings = read_settings(config, overrides)

    import asyncio

    from streamwatch.assembly import check_all

    findings = asyncio.run(check_all(settings))
    for finding in findings:
        show(finding)
    if not all(finding.good for finding in findings):
        raise typer.Exit(EXIT_CONFIG)


def show(finding: Finding) -> None:
    """One line with a tick or a cross, its details below."""
    sign, color = ("✓", typer.colors.GREEN) if finding.good else ("✗", typer.colors.RED)
    typer.echo(f"{typer.style(sign, fg=color)} {finding.what}")
    for line in finding.details:
        typer.echo(f"  {line}")
