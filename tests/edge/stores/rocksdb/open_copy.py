"""A copy of a directory in which RocksDB is at work, as one moment left it."""

from __future__ import annotations

import shutil
from pathlib import Path

ATTEMPTS = 200


def copy_while_open(directory: Path, copy: Path) -> Path:
    """Copy files that threads of RocksDB may add, lengthen and remove meanwhile.

    A crash leaves the files of one moment. So a copy counts only if the directory had the same files of the
    same sizes before it and after it: what changes which files belong to the database lengthens the manifest.

    Raises
    ------
    TimeoutError
        If the files never stay as they are for as long as a copy takes.
    """
    for _ in range(ATTEMPTS):
        before = _sizes(directory)
        try:
            shutil.copytree(directory, copy)
        except shutil.Error:  # a file was removed after it had been listed
            after = None
        else:
            after = _sizes(directory)
        if before is not None and before == after:
            return copy
        shutil.rmtree(copy)
    raise TimeoutError(f"{directory} changed during each of {ATTEMPTS} copies")


def _sizes(directory: Path) -> dict[str, int] | None:
    """Return the size of each file by its name; None if one was removed meanwhile."""
    try:
        return {path.name: path.stat().st_size for path in directory.iterdir()}
    except FileNotFoundError:
        return None
