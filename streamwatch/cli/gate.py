"""`streamwatch gate`: verdict on a challenger as an exit code, for pipelines and rollouts."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

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
    from collections.abc import Callable

    from streamwatch.core.estimators.registers.fleet import Verdict
    from streamwatch.edge.daemon_api import Address

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

BETWEEN_SECONDS: Final = 10.0
"""Time between two requests."""


class NotCompared(Exception):  # noqa: N818 - the name says what happened
    """The daemon does not compare these two models."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Verdict on a challenger, with its evidence."""

    verdict: Verdict
    line: str
    """The verdict and its evidence, in one line."""
    document: dict[str, Any]
    """The comparison as the API returns it."""


def decide(  # noqa: PLR0913  # what is asked, and how long
    address: Address,
    champion: str,
    challenger: str,
    wait_seconds: float = 0.0,
    least_pairs: int = 0,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
    *,
    confirmed: bool = False,
) -> Decision:
    """Request the verdict until it is no longer open, or `wait_seconds` have passed.

    Once the daemon has answered, requests that fail, as while it restarts, are repeated as well. The first
    one must succeed, so that a wrong address or model is reported at once.

    Parameters
    ----------
    address
        Address of the daemon.
    champion, challenger
        Names of the models.
    wait_seconds
        Time for which the request is repeated while the verdict is open.
    least_pairs
        Number of ids compared below which a verdict counts as open.
    sleep
        Sleeps for a number of seconds.
    monotonic
        Monotonic clock in seconds.
    confirmed
        Whether a verdict counts as open while labels of its predictions may still arrive.

    Raises
    ------
    DaemonUnreachable
        If no daemon answered the first request or the last, or something other than a verdict.
    NotCompared
        If the daemon does not compare these models, or has compared no id yet.
    """
    from streamwatch.edge.daemon_api import DaemonUnreachable, understood

    until = monotonic() + wait_seconds
    answered = False
    while True:
        try:
            with understood(address):
                decision = _asked(address, champion, challenger, least_pairs, confirmed=confirmed)
        except (DaemonUnreachable, NotCompared):
            if not answered or monotonic() >= until:
                raise
        else:
            answered = True
            if decision.verdict != "open" or monotonic() >= until:
                return decision
        sleep(max(0.0, min(BETWEEN_SECONDS, until - monotonic())))


def _asked(
    address: Address, champion: str, challenger: str, least_pairs: int, *, confirmed: bool
) -> Decision:
    from streamwatch.core.estimators.registers.fleet import Verdict
    from streamwatch.edge.daemon_api import NotThere, answer, path_segment

    path = f"/api/v1/comparisons/{path_segment(champion)}/{path_segment(challenger)}/verdict"
    try:
        found = answer(address, path)["comparison"]
    except NotThere:
        raise NotCompared(
            f"{address.url}: does not compare {challenger!r} with {champion!r}, or has met no id that both "
            "predicted: expected a champion and a challenger of monitors.comparisons"
        ) from None
    if found["verdict"] not in get_args(Verdict):
        raise ValueError(f"expected one of {', '.join(get_args(Verdict))}, got {found['verdict']!r}")
    verdict: Verdict = found["verdict"] if int(found["pairs"]) >= least_pairs else "open"
    if confirmed and (found.get("status") == "early" or found.get("provisional")):
        verdict = "open"
    return Decision(verdict, _line(found, verdict, least_pairs), found)


def _line(found: dict[str, Any], verdict: Verdict, least_pairs: int) -> str:
    pairs = int(found["pairs"])
    both = f"{found['challenger']} beside {found['champion']}"
    lead = ""
    if "lead" in found:
        lead = f", lead {found['lead']:+.4f}"
        if "lead_lower" in found and "lead_upper" in found:
            lead += f" ({found['lead_lower']:+.4f} to {found['lead_upper']:+.4f})"
    evidence = found.get("evidence", {})
    shown = ", ".join(f"{side} {evidence[side]:.2f}" for side in ("better", "worse") if side in evidence)
    if verdict == "open":
        few = f" (fewer than {least_pairs:,})" if pairs < least_pairs else ""
        not_yet = f", {found['verdict']} but {_certainty(found)}" if found["verdict"] != "open" else ""
        compared = f"{pairs:,} ids compared{few}{not_yet}{lead}"
        return f"open: {both}, {compared}; evidence of 1 is a verdict: {shown}"
    from streamwatch.edge.receivers.texts import iso

    since = f" since {iso(round(1000 * found['verdict_since_timestamp_seconds']))}"
    certainty = f" ({basis})" if (basis := _certainty(found)) else ""
    return f"{verdict}{certainty}: {both}{since}, {pairs:,} ids compared{lead}"


def _certainty(found: dict[str, Any]) -> str:
    """Say whether a verdict may still change; empty if delays of labels do not matter to it."""
    if found.get("provisional"):
        return "provisional: in the order of labels"
    return {"early": "early: labels may still come", "confirmed": "confirmed"}.get(
        found.get("status", ""), ""
    )
