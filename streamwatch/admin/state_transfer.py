"""Export of a state to a file, and import from one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from streamwatch.edge.stores.rocksdb.exporting import export_state, import_state
from streamwatch.edge.stores.rocksdb.inspect import Inspection
from streamwatch.edge.stores.rocksdb.opening import holder

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
