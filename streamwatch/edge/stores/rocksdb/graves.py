"""Which tombstones fall together: ids by generation, so that a dropped generation can be cleared away."""

from __future__ import annotations

from collections.abc import Sequence

from rocksdict import WriteBatch

from streamwatch.core.known import Known
from streamwatch.edge.stores.rocksdb.database import Database
from streamwatch.edge.stores.rocksdb.keys import grave_key, grave_parts, split_digests
from streamwatch.edge.stores.rocksdb.records import Records


class Graves:
    """Tombstones of generations below the floor are dead at once; their bytes go bit by bit.

    What is left to clear is what the graves on disk say, so it survives a restart.
    """

    __slots__ = ("_buried", "_cursor", "_database", "_left", "floor")

    def __init__(self, database: Database, floor: int) -> None:
        self._database = database
        self._buried: dict[int, list[str]] = {}
        self._cursor = b""
        self._left = floor > 0
        self.floor = floor

    def bury(self, buried: Sequence[tuple[int, Sequence[Known]]]) -> None:
        """Note new tombstones."""
        for generation, records in buried:
            self._buried.setdefault(generation, []).append("".join([record.id for record in records]))

    def drop(self, generations: Sequence[int]) -> None:
        """Their tombstones are dead."""
        if generations:
            self.floor = max(self.floor, max(generations) + 1)
            self._left = True

    def write(self, batch: WriteBatch, commit: int) -> None:
        """Write what was buried and has not been dropped since."""
        for generation, ids in self._buried.items():
            if generation >= self.floor:
                batch[grave_key(generation, commit)] = "".join(ids).encode("latin-1")
        self._buried.clear()

    def clear(self, records: Records, batch: WriteBatch, effort: int) -> None:
        """Strip about so many dead tombstones and remove the graves that named them."""
        if not self._left:
            return
        for key, value in self._database.items("graves", self._cursor):
            if grave_parts(key)[0] >= self.floor:
                break
            if effort <= 0:
                return
            ids = split_digests(value)
            records.strip(ids, batch)
            effort -= len(ids)
            self._database.delete("graves", key, batch)
            self._cursor = key + b"\0"
        self._left = False
