"""State on local disk, which survives the process and the machine.

The join keeps its entries in memory, or in cold runs (`RocksRuns`); a commit writes them as values whose keys
and contents `core.join.durable` defines. They are in one write batch with the journal, the models, the
outbox, the sections and the manifest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

from rocksdict import WriteBatch

from streamwatch.core.join.cold.store import ENTRIES, ColdChanges, KeyRange
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import CommitBatch, RecoveredState
from streamwatch.edge.stores.rocksdb.database import (
    COLD_RUNS,
    FAMILIES,
    IDENTITY_KEY,
    PUBLICATION_PREFIX,
    SECTION_PREFIX,
    STATE_KEY,
    Database,
    StoreManifest,
    encoded,
    identity_of,
    key_number,
    manifest_of,
    number_key,
    publications_of,
    sections_of,
)
from streamwatch.edge.stores.rocksdb.opening import (
    Presence,
    RocksSpec,
    closed_on_failure,
    copy_format,
    open_database,
)

# Cold runs in RocksDB: blocks, filters and dead bits are values of a family of their own.
#
# Values written before a commit precede it in the write-ahead log, so they survive a crash if the commit
# does.


RECLAIMED_SHARE: Final = 4
"""Removed entries keep their disk space until they are this fraction (1/4) of the entries left."""


class RocksRuns:
    """A `RunStore` over an open directory.

    Parameters
    ----------
    database
        A database with the family `COLD_RUNS`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._removed: list[KeyRange] = []
        self._removed_entries = 0

    def write(self, values: Sequence[tuple[bytes, bytes]]) -> None:
        """Write (key, value) pairs to the operating system, not yet to the disk."""
        with self._database.batch() as batch:
            self._database.replace(COLD_RUNS, values, batch)

    def get_all(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the values of many keys; None for each that is absent."""
        return self._database.get_all(COLD_RUNS, list(keys))

    def keys(self, first: bytes, end: bytes) -> Sequence[bytes]:
        """Return the keys from `first` up to, not including, `end`, in order."""
        items = self._database.items(COLD_RUNS, first)
        return [key for key, _ in takewhile(lambda item: item[0] < end, items)]

    def next_key(self, first: bytes) -> bytes | None:
        """Return the first key that is not before `first`; None without one."""
        return next((key for key, _ in self._database.items(COLD_RUNS, first)), None)

    def remove(self, ranges: Sequence[KeyRange]) -> None:
        """Remove the keys in ranges."""
        with self._database.batch() as batch:
            self._remove(ranges, batch)

    def write_changes(self, changes: ColdChanges, batch: WriteBatch) -> None:
        """Add the changes of cold runs to the batch of a commit."""
        self._remove(changes.removed, batch)
        self._removed += [each for each in changes.removed if each[0].startswith(ENTRIES)]
        self._removed_entries += changes.removed_entries
        self._database.replace(COLD_RUNS, changes.put.items(), batch)

    def reclaimable(self, entries: int) -> list[KeyRange]:
        """Return the key ranges removed since the last call once they are worth a `reclaim`; until then none.

        Parameters
        ----------
        entries
            Number of entries in all remaining runs.
        """
        if self._removed_entries < entries // RECLAIMED_SHARE:
            return []
        removed, self._removed, self._removed_entries = sorted(self._removed), [], 0
        ranges: list[KeyRange] = []
        for first, end in removed:
            if ranges and ranges[-1][1] == first:
                ranges[-1] = (ranges[-1][0], end)
            else:
                ranges.append((first, end))
        return ranges

    def reclaim(self, ranges: Sequence[KeyRange]) -> None:
        """Free the disk space of removed key ranges; takes long, so call it in a thread.

        RocksDB keeps removed ranges on disk until it rewrites their files for another reason. This call
        rewrites them now, and with them neighbouring keys in the same files.
        """
        for first, end in ranges:
            self._database.compact_range(COLD_RUNS, first, end)

    def _remove(self, ranges: Sequence[KeyRange], batch: WriteBatch) -> None:
        for first, end in ranges:
            self._database.delete_range(COLD_RUNS, first, end, batch)


class RocksStore:
    """A `Store` over RocksDB; `open` may take seconds, so call it in a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._presence = Presence(database.directory)
        self._commits = (manifest_of(database) or StoreManifest()).commits
        self._identity = identity_of(database) or ""
        self._journal = deque(key_number(key) for key, _ in database.items("journal"))
        self._runs = RocksRuns(database)

    @classmethod
    def open(cls, spec: RocksSpec) -> RocksStore:
        """Open the state in a directory, or make one there.

        Raises
        ------
        StateRefused
            If it cannot be used as it is.
        StateFailed
            If the disk fails.
        """
        database = open_database(spec)
        with closed_on_failure(database):
            return cls(database)

    @property
    def durable(self) -> bool:
        """True: state survives the process."""
        return True

    @property
    def identity(self) -> str:
        """Identity that the state got when it was made."""
        return self._identity

    def load(self) -> RecoveredState:
        """Return the state as of the last commit; the join's values are read lazily, as they are iterated."""
        items = self._database.items
        return RecoveredState(
            self._commits,
            sections_of(self._database),
            {key.decode(): value for key, value in items("models")},
            [(key_number(key), value) for key, value in items("journal")],
            {key.decode(): value for key, value in items("outbox")},
            items("columns"),
            self._runs,
            publications_of(self._database),
        )

    def commit(self, changes: CommitBatch) -> None:
        """Write the changes as one batch over all families; durable after `flush`."""
        number = self._commits + 1
        with self._database.batch() as batch:
            replace = self._database.replace
            replace("columns", changes.columns.items(), batch)
            if changes.runs is not None:
                self._runs.write_changes(changes.runs, batch)
            self._write_journal(number, changes, batch)
            replace("models", ((name.encode(), value) for name, value in changes.models.items()), batch)
            replace("outbox", ((name.encode(), value) for name, value in changes.outbox.items()), batch)
            publications = changes.publications.items()
            replace("meta", ((PUBLICATION_PREFIX + number_key(n), value) for n, value in publications), batch)
            batch[STATE_KEY] = encoded(StoreManifest(number))
            for name, section in changes.sections.items():
                batch[SECTION_PREFIX + name.encode()] = section
        self._commits = number

    def _write_journal(self, number: int, changes: CommitBatch, batch: WriteBatch) -> None:
        self._database.into("journal", batch)
        if changes.journal:
            batch[number_key(number)] = changes.journal
            self._journal.append(number)
        while self._journal and self._journal[0] < changes.journal_floor:
            del batch[number_key(self._journal.popleft())]

    def flush(self) -> None:
        """Flush the write-ahead log; raises StateGone where the directory was removed or replaced."""
        self._database.flush()
        self._presence.require()

    def copy_to(self, directory: Path) -> None:
        """Copy the last commit to a new directory, which `open` accepts."""
        self._presence.require()
        self._database.copy_to(directory)
        copy_format(self._database.directory, directory)

    def families(self) -> Sequence[Family]:
        """Return metrics of sizes on disk; the join reports the numbers of entries."""
        figure = self._database.figure
        sizes = [((name,), float(figure(name, "live-sst-files-size"))) for name in FAMILIES]
        return [
            family("state_bytes", sizes),
            single("state_buffered_bytes", float(figure("columns", "cur-size-all-mem-tables"))),
        ]

    def close(self) -> None:
        """Close the database."""
        self._database.close()


# Emptying a state on purpose: its identity and the number of its last commit are kept.


_AFTER_ALL_KEYS = b"\xff" * 64


def empty(spec: RocksSpec) -> None:
    """Remove everything that commits have written, in one write batch.

    The next commit continues the numbering, so that a comparison with the commit number stored in the
    consumer group does not report a lost or older state.

    Raises
    ------
    StateRefused
        If there is no state, or a daemon has it open.
    StateFailed
        If the disk fails.
    """
    database = open_database(spec)
    try:
        commits = (manifest_of(database) or StoreManifest()).commits
        identity = identity_of(database) or ""
        with database.batch() as batch:
            for family in FAMILIES:
                database.delete_range(family, b"", _AFTER_ALL_KEYS, batch)
            database.into("meta", batch)
            batch[IDENTITY_KEY] = identity.encode()
            batch[STATE_KEY] = encoded(StoreManifest(commits + 1))
        database.flush()
    finally:
        database.close()
