"""`streamwatch state`: show, verify, export, back up, import, reset and backfill a state directory."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from streamwatch.cli.compile import reporting_compilation
from streamwatch.cli.options import NO_KAFKA, ConfigFile, Overrides, finite, read_settings, refuse, tick
from streamwatch.cli.recordings import LayoutName

if TYPE_CHECKING:
    from streamwatch.admin.state_verify import Check

Report: TypeAlias = Callable[[int, int], None]

app = typer.Typer(
    help="Inspect, verify, back up, export, import, reset and backfill a state directory.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
Directory = Annotated[
    Path | None,
    typer.Option(
        "--directory",
        "-d",
        metavar="DIR",
        help="State directory. Default: state.directory of the settings.",
        show_default=False,
    ),
]


@app.command("show")
def show(
    config: ConfigFile = None,
    overrides: Overrides = None,
    directory: Directory = None,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Omit ages, and answer at once even if much is pending.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show the identity of a state, its positions in Kafka, and what waits for how long.

    Show the state that ./streamwatch.yaml names:

        streamwatch state show

    Show a directory without its settings, at once:

        streamwatch state show --directory /var/lib/streamwatch/state --quick

    It changes nothing and works while a daemon runs, in which case it shows
    one of the latest commits. Ages are in record time, relative to the clock.

    Exit codes: 0 on success, 2 if there is no readable state.
    """
    from streamwatch.admin.state_show import overview

    state_directory = _directory(directory, config, overrides)
    with _refusing(), _progress("reading entries"):
        seen = overview(state_directory, ages=not quick)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(seen), indent=2).decode())
        return

    from rich.console import Console

    from streamwatch.cli.state_page import write

    write(seen, Console(highlight=False))


@app.command("verify")
def verify(config: ConfigFile = None, overrides: Overrides = None, directory: Directory = None) -> None:
    """Read a closed state completely and check that it is consistent.

    Use it after disk trouble, or before you trust a backup:

        streamwatch state verify --directory /var/backups/streamwatch-state

    It checks every block of every file against its checksum; restores the join
    from its entries, and compares them with each other and with the counters;
    decodes the journal, positions and alarms; and
    restores every model's snapshot into its estimators and saves it again. It
    changes nothing, and locks the directory against daemons meanwhile.

    Exit codes: 0 if the state is sound, 2 otherwise.
    """
    from streamwatch.admin.state_verify import verified

    state_directory = _directory(directory, config, overrides)
    good = True
    with _refusing(), reporting_compilation(), _progress("reading entries"):
        for check in verified(state_directory):
            _print_check(check)
            good = good and check.good
    if not good:
        refuse(
            f"the state in {state_directory} is damaged: restore a backup, or move it away to start afresh"
        )


@app.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="File to write; - for stdout.")],
    config: ConfigFile = None,
    overrides: Overrides = None,
    directory: Directory = None,
) -> None:
    """Export a state into one file, for a backup or another machine.

    Export to a file:

        streamwatch state export state.swx --directory /var/lib/streamwatch/state

    Copy to another machine:

        streamwatch state export - |
            ssh other streamwatch state import - --directory /srv/state

    The file contains checksums and the identity of the state. Of a state that a
    daemon has open, one of the latest commits is exported. Do not continue from both
    copies: two daemons with the same state would both announce its alarms.

    Exit codes: 0 on success, 2 if there is no readable state, or the file exists
    or cannot be written.
    """
    from streamwatch.admin.state_transfer import export_to

    state_directory = _directory(directory, config, overrides)
    with _refusing(), _progress("writing entries") as report:
        if file.exists():
            refuse(f"{file} already exists: choose another name")
        entries, size = export_to(file, state_directory, report)
    typer.echo(f"exported {entries:,} entries of {state_directory} to {file}: {size / 1e6:,.1f} MB", err=True)


