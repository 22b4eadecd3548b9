"""Checks of a state directory before RocksDB opens it: its state, the schema, and who uses it.

`format.json` names the schema and is read before RocksDB opens the directory. It is written last when a state
is made, so a directory without it holds no state yet.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
from rocksdict import WriteBatch

from streamwatch.edge.stores.kind import StateDamaged, StateGone, StateInUse, StateNewer, StateRefused
from streamwatch.edge.stores.rocksdb.database import (
    IDENTITY_KEY,
    SCHEMA,
    STATE_KEY,
    Database,
    StoreManifest,
    encoded,
    identity_of,
    manifest_of,
    translated,
)

# Specification of a durable store.


@dataclass(frozen=True, slots=True)
class RocksSpec:
    """Directory of the state, and the memory that RocksDB may use for it."""

    directory: Path
    cache_bytes: int = 64 * 2**20
    """Memory for blocks read from disk."""
    write_buffer_bytes: int = 48 * 2**20
    """Memory for writes that are not yet sorted into files."""


FORMAT: Final = "format.json"
CONFIG: Final = "rocksdict-config.json"
_EXPECTED: Final = ("lost+found", CONFIG, "LOG")
"""Files that a new state's directory may have: of a volume, or of a start that failed very early."""


class Format(msgspec.Struct, frozen=True, omit_defaults=True):
    """Contents of `format.json`."""

    schema: int
    identity: str
    converted_from: int | None = None
    """Older schema that a conversion in progress began with; None where all contents are of `schema`."""


def require_schema(directory: Path, written: Format, *, converts: bool = False) -> None:
    """Refuse a state of another schema than this program's.

    Parameters
    ----------
    directory
        Of the state.
    written
        Contents of its `format.json`.
    converts
        Whether the caller converts a state of an older schema, or only reports what a daemon would do.

    Raises
    ------
    StateRefused
        If the schema is newer, or older and cannot be converted, or older and `converts` is False.
    """
    schema = written.schema
    if schema > SCHEMA:
        raise StateNewer(
            f"the state in {directory} has schema {schema}, this program knows up to {SCHEMA}: "
            "run the version that wrote it, or a newer one; nothing was changed"
        )
    older = written.converted_from or schema
    if is_convertible(older, SCHEMA):
        if converts:
            return
        raise StateRefused(
            f"the state in {directory} has schema {older}, this program writes {SCHEMA}: `streamwatch run` "
            "converts it when it opens it; nothing was changed"
        )
    if older < SCHEMA:
        raise StateRefused(
            f"the state in {directory} has schema {older}, this program reads {SCHEMA} and nothing older: "
            "name another directory in `state.directory`, or move this one away, to start afresh; "
            "nothing was changed"
        )


def open_database(spec: RocksSpec) -> Database:
    """Open a state; it is made where there is none, and converted where its schema is older.

    Raises
    ------
    StateRefused
        If the directory cannot be used as it is.
    StateFailed
        If the disk fails.
    """
    directory = spec.directory
    try:
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileNotFoundError as error:  # as in /proc, or in a directory that was just removed
            raise StateRefused(
                f"{directory} cannot be made: name another in `state.directory` ({error})"
            ) from error
        written = read_format(directory)
        if written is None:
            return _make(spec)
        require_schema(directory, written, converts=True)
        if not (directory / "CURRENT").exists():
            raise StateDamaged(
                f"the state is damaged: {directory / 'CURRENT'} is missing; restore a backup of the "
                "directory, or move it away to start afresh"
            )
    except OSError as error:
        raise translated(error, directory) from error
    return _converted(_checked(_database(spec), written), written)


def _converted(database: Database, written: Format) -> Database:
    """Convert a state to this program's schema.

    `format.json` gets the new number before anything is converted, so that an older program refuses the
    state.
    """
    older = written.converted_from or written.schema
    if older == SCHEMA:
        return database
    directory = database.directory
    with closed_on_failure(database):
        try:
            write_format(directory, Format(SCHEMA, written.identity, older))
            convert(database, older, SCHEMA)
            write_format(directory, Format(SCHEMA, written.identity))
        except OSError as error:
            raise translated(error, directory) from error
    return database


