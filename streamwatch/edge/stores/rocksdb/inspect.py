"""Read-only access to a state, for `streamwatch state` to show, verify and export it.

While a daemon has the state open, an earlier commit of it is read; only a closed state can be verified.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rocksdict import DBRecoveryMode

from streamwatch.core.join.cold.store import KeyRange
from streamwatch.edge.stores.kind import StateDamaged, StateFailed, StateRefused
from streamwatch.edge.stores.rocksdb.database import (
    COLD_RUNS,
    FAMILIES,
    MEBIBYTE,
    OPEN_FILES,
    Database,
    StoreManifest,
    identity_of,
    key_number,
    manifest_of,
    publications_of,
    sections_of,
    size_on_disk,
)
from streamwatch.edge.stores.rocksdb.opening import (
    CONFIG,
    FORMAT,
    LOCK,
    Format,
    holder,
    keep_closed,
    read_format,
    require_identity,
    require_schema,
)

# A directory opened without changing it, whether a daemon writes to it or not.
#
# The client library writes a file of settings into any directory it opens, even for reading only. So it gets
# a temporary directory of links to the files, which also works where the state's disk is mounted read-only.


_ATTEMPTS: Final = 5
_CACHE_BYTES: Final = 32 * MEBIBYTE


class Inspection:
    """A state opened for reading only, with the manifest, identity and sections of its last commit.

    It is opened through a temporary directory of links.

    Parameters
    ----------
    directory
        Of the state.
    closed
        Refuse a state that a daemon writes to, and keep daemons from it until `close`.
    whole_log
        Refuse a write-ahead log that is damaged before its end; otherwise it is read up to the damage, as
        the daemon does. An incomplete last record, as a crash leaves it, is no damage.

    Raises
    ------
    StateRefused
        If there is no state, or one of another schema.
    """

    def __init__(self, directory: Path, *, closed: bool = False, whole_log: bool = False) -> None:
        written = format_of(directory)
        require_schema(directory, written)
        self.directory = directory
        self.schema = written.schema
        self._lock = keep_closed(directory) if closed else None
        self.process = None if closed else holder(directory)
        """Process that has the state open for writing; None if none has."""
        self._links: TemporaryDirectory[str] | None = None
        try:
            self._database = self._opened(whole_log=whole_log)
        except BaseException:
            self._release()
            raise
        try:
            self._look(written)
        except BaseException:
            self.close()
            raise

    def _opened(self, *, whole_log: bool) -> Database:
        """Open the database; retry while a daemon runs, which may remove files that were just linked."""
        for _ in range(_ATTEMPTS if self.process is not None else 0):
            with suppress(StateFailed):
                return self._open(whole_log=whole_log)
            self._drop_links()
        return self._open(whole_log=whole_log)

    def _open(self, *, whole_log: bool) -> Database:
        self._links = TemporaryDirectory(prefix="streamwatch-state-")
        links = Path(self._links.name)
        files = 0
        for path in self.directory.iterdir():
            if path.name == CONFIG:
                shutil.copyfile(path, links / CONFIG)
            elif path.name != LOCK and path.is_file():
                (links / path.name).symlink_to(path.absolute())
                files += path.suffix == ".sst"
        with self._named():
            return Database(
                links,
                _CACHE_BYTES,
                8 * MEBIBYTE,
                read_only=True,
                # an open file stays readable after the daemon removes it
                open_files=-1 if files < OPEN_FILES else OPEN_FILES,
                recovery=DBRecoveryMode.tolerate_corrupted_tail_records() if whole_log else None,
            )

    @contextmanager
    def _named(self) -> Generator[None]:
        """Rewrite errors of the block to name files, not links, and a running daemon as a possible cause.

        Damage beside a running daemon is raised as StateFailed, since files may have been replaced meanwhile.
        """
        try:
            yield
        except (StateFailed, StateRefused) as error:
            links = self._links.name if self._links else ""
            text = str(error).replace(links, str(self.directory)) if links else str(error)
            if self.process is not None and isinstance(error, StateDamaged):
                raise StateFailed(
                    f"the daemon (process {self.process}) replaced files of {self.directory} while they were "
                    "read: try again"
                ) from error
            raise type(error)(text) from error

    def _release(self) -> None:
        self._drop_links()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _drop_links(self) -> None:
        if self._links is not None:
            self._links.cleanup()
            self._links = None

    def _look(self, written: Format) -> None:
        with self._named():
            self.manifest = manifest_of(self._database) or StoreManifest()
            self.identity = identity_of(self._database) or ""
            self.sections: Mapping[str, bytes] = sections_of(self._database)
        require_identity(self.directory, written, self.identity)

    @property
    def created_s(self) -> float:
        """Time at which the directory was made or copied, in seconds since the epoch."""
        path = self.directory / "IDENTITY"
        return (path if path.exists() else self.directory / FORMAT).stat().st_mtime

    def publications(self) -> Mapping[int, bytes]:
        """Read the publications to the topics of results, by commit number, ascending."""
        with self._named():
            return publications_of(self._database)

    def journal(self) -> Iterator[tuple[int, bytes]]:
        """Yield (commit number, entry) of the journal, ascending."""
        for key, value in self.items("journal"):
            yield key_number(key), value

    def items(self, family: str, since: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield (key, value) of a family in key order, from `since` on."""
        with self._named():
            yield from self._database.items(family, since)

    def get_all(self, family: str, keys: list[bytes]) -> Sequence[bytes | None]:
        """Return the values of many keys of a family; None for each that is absent."""
        with self._named():
            return self._database.get_all(family, keys)

    def sizes(self) -> dict[str, int]:
        """Return bytes on disk by family, of the write-ahead log (`log`), and of all files (`total`)."""
        sizes = {family: self._database.figure(family, "live-sst-files-size") for family in FAMILIES}
        logs = sum(path.stat().st_size for path in self.directory.glob("*.log"))
        return {**sizes, "log": logs, "total": size_on_disk(self.directory)}

    def close(self) -> None:
        """Close the database, remove the links and release the lock."""
        self._database.close()
        self._release()


