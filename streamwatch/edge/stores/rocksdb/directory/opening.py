"""A state directory from the outside: is there one, may this program use it, what does it need first.

`format.json` names the schema and is read before RocksDB touches anything. It is written last when a
directory is made, so one without it holds nothing yet.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from rocksdict import Checkpoint

from streamwatch.edge.stores.errors import StateDamaged, StateNewer, StateRefused
from streamwatch.edge.stores.rocksdb.directory.database import Database
from streamwatch.edge.stores.rocksdb.directory.failures import failures, translated
from streamwatch.edge.stores.rocksdb.directory.meta import (
    SCHEMA,
    StoreManifest,
    encoded,
    identity_of,
    manifest_of,
)
from streamwatch.edge.stores.rocksdb.directory.migrations import MIGRATIONS, Migration, no_way_forward
from streamwatch.edge.stores.rocksdb.keys import IDENTITY_KEY, STATE_KEY
from streamwatch.edge.stores.rocksdb.spec import RocksSpec

FORMAT: Final = "format.json"
_NO_STRANGERS: Final = ("lost+found", "rocksdict-config.json", "LOG")
"""Of a volume, and what is written before RocksDB begins: a start that failed in between left it alone."""


class Format(msgspec.Struct, frozen=True):
    """Contents of `format.json`."""

    schema: int
    identity: str


def open_database(
    spec: RocksSpec, migrations: Mapping[int, Migration] = MIGRATIONS, schema: int = SCHEMA
) -> Database:
    """Open a directory, made or migrated if need be.

    Raises
    ------
    StateRefused
        If it cannot be used as it is.
    StateFailed
        If the disk fails.
    """
    directory = spec.directory
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = read_format(directory)
        if written is None:
            return _make(spec, schema)
        if written.schema > schema:
            raise StateNewer(
                f"the state in {directory} has schema {written.schema}, this program knows up to {schema}: "
                "run the version that wrote it, or a newer one; nothing was changed"
            )
        if not (directory / "CURRENT").exists():
            raise StateDamaged(
                f"the state is damaged: {directory / 'CURRENT'} is missing; restore a backup of the "
                "directory, or move it away to start afresh"
            )
        if written.schema < schema:
            return _migrate(spec, written, migrations, schema)
    except OSError as error:
        raise translated(error, directory) from error
    return _checked(_database(spec), written)


def read_format(directory: Path) -> Format | None:
    """Read the format that a directory states; None where there is no state yet."""
    path = directory / FORMAT
    try:
        return msgspec.json.decode(path.read_bytes(), type=Format)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise StateDamaged(f"the state is damaged: {path} is not readable ({error}); restore it") from error


def _database(spec: RocksSpec) -> Database:
    return Database(spec.directory, spec.cache_bytes, spec.write_buffer_bytes)


def _checked(database: Database, written: Format) -> Database:
    with closed_on_failure(database):
        identity = identity_of(database)
        if identity == written.identity:
            return database
        raise StateDamaged(
            f"the state is damaged: {database.directory / FORMAT} names {written.identity}, "
            f"the database beside it {identity}; restore both from the same backup"
        )


@contextmanager
def closed_on_failure(database: Database) -> Generator[None]:
    """Leave nothing open that nobody gets."""
    try:
        yield
    except BaseException:
        database.close()
        raise


def _make(spec: RocksSpec, schema: int) -> Database:
    directory = spec.directory
    strangers = strangers_in(directory)
    begun = (directory / "CURRENT").exists()
    if strangers and not begun and not (directory / "LOCK").exists():
        raise StateRefused(
            f"{directory} is not empty and holds no state (there is {min(strangers)!r}): "
            "name an empty directory in `state.directory`"
        )
    database = _database(spec)
    with closed_on_failure(database):
        manifest = manifest_of(database)
        if manifest is not None and manifest.commits:
            raise StateDamaged(
                f"the state is damaged: {directory / FORMAT} is missing; restore a backup of the directory, "
                "or move it away to start afresh"
            )
        identity = identity_of(database) or str(uuid.uuid4())
        manifest = StoreManifest(horizon_ms=spec.horizon_ms, early_horizon_ms=spec.early_horizon_ms)
        with database.batch() as batch:
            database.into("meta", batch)
            batch[IDENTITY_KEY] = identity.encode()
            batch[STATE_KEY] = encoded(manifest)
        database.flush()
        write_format(directory, Format(schema, identity))
    return database


def strangers_in(directory: Path) -> list[str]:
    """List the files in a directory that keep a state from being made in it."""
    names = [path.name for path in directory.iterdir()]
    return [name for name in names if name not in _NO_STRANGERS and not name.startswith("LOG.old.")]


def write_format(directory: Path, what: Format) -> None:
    """Say that the directory holds a whole state: the last step of making one."""
    written = directory / f"{FORMAT}.new"
    with written.open("wb") as file:
        file.write(msgspec.json.encode(what))
        file.flush()
        os.fsync(file.fileno())
    written.replace(directory / FORMAT)
    for parent in (directory, directory.parent):
        _sync(parent)


def _sync(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _migrate(spec: RocksSpec, written: Format, migrations: Mapping[int, Migration], schema: int) -> Database:
    """Copy, then step by step; the copy stays, for a return to the version before."""
    directory = spec.directory
    if (reason := no_way_forward(directory, written.schema, schema, migrations)) is not None:
        raise StateRefused(reason)
    database = _checked(_database(spec), written)
    with closed_on_failure(database):
        _copy(database, copy_before(directory, schema), written)
        with failures(directory):
            for version in range(written.schema, schema):
                migrations[version](database)
        database.flush()
        write_format(directory, Format(schema, written.identity))
    return database


def copy_before(directory: Path, schema: int) -> Path:
    """Path of the copy that is made before a state is brought forward to a schema."""
    return directory.with_name(f"{directory.name}.before-{schema}")


def _copy(database: Database, copy: Path, written: Format) -> None:
    if read_format(copy) is not None:
        return  # of an attempt before this one, when nothing had been changed yet
    if copy.exists():
        shutil.rmtree(copy)
    with failures(copy):
        Checkpoint(database.raw).create_checkpoint(str(copy))
    write_format(copy, written)
