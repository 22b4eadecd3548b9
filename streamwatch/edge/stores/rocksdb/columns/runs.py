"""Cold runs in RocksDB: blocks, filters and dead bits are values of a family of their own.

What is written before a commit lies before it in the write-ahead log, so a commit that survives a crash finds
it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rocksdict import WriteBatch

from streamwatch.core.join.compiled.cold.store import ENTRIES, ColdChanges, KeyRange
from streamwatch.edge.stores.rocksdb.directory.database import COLD_RUNS, Database

RECLAIMED_SHARE: Final = 4
"""Removed entries take their room on the disk until they are so large a share of the others."""


class RocksRuns:
    """A `RunStore` over an open directory.

    Parameters
    ----------
    database
        With the family `COLD_RUNS`. Its `batch` is where a commit's `write_changes` belongs.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._removed: list[KeyRange] = []
        self._removed_entries = 0

    def write(self, values: Sequence[tuple[bytes, bytes]]) -> None:
        """Write values; the operating system has them, not yet the disk."""
        with self._database.batch() as batch:
            self._database.into(COLD_RUNS, batch)
            for key, value in values:
                batch[key] = value

    def get_all(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Values of many keys."""
        return self._database.get_all(COLD_RUNS, list(keys))

    def keys(self, first: bytes, end: bytes) -> Sequence[bytes]:
        """Keys in a range, in order."""
        found: list[bytes] = []
        for key, _ in self._database.items(COLD_RUNS, first):
            if key >= end:
                break
            found.append(key)
        return found

    def next_key(self, first: bytes) -> bytes | None:
        """First key that is not before `first`."""
        return next((key for key, _ in self._database.items(COLD_RUNS, first)), None)

    def remove(self, ranges: Sequence[KeyRange]) -> None:
        """Remove keys."""
        with self._database.batch() as batch:
            self._remove(ranges, batch)

    def write_changes(self, changes: ColdChanges, batch: WriteBatch) -> None:
        """Add what has changed to the batch of a commit."""
        self._remove(changes.removed, batch)
        self._removed += [each for each in changes.removed if each[0].startswith(ENTRIES)]
        self._removed_entries += changes.removed_entries
        self._database.into(COLD_RUNS, batch)
        for key, value in changes.put.items():
            if value is None:
                del batch[key]
            else:
                batch[key] = value

    def reclaimable(self, entries: int) -> list[KeyRange]:
        """Hand over the keys that commits have removed, once it pays to `reclaim` their room; else nothing.

        Parameters
        ----------
        entries
            Entries in all runs that are left.
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
        """Free the disk of removed keys; for a thread.

        RocksDB by itself leaves a removed range on the disk until it happens to rewrite its files; asking for
        it rewrites their neighbours, too.
        """
        for first, end in ranges:
            self._database.compact_range(COLD_RUNS, first, end)

    def _remove(self, ranges: Sequence[KeyRange], batch: WriteBatch) -> None:
        for first, end in ranges:
            self._database.delete_range(COLD_RUNS, first, end, batch)
