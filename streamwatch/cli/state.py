"""`streamwatch state`: what is in a state directory, whether it holds together, and how it moves."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from streamwatch.cli.compiling import telling_of_compiling
from streamwatch.cli.options import ConfigFile, Overrides, read_settings, refuse

if TYPE_CHECKING:
    from streamwatch.admin.state_verify import Check

Told: TypeAlias = Callable[[int, int], None]

app = typer.Typer(
    help="Look into a state directory, check it, move it to another machine.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
Directory = Annotated[
    Path | None,
    typer.Option(
        "--directory",
        "-d",
        metavar="DIR",
        help="The state; state.directory of the settings if absent.",
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
        bool, typer.Option("--quick", help="Without ages: answers at once, however much is pending.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show whose state it is, how far it has read, and what waits in it for how long.

    Of the directory in ./streamwatch.yaml:

        streamwatch state show

    Of a directory, without its settings, at once:

        streamwatch state show --directory /var/lib/streamwatch/state --quick

    Works while a daemon runs (it shows one of its latest commits) and changes nothing. Ages are in record
    time, before the clock. Exit code: 0, or 2 when there is no state that can be read.
    """
    from streamwatch.admin.state_show import overview

    place = _directory(directory, config, overrides)
    with _refusing(), _progress("reading ids") as told:
        seen = overview(place, ages=not quick, told=told)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(seen), indent=2).decode())
        return

    from rich.console import Console

    from streamwatch.cli.state_page import write

    write(seen, Console(highlight=False))


@app.command("verify")
def verify(config: ConfigFile = None, overrides: Overrides = None, directory: Directory = None) -> None:
    """Read all of a closed state, and check that everything it says fits together.

    After a disk trouble, or before a backup is trusted:

        streamwatch state verify --directory /var/backups/streamwatch-state

    Reads every block of every file against its checksum; compares what waits with the index of its deadlines,
    dedup entries with their dedup keys, counters with what is there; decodes the journal, positions and
    alarms; puts every model's snapshot into its estimators and takes it out again. Changes nothing, and keeps
    daemons from the directory meanwhile. Exit code: 0 when all is well, 2 otherwise.
    """
    from streamwatch.admin.state_verify import verified

    place = _directory(directory, config, overrides)
    good = True
    with _refusing(), telling_of_compiling(), _progress("reading ids") as told:
        for check in verified(place, told):
            _tell(check)
            good = good and check.good
    if not good:
        refuse(f"the state in {place} is damaged: restore a backup of it, or move it away to begin anew")


@app.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="The file to write; - for standard output.")],
    config: ConfigFile = None,
    overrides: Overrides = None,
    directory: Directory = None,
) -> None:
    """Write a closed state into one file, to keep it or to move it.

    To a file:

        streamwatch state export state.swx --directory /var/lib/streamwatch/state

    To another machine:

        streamwatch state export - | ssh other streamwatch state import - --directory /srv/state

    The file has checksums and the identity of the state. Two daemons that go on from one state would both
    announce its alarms: stop using the one you exported. Exit code: 0, or 2 when there is no state that can
    be read.
    """
    from streamwatch.admin.state_transfer import export_to

    place = _directory(directory, config, overrides)
    if file.exists():
        refuse(f"{file} exists: name a file that does not")
    with _refusing(), _progress("writing entries") as told:
        entries, size = export_to(file, place, told)
    typer.echo(f"exported {entries:,} entries of {place} to {file}: {size / 1e6:,.1f} MB", err=True)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="The file to read; - for standard input.")],
    config: ConfigFile = None,
    overrides: Overrides = None,
    directory: Directory = None,
) -> None:
    """Make a state of an exported file, in a directory that is empty or absent.

    From a file, into state.directory of the settings:

        streamwatch state import state.swx -c prod.yaml

    Nothing is left behind if the file is cut off or altered. A daemon started on the directory goes on where
    the exported state ended. Exit code: 0, or 2 when file or directory are not fit.
    """
    from streamwatch.admin.state_transfer import import_from

    place = _directory(directory, config, overrides)
    with _refusing(), _progress("reading entries") as told:
        identity = import_from(file, place, told)
    typer.echo(f"imported state {identity} into {place}", err=True)


@app.command("migrate")
def migrate(config: ConfigFile = None, overrides: Overrides = None, directory: Directory = None) -> None:
    """Bring a state of an older version forward, as the start of a daemon would, and keep a copy beside it.

    Before an upgrade whose start should not take long:

        streamwatch state migrate --directory /var/lib/streamwatch/state

    Says so where there is nothing to do. Exit code: 0, or 2 when there is no state, or a newer one.
    """
    from streamwatch.edge.stores.rocksdb.reading.migrate import migrate_state

    place = _directory(directory, config, overrides)
    with _refusing():
        done = migrate_state(place)
    if done.copy is None:
        typer.echo(f"nothing to do: the state in {place} has schema {done.after}, which is this program's")
    else:
        typer.echo(
            f"brought {place} from schema {done.before} to {done.after}; what it was before is in {done.copy}"
        )


def _directory(directory: Path | None, config: Path | None, overrides: list[str] | None) -> Path:
    """The directory named, or that of the settings; Kafka and topics need not be in them."""
    if directory is not None:
        return directory
    nowhere = {
        "kafka": {"bootstrap_servers": "unused:9092"},
        "topics": {"predictions": "unused-predictions", "labels": "unused-labels"},
    }
    settings = read_settings(config, overrides, nowhere)
    if settings.state.kind == "memory":
        refuse("state.kind is memory: nothing is kept on disk; name a directory with --directory")
    return settings.state.directory


@contextmanager
def _refusing() -> Generator[None]:
    """End the command with what a state, a file or the disk says."""
    from streamwatch.edge.stores.errors import StateFailed, StateRefused

    try:
        yield
    except (StateRefused, StateFailed, OSError) as error:
        refuse(str(error))


@contextmanager
def _progress(what: str) -> Generator[Told]:
    """A bar on a terminal, for what takes longer than a moment."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None, visible=False)

        def told(done: int, about: int) -> None:
            bar.update(task, completed=done, total=about or None, visible=True)

        yield told


def _tell(check: Check) -> None:
    """One line with a tick or a cross, what was found wrong below it."""
    sign, color = ("✓", typer.colors.GREEN) if check.good else ("✗", typer.colors.RED)
    typer.echo(f"{typer.style(sign, fg=color)} {check.what}: {check.found}")
    for fault in check.faults:
        typer.echo(f"  {fault}")
    if check.count > len(check.faults):
        typer.echo(f"  … and {check.count - len(check.faults):,} more")
