"""`streamwatch doctor`: examines a running daemon and lists its problems."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from streamwatch.cli.options import (
    EXIT_CONFIG,
    CaFile,
    DaemonUrl,
    NamedConfigFile,
    Overrides,
    TokenFile,
    address_of,
    read_settings,
    refuse,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamwatch.admin.doctor.facts import Finding
    from streamwatch.edge.daemon_api import Address
    from streamwatch.settings import Settings

EXIT_FINDINGS = 1
"""Exit code if a problem was found."""


class FailOn(StrEnum):
    """Values of `--fail-on`: names of `streamwatch.admin.doctor.facts.Weight`."""

    NOTHING_WORKS = "nothing-works"
    NOTHING_TRUE = "nothing-true"
    INCOMPLETE = "incomplete"
    AT_RISK = "at-risk"
    WORTH_KNOWING = "worth-knowing"


def doctor(  # noqa: PLR0913  (one parameter per option)
    *,
    url: DaemonUrl = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            min=0,
            max=600,
            help="Time between the two readings, which show whether lag grows.",
        ),
    ] = 3.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document, with a finding for each model.")
    ] = False,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            "--fail-on",
            help="Exit with 1 only for findings of this weight or a greater one: for checks nobody watches.",
        ),
    ] = FailOn.WORTH_KNOWING,
    config: NamedConfigFile = None,
    overrides: Overrides = None,
) -> None:
    r"""Examine a running daemon and list its problems, the most important first.

    Examine a daemon on this machine:

        streamwatch doctor

    With the settings (-c), sample its topics as well, which shows ids that do
    not match and where invalid records are:

        streamwatch doctor -c streamwatch.yaml \
            --url https://streamwatch.example.net --token-file token

    It reads the daemon's metrics twice, and its models and health once. It
    changes nothing and joins no consumer group. Each finding states the figure, the likely cause,
    and what to change; a finding about four models or more is listed once.

    Weights, the greatest first: nothing-works (nothing is read or shown),
    nothing-true (numbers of a model or topic are missing or mean nothing),
    incomplete (events or notifications are left out), at-risk (it works now
    and may not later), worth-knowing (numbers are right and may mislead).

    Exit codes: 0 if no problem of --fail-on's weight or a greater one was
    found, 1 if one was, 2 if the daemon or its topics cannot be reached, or
    settings or the token cannot be used.
    """
    settings = read_settings(config, overrides) if config or overrides else None
    findings = _consulted(address_of(url, token_file, ca_file, settings), seconds, settings)
    if as_json:
        shown = [asdict(found) | {"weight": found.weight.name.lower()} for found in findings]
        typer.echo(json.dumps({"findings": shown}, indent=2, ensure_ascii=False))
    else:
        _show(findings)
    if any(found.weight <= type(found.weight)[fail_on.name] for found in findings):
        raise typer.Exit(EXIT_FINDINGS)


def _consulted(address: Address, seconds: float, settings: Settings | None) -> Sequence[Finding]:
    import asyncio

    from streamwatch.assembly.doctor import consult
    from streamwatch.edge.daemon_api import DaemonUnreachable
    from streamwatch.edge.sources.kafka import KafkaUnreachable, ReadDenied, TopicsMissing
    from streamwatch.settings import SettingsError

    try:
        return asyncio.run(consult(address, seconds, settings))
    except (DaemonUnreachable, KafkaUnreachable, ReadDenied, TopicsMissing, SettingsError) as error:
        refuse(str(error), EXIT_CONFIG)


def _show(findings: Sequence[Finding]) -> None:
    from streamwatch.admin.doctor.rules import grouped

    findings = grouped(findings)
    if not findings:
        typer.secho("✓ no problem was found", fg=typer.colors.GREEN)
    for number, found in enumerate(findings, 1):
        subject = typer.style(found.subject, bold=True)
        typer.echo(f"{number}. {subject} {found.observation}")
        typer.echo(f"   cause:  {found.cause}")
        typer.echo(f"   change: {found.change}")
