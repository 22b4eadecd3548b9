"""The durable store, on RocksDB: a directory that holds everything a daemon continues from."""

from streamwatch.edge.stores.kind import StoreKind
from streamwatch.edge.stores.rocksdb.column_store import ColumnStore
from streamwatch.edge.stores.rocksdb.spec import RocksSpec
from streamwatch.edge.stores.rocksdb.store import RocksStore

__all__ = ["KIND", "ColumnStore", "RocksSpec", "RocksStore"]


def open_state(spec: RocksSpec) -> RocksStore | ColumnStore:
    """Open a directory, by the join it is for; raises StateRefused and StateFailed."""
    return ColumnStore.open(spec) if spec.in_columns else RocksStore.open(spec)


KIND = StoreKind[RocksSpec]("rocksdb", durable=True, open=open_state)
