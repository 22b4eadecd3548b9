"""What commands share: where settings come from, and how an error ends a command."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from streamwatch.settings import Settings

DEFAULT_FILE = Path("streamwatch.yaml")
EXIT_CONFIG = 2
"""Exit code where the settings, or the world they describe, must be changed first."""

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="Configuration file. Default: ./streamwatch.yaml if it exists.",
        envvar="STREAMWATCH_CONFIG",
        show_default=False,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="KEY=VALUE",
        help="Override one setting, for example join.horizon=7d. May be repeated.",
        show_default=False,
    ),
]


def read_settings(
    config: Path | None, overrides: list[str] | None, otherwise: Mapping[str, Any] | None = None
) -> Settings:
    """Load the settings, or end the command with what is wrong with them."""
    from streamwatch.settings import SettingsError, load

    if config is None and DEFAULT_FILE.is_file():
        config = DEFAULT_FILE
    try:
        return load(config, overrides or (), otherwise=otherwise)
    except SettingsError as error:
        refuse(str(error))


def read_used_settings(
    config: Path | None, overrides: list[str] | None, used: Collection[str], otherwise: Mapping[str, Any]
) -> Settings:
    """Load the settings for a command that uses only some sections; a fault in another one is a warning."""
    from streamwatch.settings import SettingsError, load_used

    if config is None and DEFAULT_FILE.is_file():
        config = DEFAULT_FILE
    try:
        settings, passed_over = load_used(config, overrides or (), used, otherwise)
    except SettingsError as error:
        refuse(str(error))
    for line in passed_over:
        typer.secho(f"ignored, as this command does not use it: {line}", err=True, fg=typer.colors.YELLOW)
    return settings


def refuse(message: str, code: int = EXIT_CONFIG) -> NoReturn:
    """End the command with a message and no traceback."""
    for line in message.splitlines():
        typer.secho(line, err=True, fg=typer.colors.RED)
    raise typer.Exit(code)
