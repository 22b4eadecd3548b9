"""`streamwatch alerts`: sends test notifications to the receivers."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from streamwatch.cli.options import EXIT_CONFIG, NO_KAFKA, ConfigFile, Overrides, read_settings, refuse, tick

if TYPE_CHECKING:
    from streamwatch.assembly.alerts import Trial
    from streamwatch.settings import Settings

app = typer.Typer(
    help="Test the receivers of notifications.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.callback()
def _group() -> None:
    """Make `test` a subcommand, although it is the only one."""


@app.command("test")
def send_test(
    config: ConfigFile = None,
    overrides: Overrides = None,
    receiver: Annotated[
        str | None,
        typer.Option(
            "--receiver", metavar="NAME", help="Test only this receiver. Default: all.", show_default=False
        ),
    ] = None,
    *,
    hint: Annotated[
        bool,
        typer.Option(
            "--hint", help="Send a sample early hint instead of an alarm (monitors.early_hints.notify)."
        ),
    ] = False,
) -> None:
    """Send a test alarm, an early verdict and their resolutions to every receiver.

    Test every receiver in the settings:

        streamwatch alerts test -c prod.yaml

    Test one receiver:

        streamwatch alerts test --receiver oncall

    Send a sample of an early hint instead:

        streamwatch alerts test --hint

    Needs no Kafka. The output states for each receiver whether it accepted the
    notifications. Severity filters are ignored. The early verdict is on labels
    whose delays have changed. An Alertmanager is sent no resolutions: it resolves
    the test alerts some minutes later. A receiver with `digest` in `events` is sent a
    sample of a digest of worse models, too; with `events: [digest]`, only that.

    Exit codes: 0 if every receiver accepted it, 2 if one did not, none is
    configured or there is none of that name.
    """
    settings = read_settings(config, overrides, NO_KAFKA)
    if not settings.alerts.receivers:
        refuse("no receiver is configured: alerts.receivers is empty")

    import asyncio

    from streamwatch.settings import SettingsError

    try:
        good = asyncio.run(_try_all(settings, receiver, hint=hint))
    except SettingsError as error:
        refuse(str(error))
    if not good:
        raise typer.Exit(EXIT_CONFIG)


async def _try_all(settings: Settings, receiver: str | None, *, hint: bool) -> bool:
    """Print the result of each receiver as it arrives; return whether all accepted."""
    from streamwatch.assembly.alerts import try_receivers

    trials = [show(trial) async for trial in try_receivers(settings, receiver, hint=hint)]
    return all(trial.problem is None for trial in trials)


def show(trial: Trial) -> Trial:
    """Print the result of a receiver with a tick or a cross, and return it."""
    good = trial.problem is None
    result = f"delivered in {trial.milliseconds} ms" if good else f"not delivered: {trial.problem}"
    typer.echo(f"{tick(good=good)} {trial.receiver} at {trial.host}: {result}")
    return trial
