"""From older schemas to this one: what to do to a directory of each version to make it one of the next.

A step changes the database in place, in any number of batches: before the first step the directory was
copied, and until the last one is done `format.json` names the old version, so that an interrupted migration
begins again from the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from streamwatch.edge.stores.rocksdb.directory.database import Database

Migration: TypeAlias = Callable[[Database], None]


def _nothing_to_move(database: Database) -> None:
    """Make nothing: families that are new (`columns` in 3, `runs` in 4) come, empty, with the opening."""
    del database


MIGRATIONS: Final[Mapping[int, Migration]] = {2: _nothing_to_move, 3: _nothing_to_move}
"""By the version they start from."""


def no_way_forward(
    directory: Path, written: int, wanted: int, migrations: Mapping[int, Migration] = MIGRATIONS
) -> str | None:
    """Say why a state cannot be brought from the schema it was written in to another; None if it can."""
    for version in range(written, wanted):
        if version not in migrations:
            return (
                f"the state in {directory} has schema {written}, and this program does not know how to bring "
                f"schema {version} forward to {wanted}: name another directory in `state.directory`, or move "
                "this one away, to start afresh; nothing was changed"
            )
    return None
