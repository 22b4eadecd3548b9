"""The durable store, on RocksDB: a directory that holds everything a daemon continues from."""

from streamwatch.edge.stores.rocksdb.column_store import ColumnStore
from streamwatch.edge.stores.rocksdb.spec import RocksSpec
from streamwatch.edge.stores.rocksdb.store import RocksStore

__all__ = ["ColumnStore", "RocksSpec", "RocksStore"]