def read_format(directory: Path) -> Format | None:
    """Read `format.json`; None where the directory has none, and so no state yet.

    Raises
    ------
    StateDamaged
        If the file cannot be parsed.
    OSError
        If it cannot be read.
    """
    path = directory / FORMAT
    try:
        return msgspec.json.decode(path.read_bytes(), type=Format)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:  # DecodeError and UnicodeDecodeError are ValueErrors
        raise StateDamaged(f"the state is damaged: {path} is not readable ({error}); restore it") from error


def _database(spec: RocksSpec) -> Database:
    return Database(spec.directory, spec.cache_bytes, spec.write_buffer_bytes)


def _checked(database: Database, written: Format) -> Database:
    with closed_on_failure(database):
        require_identity(database.directory, written, identity_of(database))
        return database


def require_identity(directory: Path, written: Format, identity: str | None) -> None:
    """Raise StateDamaged unless a database has the identity that `format.json` names."""
    if identity != written.identity:
        raise StateDamaged(
            f"the state is damaged: {directory / FORMAT} names {written.identity}, the database beside it "
            f"{identity or 'nothing'}; restore both from the same backup"
        )


@contextmanager
def closed_on_failure(database: Database) -> Generator[None]:
    """Close the database if the block raises."""
    try:
        yield
    except BaseException:
        database.close()
        raise


