"""The durable store: a directory of RocksDB with all state that a restarted daemon needs."""

from streamwatch.edge.stores.kind import StoreKind
from streamwatch.edge.stores.rocksdb.opening import RocksSpec
from streamwatch.edge.stores.rocksdb.store import RocksStore

__all__ = ["KIND", "RocksSpec", "RocksStore"]

KIND = StoreKind[RocksSpec]("rocksdb", durable=True, open=RocksStore.open)
