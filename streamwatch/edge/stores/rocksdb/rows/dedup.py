"""Which dedup entries fall together: ids by generation, so that a dropped generation can be cleared away."""

from __future__ import annotations

from collections.abc import Sequence

from rocksdict import WriteBatch

from streamwatch.core.join.entry import JoinEntry
from streamwatch.edge.stores.rocksdb.directory.database import Database
from streamwatch.edge.stores.rocksdb.keys import dedup_key, dedup_parts, split_digests
from streamwatch.edge.stores.rocksdb.rows.records import Records


class DedupCleaner:
    """Dedup entries of generations below the floor are dead at once; their bytes go bit by bit.

    What is left to clear is what the dedup keys on disk say, so it survives a restart.
    """

    __slots__ = ("_added", "_cursor", "_database", "_left", "floor")

    def __init__(self, database: Database, floor: int) -> None:
        self._database = database
        self._added: dict[int, list[str]] = {}
        self._cursor = b""
        self._left = floor > 0
        self.floor = floor

    def add(self, dedup_added: Sequence[tuple[int, Sequence[JoinEntry]]]) -> None:
        """Note new dedup entries."""
        for generation, records in dedup_added:
            self._added.setdefault(generation, []).append("".join([record.id for record in records]))

    def drop(self, generations: Sequence[int]) -> None:
        """Their dedup entries are dead."""
        if generations:
            self.floor = max(self.floor, max(generations) + 1)
            self._left = True

    def write(self, batch: WriteBatch, commit: int) -> None:
        """Write what was settled and has not been dropped since."""
        for generation, ids in self._added.items():
            if generation >= self.floor:
                batch[dedup_key(generation, commit)] = "".join(ids).encode("latin-1")
        self._added.clear()

    def clear(self, records: Records, batch: WriteBatch, effort: int) -> None:
        """Strip about so many dead dedup entries and remove the dedup keys that named them."""
        if not self._left:
            return
        for key, value in self._database.items("dedup", self._cursor):
            if dedup_parts(key)[0] >= self.floor:
                break
            if effort <= 0:
                return
            ids = split_digests(value)
            records.strip(ids, batch)
            effort -= len(ids)
            self._database.delete("dedup", key, batch)
            self._cursor = key + b"\0"
        self._left = False
