"""State on local disk of a compiled join: one packed value, or a few, per commit.

The join has its entries in memory, or in cold runs (`runs`); what a commit writes of them are values whose
keys and contents are the core's business (`core.join.compiled.durable`). They lie in the same write batch as
everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streamwatch.core.commit.batch import CommitBatch, RecoveredState
from streamwatch.core.join.entry import JoinEntry
from streamwatch.core.join.working_set import BatchResult, ReadSet, WorkingSet
from streamwatch.core.metrics import family, single
from streamwatch.core.series import Family
from streamwatch.edge.stores.memory import nothing_lent
from streamwatch.edge.stores.rocksdb.columns.runs import RocksRuns
from streamwatch.edge.stores.rocksdb.columns.to_columns import bring_into_columns
from streamwatch.edge.stores.rocksdb.commit_parts import CommitParts
from streamwatch.edge.stores.rocksdb.directory.database import FAMILIES, Database
from streamwatch.edge.stores.rocksdb.directory.meta import StoreManifest, identity_of, manifest_of
from streamwatch.edge.stores.rocksdb.directory.opening import closed_on_failure, open_database
from streamwatch.edge.stores.rocksdb.directory.presence import Presence
from streamwatch.edge.stores.rocksdb.spec import RocksSpec


class ColumnStore:
    """A `Store` over RocksDB that lends nothing; `open` it in a thread, it may take seconds."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._presence = Presence(database.directory)
        self._manifest = manifest_of(database) or StoreManifest()
        self._identity = identity_of(database) or ""
        self._parts = CommitParts(database)
        self._runs = RocksRuns(database)
        self._lent = nothing_lent()

    @classmethod
    def open(cls, spec: RocksSpec) -> ColumnStore:
        """Open the directory, or begin a state in it; one that was kept row by row is packed first.

        Raises
        ------
        StateRefused
            If it cannot be used as it is.
        StateFailed
            If the disk fails.
        """
        database = open_database(spec)
        with closed_on_failure(database):
            bring_into_columns(database)
            return cls(database)

    @property
    def durable(self) -> bool:
        """State survives."""
        return True

    @property
    def identity(self) -> str:
        """Given when the directory was made."""
        return self._identity

    def load(self) -> RecoveredState:
        """Contents of the last commit; the entries are read as they are iterated."""
        return self._parts.load(self._manifest.commits, self._columns(), self._runs)

    def _columns(self) -> Iterator[tuple[bytes, bytes]]:
        return self._database.items("columns")

    def fetch(self, read_set: ReadSet) -> WorkingSet:
        """Lend nothing: the join has everything."""
        del read_set
        return self._lent

    def apply(self, result: BatchResult) -> None:
        """Do nothing: what changed comes with the commit."""

    def commit(self, changes: CommitBatch) -> None:
        """One batch over all families."""
        manifest = StoreManifest(
            self._manifest.commits + 1,
            horizon_ms=self._manifest.horizon_ms,
            early_horizon_ms=self._manifest.early_horizon_ms,
            in_columns=True,
        )
        with self._database.batch() as batch:
            self._database.into("columns", batch)
            for key, value in changes.columns.items():
                if value is None:
                    del batch[key]
                else:
                    batch[key] = value
            if changes.runs is not None:
                self._runs.write_changes(changes.runs, batch)
            self._parts.write(batch, changes, manifest)
        self._manifest = manifest

    def flush(self) -> None:
        """Flush the write-ahead log; what was flushed to files that nobody can find is not durable."""
        self._database.flush()
        self._presence.require()

    def records(self) -> Mapping[str, JoinEntry]:
        """No chains: the join has them."""
        return {}

    def families(self) -> Sequence[Family]:
        """Room that everything takes; the join tells how many entries there are."""
        figure = self._database.figure
        sizes = [((name,), float(figure(name, "live-sst-files-size"))) for name in FAMILIES]
        return [
            family("state_bytes", sizes),
            single("state_buffered_bytes", float(figure("columns", "cur-size-all-mem-tables"))),
        ]

    def close(self) -> None:
        """Free the directory."""
        self._database.close()