@app.command("backup")
def backup(
    config: ConfigFile = None,
    overrides: Overrides = None,
    *,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", callback=finite, help="How long to wait for the backup."
        ),
    ] = 600.0,
) -> None:
    """Copy the state of a running daemon to state.backups.directory.

    With the daemon's settings, as its user, and in its container if it has one:

        streamwatch state backup -c prod.yaml

    The daemon copies the state between two commits and goes on reading
    meanwhile; on the file system of the state, files are linked and not copied.
    The path of the backup is printed once it is whole. It is a state directory:
    `streamwatch state verify -d` checks it, and a daemon can be started from a
    copy of it. state.backups.command, if one is set, runs afterwards; whether
    it ended well is in the daemon's log and metrics.

    Exit codes: 0 on success, 2 if settings must be changed, no daemon runs or no
    backup was made in time.
    """
    from streamwatch.admin.state_transfer import back_up

    settings = read_settings(config, overrides, NO_KAFKA)
    directory = settings.state.backups.directory
    if directory is None:
        refuse("state.backups.directory is not set: name a directory for backups in the daemon's settings")
    with _refusing():
        made = back_up(settings.state.directory, directory, timeout)
    typer.echo(str(made))


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="File to read; - for stdin.")],
    config: ConfigFile = None,
    overrides: Overrides = None,
    directory: Directory = None,
) -> None:
    """Import an exported state into an empty or new directory.

    Import into state.directory of the settings:

        streamwatch state import state.swx -c prod.yaml

    If the file is truncated or altered, nothing is left behind. A daemon that
    starts on the directory continues where the exported state ended.

    Exit codes: 0 on success, 2 if the file or the directory cannot be used.
    """
    from streamwatch.admin.state_transfer import import_from

    state_directory = _directory(directory, config, overrides)
    with _refusing(), _progress("reading entries") as report:
        identity = import_from(file, state_directory, report)
    typer.echo(f"imported state {identity} into {state_directory}", err=True)


@app.command("reset")
def reset(
    config: ConfigFile = None,
    overrides: Overrides = None,
    directory: Directory = None,
    *,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Only of this model, with its folds.")
    ] = None,
    section: Annotated[
        str | None,
        typer.Option(
            "--section",
            metavar="SECTION",
            help="join, estimators, comparisons, or one estimator, such as page_hinkley.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole state, positions included.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without it, nothing is changed.")] = False,
) -> None:
    """Begin a part of a closed state anew, on purpose, and keep the rest.

    See what would be lost if one model began anew:

        streamwatch state reset --model fraud-v3

    Do it:

        streamwatch state reset --model fraud-v3 --yes

    Let one detector of all models begin anew, or forget all that waits for
    labels:

        streamwatch state reset --section page_hinkley --yes
        streamwatch state reset --section join --yes

    Begin the whole state anew. Topics are then read from kafka.start_from:

        streamwatch state reset --all --yes

    A refusal of `streamwatch run` or `check` after a change of settings names
    the form that helps. Past outcomes are not kept, so that what is lost cannot
    be restored: export the state first if in doubt. The daemon must be stopped.

    Exit codes: 0 on success, 2 if there is no such part or no state, or a daemon
    runs.
    """
    state_directory = _directory(directory, config, overrides)
    with _refusing():
        from streamwatch.assembly.reset import Reset, lost, perform

        asked = Reset(model, section, everything)
        lines = lost(state_directory, asked)
        if yes:
            with reporting_compilation():
                perform(state_directory, asked)
        for line in lines:
            typer.echo(f"{'lost' if yes else 'would be lost'}: {line}")
        if yes:
            typer.echo(f"the state in {state_directory} goes on without it")
        else:
            typer.echo("nothing was changed: add --yes to do it")


