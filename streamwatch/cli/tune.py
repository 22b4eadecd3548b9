"""`streamwatch tune`: thresholds that keep a promised rate of false alarms, from recorded outcomes."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamwatch.cli.compiling import telling_of_compiling
from streamwatch.cli.options import ConfigFile, Overrides, read_used_settings, refuse
from streamwatch.cli.recordings import (
    NO_KAFKA,
    USED,
    Columns,
    Files,
    LayoutName,
    Model,
    Topic,
    Unit,
    recorded_spec,
)

if TYPE_CHECKING:
    from streamwatch.lab.tuning.history import History

EXIT_NO_PROMISE = 1
"""Exit code where no history supports the promise."""


def tune(  # noqa: PLR0913  # one parameter per option
    files: Files,
    *,
    every: Annotated[
        str,
        typer.Option("--every", metavar="DURATION", help="At most one false alarm of a model in this time."),
    ] = "30d",
    traffic: Annotated[
        float | None,
        typer.Option(
            "--traffic", metavar="N", help="Outcomes of a model a day; as in the recording if absent."
        ),
    ] = None,
    detectors: Annotated[
        str, typer.Option("--detectors", metavar="NAME,…", help="Detectors to tune; the best is written.")
    ] = "page_hinkley,ewma",
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Use outcomes from this time on (ISO 8601).")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Use outcomes before this time.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT.yaml", help="Write the settings here.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of what is drawn.")] = 1,
    topic: Topic = None,
    model: Model = None,
    columns: Columns = None,
    timestamp_unit: Unit = None,
    layout: LayoutName = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
) -> None:
    """Find thresholds that keep a promise: at most one false alarm of a model in so much time.

    At most one in 30 days:

        streamwatch tune outcomes.csv --every 30d -o detectors.yaml

    Streams like the recording are drawn from it in blocks that keep its autocorrelation, and the threshold of
    each detector is set as low as the promise allows. Told are the rate to expect, with an interval, and how
    long a drop of the accuracy by 2, 5 and 10 points stays unseen. The recording must be of a time in which
    models did not change; --since and --until choose one. Files are read as replay reads them. Exit code: 1
    when no history supports the promise.
    """
    settings = read_used_settings(config, overrides, USED, NO_KAFKA)

    from rich.console import Console

    from streamwatch.lab.recorded import RecordingError
    from streamwatch.lab.replay import replay
    from streamwatch.lab.tuning.advice import Wanted, best_of, document, tuned_models
    from streamwatch.lab.tuning.history import Histories, outcomes_only
    from streamwatch.lab.tuning.strictness import TUNED
    from streamwatch.lab.tuning.tables import print_tuned
    from streamwatch.settings import SettingsError
    from streamwatch.settings.durations import parse_duration

    kinds = [name.strip() for name in detectors.split(",")]
    if unknown := [name for name in kinds if name not in TUNED]:
        refuse(f"--detectors: expected some of {', '.join(TUNED)}, got {', '.join(unknown)}")
    try:
        every_ms = parse_duration(every)
    except ValueError as error:
        refuse(f"--every: {error}")
    if traffic is not None and not traffic > 0.0:
        refuse(f"--traffic: expected a number above 0, got {traffic}")
    since_ms, until_ms = _time("--since", since), _time("--until", until)
    histories = Histories()
    try:
        read = recorded_spec(settings, files, topic, model, columns, timestamp_unit, layout)
        monitors = outcomes_only(read.monitors)
        with telling_of_compiling():
            replay(replace(read, monitors=monitors, seen=histories.add), Console(stderr=True))
    except (RecordingError, SettingsError) as error:
        refuse(str(error))
    found: dict[str, History] = {
        name: history.between(since_ms, until_ms) for name, history in histories.of_models().items()
    }
    if not found:
        refuse("no outcome could be read; streamwatch replay says why", EXIT_NO_PROMISE)
    with telling_of_compiling():
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
        output.write_text(text, encoding="utf-8")


def _time(option: str, text: str | None) -> int | None:
    from datetime import UTC, datetime

    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        refuse(f"{option}: expected a time such as 2026-03-01 or 2026-03-01T12:00:00Z, got {text!r}")
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
