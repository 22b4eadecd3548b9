"""Cold runs in RocksDB: blocks, filters and dead bits are values of a family of their own.

What is written before a commit lies before it in the write-ahead log, so a commit that survives a crash finds
it there.
"""

from __future__ import annotations

from collections.abc import Sequence

from rocksdict import WriteBatch

from streamwatch.core.join.compiled.cold.store import ENTRIES, ColdChanges, KeyRange
from streamwatch.edge.stores.rocksdb.database import COLD_RUNS, Database


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
        self._removed += changes.removed
        self._database.into(COLD_RUNS, batch)
        for key, value in changes.put.items():
            batch[key] = value

    def reclaim(self) -> None:
        """Free the disk of runs that commits have removed; for a thread.

        RocksDB by itself leaves a removed range on the disk until it happens to rewrite its files.
        """
        removed, self._removed = self._removed, []
        for first, end in removed:
            if first.startswith(ENTRIES):
                self._database.compact_range(COLD_RUNS, first, end)

    def _remove(self, ranges: Sequence[KeyRange], batch: WriteBatch) -> None:
        for first, end in ranges:
            self._database.delete_range(COLD_RUNS, first, end, batch)
