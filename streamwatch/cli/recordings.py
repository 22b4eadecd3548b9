"""Options and settings of commands that read recordings, and the spec of a replay made from them."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from streamwatch.cli.options import DEFAULT_FILE, NO_KAFKA, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from streamwatch.history.replay.replay import ReplaySpec
    from streamwatch.settings import Settings

_USED = ("topics", "join", "time", "monitors", "folds")
"""Sections of the settings that are used with recordings; others may be faulty."""
OF_FILES = ("--topic", "--model", "--columns", "--timestamp-unit", "--format")
OF_DAEMONS = ("--token-file", "--ca-file")
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…",
        help="Recordings: JSON lines, CSV, the output of kcat -J, optionally gzipped; Parquet; - for stdin.",
    ),
]
Topic = Annotated[
    str | None, typer.Option("--topic", metavar="NAME", help="Treat every line as a record of this topic.")
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Attribute every prediction to this model.")
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="FIELD=NAME,…",
        help="Names of the fields id, model, prediction, label, timestamp and scores in the file, where they "
        "differ: prediction=y_hat,label=y; prediction=pred_* for a column for each model.",
    ),
]
Unit = Annotated[
    Literal["ms", "s", "us", "ns", "iso8601"] | None,
    typer.Option("--timestamp-unit", help="Unit of timestamps. Default: the unit in the mappings."),
]
LayoutName = Annotated[
    Literal["jsonl", "csv", "kcat", "parquet"] | None,
    typer.Option("--format", help="Format of the files. Default: detected."),
]


def read_used_settings(config: Path | None, overrides: list[str] | None) -> Settings:
    """Load the settings for a command that reads recordings; faults in unused sections are warnings."""
    from streamwatch.settings import SettingsError, load_used

    if config is None and DEFAULT_FILE.is_file():
        config = DEFAULT_FILE
    try:
        settings, passed_over = load_used(config, overrides or (), _USED, NO_KAFKA)
    except SettingsError as error:
        refuse(str(error))
    for line in passed_over:
        typer.secho(f"ignored, as this command does not use it: {line}", err=True, fg=typer.colors.YELLOW)
    return settings


def refuse_without_effect(
    *,
    files: bool,
    url: bool,
    of_files: Sequence[object],
    of_daemons: Sequence[object],
) -> None:
    """End the command if options that only files, or only daemons, have are given (not None) without these.

    Parameters
    ----------
    files, url
        Whether files are read, or a daemon's API.
    of_files, of_daemons
        Values of `OF_FILES` and `OF_DAEMONS`.
    """
    for names, values, used, what in (
        (OF_FILES, of_files, files, "files"),
        (OF_DAEMONS, of_daemons, url, "the URL of a daemon"),
    ):
        for name, value in zip(names, values, strict=True):
            if value is not None and not used:
                refuse(f"{name}: expected with {what} only, got {value}")


def recorded_spec(
    settings: Settings,
    files: list[str],
    topic: str | None,
    model: str | None,
    columns: str | None,
    unit: Literal["ms", "s", "us", "ns", "iso8601"] | None,
    layout: Literal["jsonl", "csv", "kcat", "parquet"] | None,
) -> ReplaySpec:
    """Build the spec of a replay from the settings and the options of a command.

    Raises
    ------
    SettingsError
        If a field, constant or alias is not a valid name.
    """
    from streamwatch.assembly import specs
    from streamwatch.assembly.topics import csv_columns, recorded_topics
    from streamwatch.history.replay.replay import ReplaySpec

    topics = recorded_topics(settings, model=model, columns=_columns(columns), unit=unit)
    if topic is not None and topic not in topics:
        refuse(f"--topic: expected one of {', '.join(topics)}, got {topic!r}")
    return ReplaySpec(
        sources=files,
        layout=layout,
        topics=topics,
        topic=topic,
        closed=list(topics) != [*NO_KAFKA["topics"]],
        columns=csv_columns(topics),
        join=specs.join_spec(settings),
        merge=specs.merge_spec(settings),
        monitors=specs.monitors_spec(settings),
    )


def _columns(text: str | None) -> dict[str, str]:
    """Parse `prediction=y_hat,label=y` to names of columns by field."""
    if text is None:
        return {}
    pairs = [part.partition("=") for part in text.split(",")]
    for field, equals, name in pairs:
        if not (field.strip() and equals and name.strip()):
            refuse(f"--columns: expected FIELD=NAME,… such as prediction=y_hat,label=y; got {text!r}")
    return {field.strip(): name.strip() for field, _, name in pairs}
