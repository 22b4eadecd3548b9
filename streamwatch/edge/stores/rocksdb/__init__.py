"""The durable store, on RocksDB: a directory that holds everything a daemon continues from."""

from streamwatch.edge.stores.kind import StoreKind
from streamwatch.edge.stores.rocksdb.spec import RocksSpec
from streamwatch.edge.stores.rocksdb.store import RocksStore

__all__ = ["KIND", "RocksSpec", "RocksStore"]

KIND = StoreKind[RocksSpec]("rocksdb", durable=True, open=RocksStore.open)
