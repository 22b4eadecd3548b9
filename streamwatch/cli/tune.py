"""`streamwatch tune`: thresholds of detectors that keep a promised rate of false alarms."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamwatch.cli.compile import reporting_compilation
from streamwatch.cli.options import (
    CaFile,
    ConfigFile,
    Overrides,
    TokenFile,
    address_of,
    finite,
    refuse,
)
from streamwatch.cli.recordings import (
    Columns,
    LayoutName,
    Model,
    Topic,
    Unit,
    read_used_settings,
    recorded_spec,
    refuse_without_effect,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamwatch.edge.daemon_api import Address
    from streamwatch.history.replay.replay import ReplaySpec
    from streamwatch.history.tuning.history import History, Unfit


EXIT_NO_PROMISE = 1
"""Exit code if no history supports the promise."""


def tune(  # noqa: PLR0913  # one parameter per option
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]…",
            help="Recordings: JSON lines, CSV, the output of kcat -J, optionally gzipped; Parquet; - for "
            "stdin.",
        ),
    ] = None,
    *,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", metavar="DIR", help="Use the history in this state directory instead of files."
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="Use the history that this running daemon serves."),
    ] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    every: Annotated[
        str,
        typer.Option(
            "--every", metavar="DURATION", help="Accept at most one false alarm per model in this time."
        ),
    ] = "30d",
    traffic: Annotated[
        float | None,
        typer.Option(
            "--traffic",
            metavar="N",
            callback=finite,
            help="Outcomes per model and day. Default: as in the recording.",
        ),
    ] = None,
    detectors: Annotated[
        str,
        typer.Option(
            "--detectors", metavar="NAME,…", help="Detectors to tune. Settings are written for the best one."
        ),
    ] = "page_hinkley,ewma",
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Use only outcomes from this time on (ISO 8601)."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Use only outcomes before this time (ISO 8601)."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT.yaml", help="Write the settings to this file. Default: stdout."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the resampling.")] = 1,
    topic: Topic = None,
    model: Model = None,
    columns: Columns = None,
    timestamp_unit: Unit = None,
    layout: LayoutName = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
) -> None:
    """Find detector thresholds that keep a promised rate of false alarms.

    Accept at most one false alarm per model in 30 days:

        streamwatch tune outcomes.csv --every 30d -o detectors.yaml

    Use the history of a running daemon, or of a state directory:

        streamwatch tune --url http://127.0.0.1:9877 --every 30d
        streamwatch tune --state /var/lib/streamwatch/state --every 30d

    Streams like the recording are resampled from it in blocks that preserve
    its autocorrelation, and the threshold of each detector is set as low as
    the promise allows. The output states an interval of the rate of false
    alarms, and how long a drop of the accuracy by 2, 5 and 10 points goes
    undetected.

    The recording must cover a period in which the models did not change;
    --since and --until select one. Files are read as `streamwatch replay`
    reads them. The history of a daemon holds counts over minutes to hours,
    which suffice only for models whose losses are independent; others are
    refused.

    Exit codes: 0 on success, 1 if no history supports the promise, 2 if
    options or settings must be changed.
    """
    if sum(bool(source) for source in (files, state, url)) != 1:
        refuse("expected one of FILE…, --state DIR, --url URL")
    refuse_without_effect(
        files=bool(files),
        url=bool(url),
        of_files=(topic, model, columns, timestamp_unit, layout),
        of_daemons=(token_file, ca_file),
    )

    from rich.console import Console

    from streamwatch.history.tuning.advice import Wanted, best_of, document, print_tuned, tuned_models
    from streamwatch.history.tuning.promise import TUNED
    from streamwatch.settings.values import parse_duration

    kinds = [name.strip() for name in detectors.split(",")]
    if unknown := [name for name in kinds if name not in TUNED]:
        refuse(f"--detectors: expected some of {', '.join(TUNED)}, got {', '.join(unknown)}")
    try:
        every_ms = parse_duration(every)
    except ValueError as error:
        refuse(f"--every: {error}")
    if traffic is not None and not traffic > 0.0:
        refuse(f"--traffic: expected a number above 0, got {traffic}")
    _check_output(output, files or [], config)
    since_ms, until_ms = _time("--since", since), _time("--until", until)
    found: Mapping[str, History | Unfit]
    if files:
        settings = read_used_settings(config, overrides)

        def read() -> ReplaySpec:
            return recorded_spec(settings, files, topic, model, columns, timestamp_unit, layout)

        found = {name: each.between(since_ms, until_ms) for name, each in recorded(read).items()}
    else:
        found = kept(state or address_of(url, token_file, ca_file, None), since_ms, until_ms, seed)
    if not found:
        why = "; streamwatch replay says why" if files else ""
        refuse(f"no outcome could be read{why}", EXIT_NO_PROMISE)
    with reporting_compilation():
        tuned = tuned_models(found, Wanted(kinds, every_ms, traffic, seed))
    console = Console(stderr=output is None)
    if not console.is_terminal:  # a table in a file must not lose digits to an assumed width of 80
        console = Console(stderr=output is None, width=160)
    print_tuned(tuned, console)
    best = best_of(tuned)
    if best is None:
        refuse("no history supports the promise; nothing is written", EXIT_NO_PROMISE)
    text = document(best, every)
    if output is None:
        typer.echo(text, nl=False)
    else:
        _write(text, output)


def _check_output(output: Path | None, files: list[str], config: Path | None) -> None:
    """End the command if the output has no folder or is a file that is read, before minutes of computing."""
    from streamwatch.history.recordings.file import place_of

    if output is None:
        return
    try:
        if not output.parent.is_dir():
            refuse(f"--output: {output} cannot be written: there is no folder {output.parent}")
        read = [*files, *([config] if config is not None else [])]
        if (here := place_of(output)) is not None and here in map(place_of, read):
            refuse(f"--output: {output} cannot be written: expected another file than those that are read")
    except OSError as error:
        refuse(f"--output: {output} cannot be written: {error.strerror or error}")


def _write(text: str, output: Path) -> None:
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        refuse(f"--output: {output} cannot be written: {error.strerror or error}")


def _time(option: str, text: str | None) -> int | None:
    from datetime import UTC, datetime

    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        refuse(f"{option}: expected a time such as 2026-03-01 or 2026-03-01T12:00:00Z, got {text!r}")
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def recorded(read: Callable[[], ReplaySpec]) -> dict[str, History]:
    """Replay recordings, say what of them was read, and return the outcomes of every model.

    Ends the command at an error.
    """
    from rich.console import Console

    from streamwatch.history.recordings.file import RecordingError
    from streamwatch.history.replay.replay import replay
    from streamwatch.history.replay.tables import leftovers
    from streamwatch.history.tuning.history import Histories, outcomes_only
    from streamwatch.settings import SettingsError

    histories = Histories()
    try:
        spec = read()
        with reporting_compilation():
            made = replace(spec, monitors=outcomes_only(spec.monitors), seen=histories.add)
            result = replay(made, Console(stderr=True))
    except (RecordingError, SettingsError) as error:
        refuse(str(error))
    for line in leftovers(result):
        typer.echo(line, err=True)
    return histories.of_models()


def kept(
    source: Path | Address, since_ms: int | None, until_ms: int | None, seed: int
) -> dict[str, History | Unfit]:
    """Read the histories that a daemon keeps, from its state directory or its API.

    Ends the command at an error.
    """
    from streamwatch.admin.state_contents import state_pasts
    from streamwatch.core.estimators.past import HOUR_S, merged
    from streamwatch.edge.daemon_api import DaemonUnreachable
    from streamwatch.edge.stores.kind import StateFailed, StateRefused
    from streamwatch.edge.web.routes.history import seamless
    from streamwatch.history.tuning.history import counts_of, counts_of_daemon, histories_of

    try:
        if isinstance(source, Path):
            pasts = state_pasts(source)
            until_s = int(time.time()) + HOUR_S  # later outcomes are left out, as by the API
            counts = {
                name: counts_of(
                    seamless(merged(views, pasts.days), pasts.days, until_s), in_folds=len(views) > 1
                )
                for name, views in pasts.views.items()
            }
        else:
            counts = counts_of_daemon(source)
    except (StateRefused, StateFailed, DaemonUnreachable, OSError) as error:
        refuse(str(error))
    return histories_of({name: each.between(since_ms, until_ms) for name, each in counts.items()}, seed)
