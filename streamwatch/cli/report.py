"""`streamwatch report`: writes a page on a replay or a running daemon."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

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
    from streamwatch.edge.daemon_api import Address
    from streamwatch.history.replay.replay import ReplaySpec
    from streamwatch.history.reporting.sources import Source
    from streamwatch.history.reporting.writing import Page
    from streamwatch.settings import Settings

_REPORTED_SECTIONS = ("topics", "join", "time", "monitors", "folds")
"""Sections of the settings that are printed in a report; they contain no secrets."""


def report(  # noqa: PLR0913  # one parameter per option
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…|URL",
            help="Recordings as `streamwatch replay` reads them, or the URL of a running daemon.",
        ),
    ],
    *,
    output: Annotated[
        list[Path],
        typer.Option("--output", "-o", metavar="OUT", help="File to write: .html or .md. May be repeated."),
    ] = [Path("report.html")],  # noqa: B006  # typer copies it
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    topic: Topic = None,
    model: Model = None,
    columns: Columns = None,
    timestamp_unit: Unit = None,
    layout: LayoutName = None,
    config: ConfigFile = None,
    overrides: Overrides = None,
) -> None:
    """Write a page to hand on: the answer in a paragraph, the chart, then the evidence.

    Report on a recording:

        streamwatch report outcomes.csv -o report.html

    Report on a running daemon, as HTML and as Markdown with its pictures in
    report-pictures/:

        streamwatch report http://127.0.0.1:9877 -o report.html -o report.md

    The HTML file is self-contained and needs no network. Pictures require the
    extra `lab` (matplotlib). Recordings are read as `streamwatch replay` reads
    them. A daemon's API does not reveal its settings, so a report on a daemon
    includes them only if --config names the file, or --set is given.
    """
    require_formats(output, "--output")
    is_url = source[0].startswith(("http://", "https://"))
    refuse_without_effect(
        files=not is_url,
        url=is_url,
        of_files=(topic, model, columns, timestamp_unit, layout),
        of_daemons=(token_file, ca_file),
    )
    from streamwatch.edge.daemon_api import DaemonUnreachable
    from streamwatch.history.recordings.file import RecordingError
    from streamwatch.history.reporting.sources import ReportError
    from streamwatch.settings import SettingsError

    try:
        if is_url:
            if len(source) > 1:
                refuse(f"expected one URL or files, got {' '.join(source)}")
            found = _of_daemon(address_of(source[0], token_file, ca_file, None), config, overrides)
        else:
            settings = read_used_settings(config, overrides)
            read = recorded_spec(settings, source, topic, model, columns, timestamp_unit, layout)
            found = _of_replay(read, settings)
    except (DaemonUnreachable, RecordingError, ReportError, SettingsError) as error:
        refuse(str(error))
    write(found, output, "--output")


def write(found: Source, paths: list[Path], option: str) -> None:
    """Write the page of a source to files; errors name the `option` with which the files were given."""
    from streamwatch.history.reporting.page import page
    from streamwatch.history.reporting.sources import ReportError
    from streamwatch.history.samples import counted

    try:
        made = page(found)
    except ReportError as error:
        refuse(str(error))
    for path in paths:
        try:
            _write(made, path)
        except OSError as error:
            refuse(f"{option}: {path} cannot be written: {error.strerror or error}")
        typer.echo(f"{path}: {counted(len(found.models), 'model')}", err=True)


def require_formats(paths: list[Path], option: str) -> None:
    """End the command before reading if a file is neither .html nor .md, or there is no place to write it.

    Also ends it if matplotlib is missing.
    """
    from streamwatch.history.reporting.sources import ReportError
    from streamwatch.history.reporting.writing import figure_class

    for path in paths:
        if path.suffix not in {".html", ".md"}:
            refuse(f"{option}: expected a file .html or .md, got {path}")
        if not path.parent.is_dir():
            refuse(f"{option}: {path} cannot be written: there is no folder {path.parent}")
        if path.is_dir():
            refuse(f"{option}: {path} cannot be written: it is a folder")
        pictures = _pictures_of(path)
        if path.suffix == ".md" and pictures.exists() and not pictures.is_dir():
            refuse(f"{option}: {path} cannot be written: expected a folder {pictures}, got a file")
    try:
        figure_class()
    except ReportError as error:
        refuse(str(error))


def _of_daemon(address: Address, config: Path | None, overrides: list[str] | None) -> Source:
    from streamwatch.history.reporting.sources import from_daemon

    shown = settings_text(read_used_settings(config, overrides)) if config or overrides else None
    return from_daemon(address, versions(), shown)


def _of_replay(read: ReplaySpec, settings: Settings) -> Source:
    from rich.console import Console

    from streamwatch.history.reporting.sources import from_replay

    with reporting_compilation():
        return from_replay(read, versions(), settings_text(settings), Console(stderr=True))


def settings_text(settings: Settings) -> str:
    """Return the sections of the settings that a report prints, as YAML."""
    from streamwatch.edge.yaml_text import block

    return block(settings.model_dump(mode="json", include=set(_REPORTED_SECTIONS)))


def versions() -> dict[str, str]:
    """Return the versions of streamwatch, Python and numerical libraries, by name."""
    import platform
    from importlib.metadata import version

    from streamwatch import __version__
    from streamwatch.cli.build import build

    return {
        "streamwatch": f"{__version__} (build {build()})",
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba")},
    }


def _pictures_of(path: Path) -> Path:
    """Return the folder for the pictures of a Markdown file."""
    return path.parent / f"{path.stem}-pictures"


def _write(made: Page, path: Path) -> None:
    from streamwatch.history.reporting.writing import html, markdown

    if path.suffix == ".html":
        path.write_text(html(made), encoding="utf-8")
        return
    folder = _pictures_of(path)
    text, pictures = markdown(made, folder.name)
    folder.mkdir(exist_ok=True)
    for name, png in pictures.items():
        (folder / name).write_bytes(png)
    path.write_text(text, encoding="utf-8")
