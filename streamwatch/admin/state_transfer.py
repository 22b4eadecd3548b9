"""Export of a state to a file, and import from one; files are written aside and then renamed."""

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
"""Standard input or output."""
_PRIVATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
"""How an export is opened: as a new file, which only its owner reads, as they alone enter the directory."""


def export_to(file: Path, directory: Path, report: Callable[[int, int], None]) -> tuple[int, int]:
    """Write a state, as of the last commit; entries and bytes. The file has its name once it is whole.

    Of a state that a daemon writes to, files that are open stay readable whatever the daemon removes.

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
    """Make a state of an export; its identity.

    Raises
    ------
    StateRefused
        If the file is not whole, or the directory not empty.
    OSError
        If the file cannot be read.
    """

    def show(done: int) -> None:
        report(done, 0)

    if file == STREAM:
        return import_state(sys.stdin.buffer, directory, show).identity
    with file.open("rb") as opened:
        return import_state(opened, directory, show).identity
