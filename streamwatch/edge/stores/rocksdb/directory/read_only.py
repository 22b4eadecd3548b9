"""A directory opened so that nothing in it changes, be a daemon writing to it or not.

The client library writes its own settings into whatever directory it opens, even for reading only. So it gets
a directory of links to the files instead, which also works where the state's disk is mounted read-only.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rocksdict import DBRecoveryMode

from streamwatch.edge.stores.errors import StateDamaged, StateFailed, StateRefused
from streamwatch.edge.stores.rocksdb.directory.database import MEBIBYTE, OPEN_FILES, Database
from streamwatch.edge.stores.rocksdb.directory.lock import LOCK, holder, keep_closed

CONFIG: Final = "rocksdict-config.json"
_ATTEMPTS: Final = 5
_CACHE_BYTES: Final = 32 * MEBIBYTE


class Reader:
    """A database for reading only, and the links it reads through.

    Parameters
    ----------
    directory
        Of the state.
    closed
        Refuse a state that a daemon writes to, and keep daemons from it until `close`.
    whole_log
        Refuse a write-ahead log that is damaged before its end; otherwise it counts up to the damage, as at
        an ordinary opening. An end that was torn by a crash is none of either.
    """

    def __init__(self, directory: Path, *, closed: bool = False, whole_log: bool = False) -> None:
        self.directory = directory
        self._lock = keep_closed(directory) if closed else None
        self.process = None if closed else holder(directory)
        """Who writes to the state meanwhile, if anybody does."""
        self._links: TemporaryDirectory[str] | None = None
        try:
            self.database = self._opened(whole_log=whole_log)
        except BaseException:
            self._let_go()
            raise

    def _opened(self, *, whole_log: bool) -> Database:
        """A running daemon may remove a file between listing and opening: then once more."""
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
        with self.named():
            return Database(
                links,
                _CACHE_BYTES,
                8 * MEBIBYTE,
                read_only=True,
                # a file that is open stays readable when the daemon removes it
                open_files=-1 if files < OPEN_FILES else OPEN_FILES,
                recovery=DBRecoveryMode.tolerate_corrupted_tail_records() if whole_log else None,
            )

    @contextmanager
    def named(self) -> Generator[None]:
        """Errors name the files themselves, and say so if a daemon may be to blame for them."""
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

    def close(self) -> None:
        """Free what is held."""
        self.database.close()
        self._let_go()

    def _let_go(self) -> None:
        self._drop_links()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _drop_links(self) -> None:
        if self._links is not None:
            self._links.cleanup()
            self._links = None
