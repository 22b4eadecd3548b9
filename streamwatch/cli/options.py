"""Options shared by commands, loading of their settings, and refusals."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from streamwatch.edge.daemon_api import Address
    from streamwatch.settings import Settings

DEFAULT_FILE = Path("streamwatch.yaml")
NO_KAFKA = {
    "kafka": {"bootstrap_servers": ["none:0"]},
    "topics": {"predictions": ["predictions"], "labels": ["labels"]},
}
"""Values of settings that are required for Kafka alone, for commands that do not connect to it."""
EXIT_CONFIG = 2
"""Exit code if the settings, or the systems that they describe, must be changed first."""

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
NamedConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="Configuration file. Default: none; with --set, ./streamwatch.yaml if it exists.",
        envvar="STREAMWATCH_CONFIG",
        show_default=False,
    ),
]
"""Option of commands that read settings only if some are given."""
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

DEFAULT_URL = "http://127.0.0.1:9877"
DaemonUrl = Annotated[
    str | None,
    typer.Option(
        "--url",
        help=f"URL of the daemon. Default: http.listen of the settings with -c or --set, else {DEFAULT_URL}.",
        show_default=False,
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", help="File with the bearer token of the daemon's API.", show_default=False),
]
CaFile = Annotated[
    Path | None, typer.Option("--ca-file", help="Certificates to trust (PEM).", show_default=False)
]


def address_of(
    url: str | None, token_file: Path | None, ca_file: Path | None, settings: Settings | None
) -> Address:
    """Return the address of a daemon by options or settings; ends the command if a token cannot be read."""
    from streamwatch.edge.daemon_api import Address

    token = settings.http.read_token() if settings else None
    try:
        token = token_file.read_text(encoding="utf-8").strip() if token_file else token
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        refuse(f"--token-file: {token_file} cannot be read: {why or error}")
    if url is None and settings is not None:
        host = "127.0.0.1" if settings.http.host in {"0.0.0.0", "::", ""} else settings.http.host  # noqa: S104
        shown = f"[{host}]" if ":" in host else host
        url = f"{'https' if settings.http.tls else 'http'}://{shown}:{settings.http.port}"
    return Address(url or DEFAULT_URL, token, ca_file)


def read_settings(
    config: Path | None, overrides: list[str] | None, otherwise: Mapping[str, Any] | None = None
) -> Settings:
    """Load the settings; ends the command with all faults if there are any.

    `otherwise` has values of keys that are set nowhere.
    """
    from streamwatch.settings import SettingsError, load
    from streamwatch.settings.faults import REQUIRED

    if config is None and DEFAULT_FILE.is_file():
        config = DEFAULT_FILE
    try:
        return load(config, overrides or (), otherwise=otherwise)
    except SettingsError as error:
        none = "" if config else f"\nthere is no {DEFAULT_FILE} here, and -c names no file: {_FIRST_FILE}"
        refuse(f"{error}{none if REQUIRED in str(error) else ''}")


_FIRST_FILE = "`streamwatch inspect` proposes one, `streamwatch config example` prints one"


def finite(number: float | None) -> float | None:
    """Refuse NaN and infinity, as the callback of an option without a range that does.

    None, where the option was not given, is returned as it is.
    """
    if number is not None and not isfinite(number):
        raise typer.BadParameter(f"expected a finite number, got {number}")
    return number


def refuse(message: str, code: int = EXIT_CONFIG) -> NoReturn:
    """End the command with a message and no traceback."""
    for line in message.splitlines():
        typer.secho(line, err=True, fg=typer.colors.RED)
    raise typer.Exit(code)


def tick(*, good: bool) -> str:
    """Return a green tick, or a red cross, before the line of a result."""
    return typer.style("✓", fg=typer.colors.GREEN) if good else typer.style("✗", fg=typer.colors.RED)
