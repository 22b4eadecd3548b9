"""State on local disk: survives the process and the machine, whatever is pending.

One value per id holds all that is known of it (`codec`), so one look-up finds every model's prediction, a
label that waits, and the dedup entries of what is settled. What resolves between two commits reaches the disk
only as a dedup entry. In memory are the ids touched last and what falls due next (`records`, `expiry_cache`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rocksdict import WriteBatch

from streamwatch.core.commit.batch import CommitBatch, RecoveredState
from streamwatch.core.events import Label, NullRecord, Prediction
from streamwatch.core.join.entry import JoinEntry
from streamwatch.core.join.working_set import BatchResult, ReadSet, WorkingSet
from streamwatch.core.metrics import family, single
from streamwatch.core.series import Family
from streamwatch.edge.stores.errors import StateRefused
from streamwatch.edge.stores.rocksdb.commit_parts import CommitParts
from streamwatch.edge.stores.rocksdb.directory.database import FAMILIES, Database
from streamwatch.edge.stores.rocksdb.directory.meta import (
    StoreManifest,
    all_names_of,
    identity_of,
    manifest_of,
)
from streamwatch.edge.stores.rocksdb.directory.opening import closed_on_failure, open_database
from streamwatch.edge.stores.rocksdb.directory.presence import Presence
from streamwatch.edge.stores.rocksdb.keys import name_key
from streamwatch.edge.stores.rocksdb.rows.codec import ChainCodec
from streamwatch.edge.stores.rocksdb.rows.dedup import DedupCleaner
from streamwatch.edge.stores.rocksdb.rows.expiry_cache import STATES, ExpiryCache
from streamwatch.edge.stores.rocksdb.rows.names import Names
from streamwatch.edge.stores.rocksdb.rows.records import Records
from streamwatch.edge.stores.rocksdb.spec import RocksSpec

_WITH_ID: Final = frozenset((Prediction, Label, NullRecord))
_CLEARING: Final = 4
"""Dead dedup entries cleared per event, at most: more than any stream makes."""


class RocksStore:
    """A `Store` over RocksDB; `open` it in a thread, it may take seconds."""

    def __init__(self, database: Database, spec: RocksSpec) -> None:
        self._database = database
        self._presence = Presence(database.directory)
        manifest = manifest_of(database) or StoreManifest()
        self._manifest = manifest
        self._identity = identity_of(database) or ""
        self._names = Names(all_names_of(database, manifest))
        self._codec = ChainCodec(self._names, manifest.horizon_ms, manifest.early_horizon_ms, manifest.floor)
        empty = manifest.commits == 0
        self._records = Records(database, self._codec, spec.cache_entries, empty=empty)
        self._caches = [
            ExpiryCache(
                kind, spec.expiry_cache_entries, None if empty else manifest.since_s[kind], spec.due_records
            )
            for kind in range(len(STATES))
        ]
        self._dedup = DedupCleaner(database, manifest.floor)
        self._parts = CommitParts(database)
        self._events = 0
        self._ids: list[str | None] = []

    @classmethod
    def open(cls, spec: RocksSpec) -> RocksStore:
        """Open the directory, or begin a state in it.

        Raises
        ------
        StateRefused
            If it cannot be used as it is.
        StateFailed
            If the disk fails.
        """
        database = open_database(spec)
        with closed_on_failure(database):
            manifest = manifest_of(database)
            if manifest is not None and manifest.in_columns:
                raise StateRefused(
                    f"the state in {spec.directory} is kept in columns, and these settings join row by row: "
                    "set `join.conflicts: first`, no `monitors.comparisons` with "
                    "`join.order: prediction_time`, and some "
                    "`state.join_memory_megabytes`, or name another directory in `state.directory` to start "
                    "afresh; nothing was changed"
                )
            return cls(database, spec)

    @property
    def durable(self) -> bool:
        """State survives."""
        return True

    @property
    def identity(self) -> str:
        """Given when the directory was made."""
        return self._identity

    def load(self) -> RecoveredState:
        """Contents of the last commit beside the join entries."""
        return self._parts.load(self._manifest.commits)

    def fetch(self, read_set: ReadSet) -> WorkingSet:
        """Read what is not in memory."""
        with_id = _WITH_ID
        ids: list[str | None] = [
            event.id  # pyright: ignore[reportAttributeAccessIssue] - those in the set have one
            for event in read_set.events
            if type(event) in with_id
        ]
        self._ids = ids
        records = self._records
        records.find(ids)
        pending, early, retained = self._caches
        spoken = set(ids)
        due_s = read_set.deadline_s
        pending.cover(due_s, read_set.oldest_predictions, spoken, records)
        early.cover(due_s, read_set.oldest_labels, spoken, records)
        retained.cover(due_s, read_set.oldest_labels, spoken, records)
        reached_s = (pending.until_s, early.until_s, retained.until_s)
        return WorkingSet(records.by_id, pending.index, early.index, retained.index, reached_s)

    def apply(self, result: BatchResult) -> None:
        """Note what changed."""
        changed = self._records.changed
        changed.update(dict.fromkeys(self._ids))
        changed.update(dict.fromkeys(result.changed))
        self._events += len(result.events)
        self._dedup.add(result.dedup_added)
        if result.dropped:
            self._dedup.drop(result.dropped)
            self._codec.floor = self._dedup.floor

    def commit(self, changes: CommitBatch) -> None:
        """One batch over all families."""
        with self._database.batch() as batch:
            self._write(batch, changes)
        self._events = 0
        self._records.let_go(self._caches)

    def _write(self, batch: WriteBatch, changes: CommitBatch) -> None:
        into, manifest = self._database.into, self._manifest
        commit, number = manifest.commits + 1, manifest.entries
        into("expiry", batch)
        for cache in self._caches:
            number = cache.write(batch, number)
        into("dedup", batch)
        self._dedup.write(batch, commit)
        into("entries", batch)
        self._dedup.clear(self._records, batch, _CLEARING * self._events + 64)
        self._records.write(batch)
        pending, early, retained = (cache.since_s() for cache in self._caches)
        self._manifest = StoreManifest(
            commit,
            number,
            self._dedup.floor,
            (pending, early, retained),
            manifest.horizon_ms,
            manifest.early_horizon_ms,
            len(self._names.names),
        )
        self._parts.write(batch, changes, self._manifest)
        names = self._names
        for place, name in enumerate(names.fresh, len(names.names) - len(names.fresh)):
            batch[name_key(place)] = name.encode()
        names.fresh.clear()

    def flush(self) -> None:
        """Flush the write-ahead log; what was flushed to files that nobody can find is not durable."""
        self._database.flush()
        self._presence.require()

    def records(self) -> Mapping[str, JoinEntry]:
        """Everything, read from disk: for inspection and tests."""
        by_id, changed = self._records.by_id, self._records.changed
        found = dict(by_id)
        for key, value in self._database.items("entries"):
            id = key.decode("latin-1")  # noqa: A001 - the events' own word
            if id not in found and id not in changed:
                first = self._codec.unpack(id, value)
                if first is not None:
                    found[id] = first
        return found

    def families(self) -> Sequence[Family]:
        """Number of entries and the room they take."""
        figure = self._database.figure
        sizes = [((name,), float(figure(name, "live-sst-files-size"))) for name in FAMILIES]
        buffered = figure("entries", "cur-size-all-mem-tables")
        return [
            family("state_bytes", sizes),
            single("state_buffered_bytes", float(buffered)),
            single("state_entries", float(figure("entries", "estimate-num-keys"))),
            single("state_cache_entries", float(len(self._records.by_id))),
        ]

    def close(self) -> None:
        """Free the directory."""
        self._database.close()
