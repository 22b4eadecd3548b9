"""Bringing an older state forward on purpose; a daemon's start does the same by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamwatch.edge.stores.rocksdb.directory.meta import SCHEMA
from streamwatch.edge.stores.rocksdb.directory.migrations import MIGRATIONS, Migration
from streamwatch.edge.stores.rocksdb.directory.opening import copy_before, open_database
from streamwatch.edge.stores.rocksdb.reading.inspect import format_of
from streamwatch.edge.stores.rocksdb.spec import RocksSpec


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """From which schema to which, and where the state of before is kept."""

    before: int
    after: int
    copy: Path | None
    """None where there was nothing to do."""


def migrate_state(
    directory: Path, migrations: Mapping[int, Migration] = MIGRATIONS, schema: int = SCHEMA
) -> MigrationResult:
    """Migrate a closed state to a schema; nothing is written if it has it already.

    Raises
    ------
    StateRefused
        If there is no state, a newer one, or no way from its schema to this.
    """
    written = format_of(directory)
    if written.schema == schema:
        return MigrationResult(schema, schema, None)
    open_database(RocksSpec(directory, 0, 0), migrations, schema).close()
    return MigrationResult(written.schema, schema, copy_before(directory, schema))
