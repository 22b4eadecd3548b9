"""`streamwatch gate`: verdict on a challenger as an exit code, for pipelines and rollouts."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from streamwatch.cli.options import (
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
    from streamwatch.assembly.gate import Verdict

EXIT_UNANSWERED = 3
"""Exit code if the daemon cannot be reached, or does not compare the two models."""


def gate(  # noqa: PLR0913  (one parameter per option)
    *,
    champion: Annotated[str, typer.Option("--champion", help="Model in production.")],
    challenger: Annotated[str, typer.Option("--challenger", help="Model that may replace the champion.")],
    wait: Annotated[
        str,
        typer.Option(
            "--wait",
            help="Ask again until a verdict is held, for as long as this (30m, 2d); once answered, "
            "also while the daemon restarts.",
        ),
    ] = "0s",
    least_pairs: Annotated[
        int,
        typer.Option(
            "--least-pairs", min=0, help="A verdict counts from so many ids on which both were compared."
        ),
    ] = 0,
    confirmed: Annotated[
        bool,
        typer.Option("--confirmed", help="A verdict counts only once all labels of its predictions are in."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    url: DaemonUrl = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    config: NamedConfigFile = None,
    overrides: Overrides = None,
) -> None:
    r"""Ask a running daemon whether a challenger is better than a champion.

    In a pipeline, before the challenger is promoted:

        streamwatch gate --champion fraud-v3 --challenger fraud-v4 --wait 6h

    The verdict is that of monitors.comparisons: on the same ids, by the utility
    of the champion, and false with probability monitors.confidence_delta at
    most however often one asks. It is open until the evidence suffices. Where
    labels are late, it is "early" until all labels of its predictions are in;
    with --confirmed, only then does it count.

    Exit codes: 0 if the challenger is better, 1 if it is worse, 2 if neither is
    shown (or options are wrong), 3 if the daemon cannot be asked or does not
    compare these models.
    """
    from streamwatch.assembly.gate import NotCompared, decide
    from streamwatch.edge.daemon_api import DaemonUnreachable
    from streamwatch.settings.values import parse_duration

    try:
        wait_seconds = parse_duration(wait) / 1000
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--wait") from None
    settings = read_settings(config, overrides) if config or overrides else None
    address = address_of(url, token_file, ca_file, settings)
    try:
        decision = decide(address, champion, challenger, wait_seconds, least_pairs, confirmed=confirmed)
    except (DaemonUnreachable, NotCompared) as error:
        refuse(str(error), EXIT_UNANSWERED)
    typer.echo(json.dumps(decision.document, ensure_ascii=False) if as_json else decision.line)
    raise typer.Exit(_EXITS[decision.verdict])


_EXITS: dict[Verdict, int] = {"better": 0, "worse": 1, "open": 2}
