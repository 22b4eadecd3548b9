"""Backups of a state that a daemon has open, export of a state to a file, and import from one."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from streamwatch.edge.stores.kind import StateFailed, StateRefused
from streamwatch.edge.stores.rocksdb.exporting import backups_in, export_state, import_state
from streamwatch.edge.stores.rocksdb.inspect import Inspection
from streamwatch.edge.stores.rocksdb.opening import holder

_LOOK_SECONDS = 0.1


def back_up(
    directory: Path,
    backups: Path,
    seconds: float,
    monotonic: Callable[[], float] = time.monotonic,
) -> Path:
    """Request a backup from the daemon by SIGUSR1, wait until it is complete, and return its directory.

    Parameters
    ----------
    directory
        Directory of the state.
    backups
        Directory of the backups.
    seconds
        Longest wait.
    monotonic
        Monotonic clock in seconds.

    Raises
    ------
    StateRefused
        If no daemon has the state open, or it is in another container, or this user may not signal it.
    StateFailed
        If there is no backup in time.
    """
    process = holder(directory)
    if process is None:
        raise StateRefused(
            f"no daemon has the state in {directory} open: copy the directory, or export the state"
        )
    if process <= 0:  # `kill` would take it for a group of processes, to which this one belongs
        raise StateRefused(
            f"a process that cannot be seen from here has the state in {directory} open: run this in its "
            "container"
        )
    before = set(backups_in(backups))
    try:
        os.kill(process, signal.SIGUSR1)
    except (PermissionError, ProcessLookupError, OverflowError) as error:
        raise StateRefused(
            f"process {process}, which has the state in {directory} open, may not be signalled ({error}): "
            "run this as its user, in its container"
        ) from error
    deadline = monotonic() + seconds
    while not (made := set(backups_in(backups)) - before):
        if monotonic() >= deadline:
            raise StateFailed(
                f"no backup in {backups} after {seconds:g} s: the log of process {process} says why"
            )
        time.sleep(_LOOK_SECONDS)
    return max(made)


# Export of a state to a file, and import from one.


STREAM = Path("-")
"""Path that stands for standard input or output."""
_PRIVATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
"""Flags with which an export is created; its mode lets only the owner read it, as in the state directory."""


def export_to(file: Path, directory: Path, report: Callable[[int, int], None]) -> tuple[int, int]:
    """Write the last commit of a state to a file: to `<file>.part`, which is renamed once it is complete.

    A daemon may have the state open; then it is one of the latest commits. Files that the daemon removes stay
    readable once they are opened here.

    Parameters
    ----------
    file
        Path of the export, where a file that exists is replaced; `-` for standard output.
    directory
        Directory of the state.
    report
        Called with the number of entries written so far, and 0 for their total, which is not known.

    Returns
    -------
    tuple[int, int]
        Number of entries and bytes.

    Raises
    ------
    StateRefused
        If there is no state.
    StateFailed
        If the daemon removed files between listing and opening them: try again.
    OSError
        If the file cannot be written.
    """
    state = Inspection(directory, closed=holder(directory) is None)
    try:

        def show(done: int) -> None:
            report(done, 0)

        if file == STREAM:
            return export_state(state, sys.stdout.buffer, show)
        begun = file.with_name(f"{file.name}.part")
        try:
            begun.unlink(missing_ok=True)
            with os.fdopen(os.open(begun, _PRIVATE, mode=0o600), "wb") as part:
                written = export_state(state, part, show)
                os.fsync(part.fileno())
            begun.replace(file)
        except BaseException:
            begun.unlink(missing_ok=True)
            raise
        return written
    finally:
        state.close()


def import_from(file: Path, directory: Path, report: Callable[[int, int], None]) -> str:
    """Make a state from an export, and return its identity; `report` as of `export_to`.

    Raises
    ------
    StateRefused
        If the file is incomplete or altered, its schema is not this program's, or the directory is not empty.
    StateFailed
        If the disk fails.
    OSError
        If the file cannot be read.
    """

    def show(done: int) -> None:
        report(done, 0)

    if file == STREAM:
        return import_state(sys.stdin.buffer, directory, show).identity
    with file.open("rb") as opened:
        return import_state(opened, directory, show).identity
