"""Records by id: those in memory, and on disk those that are not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from rocksdict import WriteBatch

from streamwatch.core.join.entry import RESOLVED, JoinEntry, forget
from streamwatch.edge.stores.rocksdb.directory.database import Database
from streamwatch.edge.stores.rocksdb.directory.failures import undecodable
from streamwatch.edge.stores.rocksdb.keys import DIGEST_BYTES, expiry_key, expiry_parts, split_digests
from streamwatch.edge.stores.rocksdb.rows.codec import ChainCodec, is_settled, pack_rows, unpack_rows
from streamwatch.edge.stores.rocksdb.rows.expiry_cache import KIND_OF, Entry, ExpiryCache


class Records:
    """The working set, and how it is filled from disk and written back.

    Parameters
    ----------
    database
        Where the records are.
    codec
        How they are written.
    cache_entries
        How many ids may stay in memory that nothing needs.
    empty
        Nothing is on disk yet: until something leaves memory, what is not there is not known at all.
    """

    __slots__ = ("_cache_entries", "_codec", "_complete", "_database", "by_id", "changed")

    def __init__(self, database: Database, codec: ChainCodec, cache_entries: int, *, empty: bool) -> None:
        self._database = database
        self._codec = codec
        self._cache_entries = cache_entries
        self._complete = empty
        self.by_id: dict[str, JoinEntry] = {}
        self.changed: dict[str | None, None] = {}
        """Ids whose chain may differ from the one on disk; None stands for events without one.

        In the order they came: about that in which their records lie in memory. Written in any other order,
        the processor waits for each of them.
        """

    def find(self, ids: Iterable[str | None]) -> None:
        """Bring what is known of these ids into memory."""
        if self._complete:
            return
        by_id = self.by_id
        changed = self.changed
        missing = {key for key in ids if key not in by_id and key not in changed and key is not None}
        if missing:
            by_id.update(self._read(missing))

    def _read(self, ids: Collection[str]) -> dict[str, JoinEntry]:
        ordered = sorted(ids)  # keys that share a block are looked up together
        values = self._database.get_all("entries", [key.encode("latin-1") for key in ordered])
        unpack = self._codec.unpack
        found: dict[str, JoinEntry] = {}
        key = ""
        try:
            for key, value in zip(ordered, values, strict=True):
                if value is not None and (first := unpack(key, value)) is not None:
                    found[key] = first
        except (ValueError, LookupError, TypeError) as error:
            raise undecodable(key.encode("latin-1"), error) from error
        return found

    def chains(self, ids: Sequence[str]) -> Mapping[str, JoinEntry]:
        """Read the chains of these ids; what is read is not kept in memory."""
        by_id, changed = self.by_id, self.changed
        found = {key: by_id[key] for key in ids if key in by_id}
        missing = {key for key in ids if key not in found and key not in changed}
        return found | self._read(missing) if missing else found

    def adopt(self, first: JoinEntry) -> None:
        """Keep this chain in memory."""
        self.by_id.setdefault(first.id, first)

    def entries(self, kind: int, since_s: int, least: int) -> tuple[Sequence[Entry], bool]:
        """Entries of the index in order, whole deadlines, at least so many records; whether these are all."""
        entries: list[Entry] = []
        for key, value in self._database.items("expiry", expiry_key(kind, since_s, 0)):
            of_kind, deadline_s, number = expiry_parts(key)
            if of_kind != kind:
                break
            if least <= 0 and deadline_s != entries[-1].deadline_s:
                return entries, False
            ids = split_digests(value)
            least -= len(ids)
            entries.append(Entry(deadline_s, number, ids))
        return entries, True

    def strip(self, ids: Sequence[str], batch: WriteBatch) -> None:
        """Remove dead dedup entries: in memory, or from the value on disk."""
        by_id, changed, floor = self.by_id, self.changed, self._codec.floor
        cold: list[str] = []
        for key in ids:
            record = by_id.get(key)
            if record is None:
                if key not in changed:
                    cold.append(key)
                continue
            while record is not None:
                following = record.next
                if record.state >= RESOLVED and record.generation < floor:
                    forget(by_id, record)
                    changed[key] = None
                record = following
        if not cold:
            return
        keys = [key.encode("latin-1") for key in sorted(set(cold))]
        for key, value in zip(keys, self._database.get_all("entries", keys), strict=True):
            if value is None:
                continue
            rows = unpack_rows(value)
            alive = [row for row in rows if not is_settled(row) or row[3] >= floor]
            if len(alive) < len(rows):
                if (left := pack_rows(alive)) is None:
                    del batch[key]
                else:
                    batch[key] = left

    def write(self, batch: WriteBatch) -> None:
        """Write every chain that changed."""
        find, pack, put = self.by_id.get, self._codec.pack, batch.put
        gone: list[bytes] = []
        for id in self.changed:  # noqa: A001 - the events' own word
            if id is None:
                continue
            key = id.encode("latin-1")
            if len(key) != DIGEST_BYTES:
                raise ValueError(f"an id on disk is a digest of {DIGEST_BYTES} bytes, got {id!r}")
            first = find(id)
            if first is None or (value := pack(first)) is None:
                gone.append(key)
            else:
                put(key, value)
        if gone:
            gone.sort()
            for key, value in zip(gone, self._database.get_all("entries", gone), strict=True):
                if value is not None:
                    del batch[key]
        self.changed.clear()

    def let_go(self, caches: Sequence[ExpiryCache]) -> None:
        """Drop from memory what has been there longest, is written, and is in no index lent to the core."""
        by_id = self.by_id
        excess = len(by_id) - self._cache_entries - sum(cache.index.entries for cache in caches)
        if excess <= 0:
            return
        for key in list(islice(by_id, 2 * excess + 64)):
            first = record = by_id.pop(key)
            while record is not None and (
                record.state >= RESOLVED or not caches[KIND_OF[record.state]].has(record)
            ):
                record = record.next
            if record is not None:
                by_id[key] = first  # not soon again
                continue
            self._complete = False
            excess -= 1
            if not excess:
                return
