"""From older schemas to this one: what to do to a directory of each version to make it one of the next.

A step changes the database in place, in any number of batches: before the first step the directory was
copied, and until the last one is done `format.json` names the old version, so that an interrupted migration
begins again from the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from streamwatch.edge.stores.rocksdb.database import Database

Migration: TypeAlias = Callable[[Database], None]

MIGRATIONS: Final[Mapping[int, Migration]] = {}
"""By the version they start from."""