def format_of(directory: Path) -> Format:
    """Read `format.json` of a state, before RocksDB opens the directory.

    Raises
    ------
    StateRefused
        If the directory holds no state.
    """
    if not directory.is_dir():
        raise StateRefused(f"there is no directory {directory}: a daemon makes it at its first start")
    try:
        written = read_format(directory)
    except OSError as error:
        raise StateRefused(f"the state in {directory} cannot be read: {error}") from error
    if written is None:
        raise StateRefused(f"there is no state in {directory}: it has no {FORMAT}")
    if not (directory / "CURRENT").exists():
        raise StateDamaged(
            f"the state is damaged: {directory / 'CURRENT'} is missing; restore a backup of the directory"
        )
    return written


# Cold runs of a state opened for reading only.


class ReadRuns:
    """A read-only `RunStore`.

    Parameters
    ----------
    state
        The state whose runs are read.
    """

    def __init__(self, state: Inspection) -> None:
        self._state = state

    def write(self, values: Sequence[tuple[bytes, bytes]]) -> None:
        """Refuse: raises RuntimeError."""
        raise RuntimeError(f"a state that is looked at is not written to, got {len(values)} values")

    def get_all(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the values of many keys; None for each that is absent."""
        return self._state.get_all(COLD_RUNS, list(keys))

    def keys(self, first: bytes, end: bytes) -> Sequence[bytes]:
        """Return the keys from `first` up to, not including, `end`, in order."""
        items = self._state.items(COLD_RUNS, first)
        return [key for key, _ in takewhile(lambda item: item[0] < end, items)]

    def next_key(self, first: bytes) -> bytes | None:
        """Return the first key that is not before `first`; None without one."""
        return next((key for key, _ in self._state.items(COLD_RUNS, first)), None)

    def remove(self, ranges: Sequence[KeyRange]) -> None:
        """Refuse: raises RuntimeError."""
        raise RuntimeError(f"of a state that is looked at nothing is removed, got {len(ranges)} ranges")

    def reclaimable(self, entries: int) -> list[KeyRange]:
        """Return no ranges: nothing is ever removed."""
        del entries
        return []

    def reclaim(self, ranges: Sequence[KeyRange]) -> None:
        """Do nothing."""
