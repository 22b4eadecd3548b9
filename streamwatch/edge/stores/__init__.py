"""Stores of the join's records between batches: one file or package per kind, looked up by name.

===========  =========================================================================================
``memory``   this process; a restart reads the topics again
``rocksdb``  a directory on local disk, with everything a daemon continues from
===========  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from streamwatch.edge.stores import memory, rocksdb
from streamwatch.edge.stores.kind import StoreKind

__all__ = ["KINDS", "StoreKind"]

KINDS: Mapping[str, StoreKind[Any]] = MappingProxyType(
    {module.KIND.name: module.KIND for module in (memory, rocksdb)}
)
"""Stores by name."""
