"""`streamwatch check`: checks that `run` can work, and computes its worst-case memory and disk."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streamwatch.cli.options import EXIT_CONFIG, ConfigFile, Overrides, read_settings, tick

if TYPE_CHECKING:
    from streamwatch.admin.kafka_check import CheckResult


def check(
    config: ConfigFile = None,
    overrides: Overrides = None,
    *,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show what memory, disk and series consist of.")
    ] = False,
) -> None:
    """Check settings, Kafka access, topics and disk, and compute worst-case memory and disk use.

    Run it before a deployment:

        streamwatch check -c prod.yaml

    It writes nothing. It decodes the first records of each topic (at most 100)
    with the mappings, and shows events, invalid records, and whether
    predictions match labels. Problems are listed last.

    Exit codes: 0 if everything is in order, 2 if something must be changed.
    """
    settings = read_settings(config, overrides)

    import asyncio

    from streamwatch.assembly.checks import check_all

    results = asyncio.run(check_all(settings))
    for result in sorted(results, key=lambda result: not result.good):
        show(result, verbose=verbose)
    wrong = sum(not result.good for result in results)
    named = f" -c {config}" if config else ""
    if wrong:
        problems = "a problem" if wrong == 1 else f"{wrong} problems"
        typer.echo(f"{problems} found: correct what is marked ✗, then run streamwatch check{named} again")
        raise typer.Exit(EXIT_CONFIG)
    typer.echo(f"nothing is in the way of streamwatch run{named}")


def show(result: CheckResult, *, verbose: bool = True) -> None:
    """Print a result with a tick or a cross, and its details below unless they are folded."""
    folded = result.folded and not verbose and result.details
    typer.echo(f"{tick(good=result.good)} {result.what}{' (--verbose says of what)' if folded else ''}")
    for line in () if folded else result.details:
        typer.echo(f"  {line}")