def _make(spec: RocksSpec) -> Database:
    directory = spec.directory
    unexpected = unexpected_files(directory)
    begun = (directory / "CURRENT").exists()
    if unexpected and not begun and not (directory / LOCK).exists():
        raise StateRefused(
            f"{directory} is not empty and holds no state (there is {min(unexpected)!r}): "
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
        with database.batch() as batch:
            database.into("meta", batch)
            batch[IDENTITY_KEY] = identity.encode()
            batch[STATE_KEY] = encoded(StoreManifest())
        database.flush()
        write_format(directory, Format(SCHEMA, identity))
    return database


def unexpected_files(directory: Path) -> list[str]:
    """List the files in a directory because of which no state is made in it."""
    names = [path.name for path in directory.iterdir()]
    return [name for name in names if name not in _EXPECTED and not name.startswith("LOG.old.")]


def write_format(directory: Path, what: Format) -> None:
    """Write `format.json`, which marks the directory as a complete state, and flush it to disk."""
    written = directory / f"{FORMAT}.new"
    with written.open("wb") as file:
        file.write(msgspec.json.encode(what))
        file.flush()
        os.fsync(file.fileno())
    written.replace(directory / FORMAT)
    for parent in (directory, directory.parent):
        _sync(parent)


def copy_format(directory: Path, copy: Path) -> None:
    """Complete a copied database to a state, flushed to disk, by a copy of `format.json`.

    Raises
    ------
    StateFailed
        If the disk fails, or the state was removed (as StateGone).
    StateDamaged
        If `format.json` cannot be parsed.
    """
    try:
        written = read_format(directory)
        if written is None:
            raise StateGone(f"the state in {directory} was removed while it was copied")
        config = directory / CONFIG
        if config.exists():
            shutil.copyfile(config, copy / CONFIG)
        copy.chmod(0o700)
        for path in copy.iterdir():
            _sync(path)
        write_format(copy, written)
    except OSError as error:
        raise translated(error, copy) from error


def _sync(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


# Locks: which process has a state open, and how to keep others from opening it.
#
# RocksDB takes a record lock on the file `LOCK` for writing. A process that reads a state takes it for
# reading: several may read at once, and a daemon that is started meanwhile reports that the directory is in
# use.


LOCK: Final = "LOCK"
_FLOCK: Final = struct.Struct("hhqqi4x")
"""`struct flock` of 64-bit Linux: type, whence, start, length, process."""


def holder(directory: Path) -> int | None:
    """Return the process that has the state open for writing; None if none has, or if that is unknown.

    A process that has no number here, such as one in another container, is 0 or less. Locks of the calling
    process are not seen, and are released by this call: call it before taking any.
    """
    try:
        opened = os.open(directory / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(opened, fcntl.F_GETLK, asked))
    except OSError:
        return None
    finally:
        os.close(opened)
    return None if kind == fcntl.F_UNLCK else process


def keep_closed(directory: Path) -> int | None:
    """Lock a state against writers until the returned descriptor is closed; None if it cannot be locked.

    Raises
    ------
    StateInUse
        If a process has it open for writing.
    """
    process = holder(directory)
    if process is not None:
        raise in_use(directory, process)
    try:
        opened = os.open(directory / LOCK, os.O_RDONLY)
    except OSError:  # a copy has no LOCK, and nobody has it open
        return None
    try:
        fcntl.lockf(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(opened)
        raise in_use(directory, 0) from None
    except OSError:  # a file system without locks
        os.close(opened)
        return None
    return opened


def in_use(directory: Path, process: int) -> StateInUse:
    """Make the error for a state that a process has open; process 0 is one in another container."""
    by = f"process {process}" if process > 0 else "another process"
    return StateInUse(
        f"the state in {directory} is in use by {by}: stop the daemon first; "
        "what a running one holds is in its /metrics, and shown by `streamwatch state show`"
    )


# Check that the directory which is written to is still the one that was opened: open files can be written and
# flushed without an error after they were removed.


class Presence:
    """Detects that an open directory was removed or replaced, by the inodes of it and of `format.json`.

    That file is written only when a state is made or converted.

    Parameters
    ----------
    directory
        A state that is open.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._opened = self._look()

    def require(self) -> None:
        """Raise StateGone unless the directory is still the one that was opened."""
        if self._look() != self._opened:
            raise StateGone(
                f"the state in {self._directory} was removed or replaced while the daemon ran: "
                "what it held is lost, unless the directory was moved and is put back"
            )

    def _look(self) -> tuple[tuple[int, int], ...] | None:
        try:
            found = [os.stat(path) for path in (self._directory, self._directory / FORMAT)]  # noqa: PTH116
        except OSError:
            return None
        return tuple((status.st_dev, status.st_ino) for status in found)


# Conversions of a state's contents from one schema to the next, made when it is opened for writing.
#
# A release that changes the meaning of anything on disk raises `SCHEMA` and adds a line to `CONVERSIONS`. A
# state of any schema that `CONVERSIONS` begins with or has later is then converted step by step. A step is
# one write batch that includes the number of the schema it reaches, so that a crash leaves it done or undone.


Conversion: TypeAlias = Callable[[Database, WriteBatch], None]
"""Reads the state, adds converted values to the batch; raises StateDamaged for invalid contents."""
CONVERSIONS: Final[Mapping[int, Conversion]] = MappingProxyType({})
"""Schema → the conversion from it to the next schema. Empty: nothing has been released yet."""
REACHED_KEY: Final = b"schema"
"""Key in the family `meta` of the schema that the last conversion reached; absent before any conversion."""


def is_convertible(schema: int, to: int) -> bool:
    """Tell whether every step from the older schema `schema` to the newer schema `to` has a conversion."""
    return schema < to and all(step in CONVERSIONS for step in range(schema, to))


def convert(database: Database, schema: int, to: int) -> None:
    """Convert a state from `schema` to `to`, step by step, resuming after the last step that was flushed.

    Raises
    ------
    StateDamaged
        If contents of the state do not fit its schema.
    StateFailed
        If the disk fails.
    """
    reached = database.get("meta", REACHED_KEY)
    for step in range(max(schema, 0 if reached is None else int(reached)), to):
        with database.batch() as batch:
            CONVERSIONS[step](database, batch)
            database.into("meta", batch)
            batch[REACHED_KEY] = str(step + 1).encode()
        database.flush()


# Check of the free space on the state's disk.


LOOK_SECONDS = 1.0
RECOVERY_FACTOR = 1.1
"""Factor on `least_bytes` that free space must reach after it was low, so that the result does not flap."""


class FreeSpace:
    """Checks the free space of a directory's disk, at most once a second.

    Parameters
    ----------
    directory
        Directory of the state.
    least_bytes
        Free space below which the disk counts as nearly full.
    free_bytes
        Function from a directory to the free bytes on its disk.
    """

    def __init__(
        self,
        directory: Path,
        least_bytes: int,
        free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
    ) -> None:
        self._directory = directory
        self._least_bytes = least_bytes
        self._free_bytes = free_bytes
        self._look = -LOOK_SECONDS
        self._low = False

    def is_low(self) -> bool:
        """Tell whether less than `least_bytes` is free.

        Raises
        ------
        StateGone
            If the directory does not exist.
        """
        now = time.monotonic()
        if now - self._look >= LOOK_SECONDS:
            self._look = now
            try:
                free = self._free_bytes(self._directory)
            except FileNotFoundError:
                raise StateGone(f"the state in {self._directory} was removed while the daemon ran") from None
            except OSError:  # the disk fails: the store will report it
                return self._low
            self._low = free < self._least_bytes * (RECOVERY_FACTOR if self._low else 1.0)
        return self._low