@app.command("backfill")
def backfill(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC=FILES…",
            help="A topic of the settings, and a file, a directory or a pattern; read in the order of names.",
        ),
    ],
    config: ConfigFile = None,
    overrides: Overrides = None,
    *,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help="Record time at which the files end and Kafka begins, such as 2026-11-01T00:00:00Z. "
            "Default: a millisecond after the newest record in the files.",
        ),
    ] = None,
    layout: LayoutName = None,
) -> None:
    r"""Make a new state from months of recorded predictions and labels.

    From Parquet files (install the extra `parquet`), up to where the topics
    begin:

        streamwatch state backfill 'predictions=archive/predictions/*.parquet' \
            'labels=archive/labels/*.parquet' --until 2026-11-01T00:00:00Z

    The mappings of the topics find the fields: a row's columns are the fields of
    a record's value. All of a topic's files are one partition, in the order of
    their names, so they have to be in the order of time. The record time is the
    timestamp that the mapping finds. The numbers are those of a daemon that reads
    such a log. It reads topics with files from --until on, the others from
    kafka.start_from. The state directory must not exist yet, or be empty; an
    interrupted backfill leaves none.

    Exit codes: 0 on success, 2 if a file cannot be read or settings must be
    changed.
    """
    settings = read_settings(config, overrides, {"kafka": NO_KAFKA["kafka"]})

    from streamwatch.assembly.backfill import backfill as fill
    from streamwatch.core.metrics.series import detail_at
    from streamwatch.edge.receivers.texts import iso
    from streamwatch.edge.web.routes.json_api import by_model
    from streamwatch.history.recordings.file import RecordingError
    from streamwatch.history.replay.tables import apart
    from streamwatch.history.samples import counted
    from streamwatch.settings import SettingsError

    until_ms = None if until is None else _moment(until)
    try:
        with _refusing(), reporting_compilation(), _progress("reading records") as report:
            done = fill(
                settings,
                _files_by_topic(files),
                until_ms=until_ms,
                layout=layout,
                show=lambda records: report(records, 0),
            )
    except (RecordingError, SettingsError) as error:
        refuse(str(error))
    read = ", ".join(f"{records:,} records of {topic}" for topic, records in done.records.items())
    typer.echo(f"{done.directory} has {read}; the daemon goes on with records from {iso(done.until_ms)} on")
    _, stream = by_model(done.families)
    outcomes = detail_at(stream, "predictions_resolved_total") or 0
    invalid = {
        reason: sum(by_topic.values())
        for reason, by_topic in (detail_at(stream, "records_invalid_total") or {}).items()
    }
    texts = [f"{counted(int(outcomes), 'prediction')} met {'its' if outcomes == 1 else 'their'} label."]
    texts += apart(done.families)
    texts += [
        f"{counted(int(count), 'record')} invalid: {reason}." for reason, count in invalid.items() if count
    ]
    texts += done.warnings
    texts += [f"{counted(count, 'line')} left out: {reason}" for reason, count in done.bad.reasons.items()]
    for text in texts:
        typer.echo(text, err=True)


def _matching(pattern: Path) -> list[Path]:
    """Return the files that match a pattern, sorted by name; ends the command if it is no pattern."""
    try:
        return sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))
    except ValueError as error:
        refuse(f"expected a pattern of files such as archive/*.parquet, got {str(pattern)!r}: {error}")


def _moment(text: str) -> int:
    """Parse the time of `--until` to milliseconds since the epoch."""
    from streamwatch.edge.sources.kafka.spec import At, parse_start

    try:
        moment = parse_start(text)
    except ValueError:
        moment = None
    if not isinstance(moment, At):
        refuse(f"--until: expected a time such as 2026-11-01T00:00:00Z, got {text!r}")
    return moment.timestamp_ms


def _files_by_topic(arguments: list[str]) -> dict[str, list[Path]]:
    """Parse arguments such as `predictions=archive/*.parquet`; files are sorted by name in each argument."""
    found: dict[str, list[Path]] = {}
    for argument in arguments:
        topic, equals, named = argument.partition("=")
        if not (topic and equals and named):
            refuse(f"expected TOPIC=FILES such as predictions=archive/*.parquet, got {argument!r}")
        path = Path(named)
        if path.is_dir():
            several = sorted(each for each in path.iterdir() if each.is_file())
        else:
            several = [path] if path.exists() else _matching(path)
        if not several:
            refuse(f"{topic}: expected files at {named}, found none")
        found.setdefault(topic, []).extend(several)
    return found


def _directory(directory: Path | None, config: Path | None, overrides: list[str] | None) -> Path:
    """Return the given directory, else that of the settings, in which Kafka and topics may be missing."""
    if directory is not None:
        return directory
    settings = read_settings(config, overrides, NO_KAFKA)
    if settings.state.kind == "memory":
        refuse("state.kind is memory, so there is no state on disk: name a directory with --directory")
    return settings.state.directory


@contextmanager
def _refusing() -> Generator[None]:
    """End the command with the message of an error of a state, a file or the disk."""
    from streamwatch.edge.stores.kind import StateFailed, StateRefused

    try:
        yield
    except (StateRefused, StateFailed) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))


@contextmanager
def _progress(what: str) -> Generator[Report]:
    """Yield a function that updates a progress bar, which is shown on a terminal only."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None, visible=False)

        def report(done: int, about: int) -> None:
            bar.update(task, completed=done, total=about or None, visible=True)

        yield report


def _print_check(check: Check) -> None:
    """Print a check with a tick or a cross, and its faults below."""
    typer.echo(f"{tick(good=check.good)} {check.what}: {check.found}")
    for fault in check.faults:
        typer.echo(f"  {fault}")
    if check.count > len(check.faults):
        typer.echo(f"  … and {check.count - len(check.faults):,} more")
