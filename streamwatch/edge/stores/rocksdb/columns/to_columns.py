"""A state that was kept row by row, packed into columns: at the first start whose join is compiled.

The values are written beside what is there, then one batch says that they count, then what they replace is
removed. A start that was interrupted in between begins, or ends, it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

import msgspec

from streamwatch.core.fold_names import SEPARATOR
from streamwatch.core.join.compiled.durable.from_rows import RowPacker
from streamwatch.edge.stores.errors import StateRefused
from streamwatch.edge.stores.rocksdb.directory.database import Database
from streamwatch.edge.stores.rocksdb.directory.meta import all_names_of, encoded, manifest_of
from streamwatch.edge.stores.rocksdb.keys import STATE_KEY
from streamwatch.edge.stores.rocksdb.rows.codec import ChainCodec
from streamwatch.edge.stores.rocksdb.rows.names import Names

_REPLACED: Final = ("entries", "expiry", "dedup")
_AT_ONCE: Final = 1_000


def bring_into_columns(database: Database) -> None:
    """Pack the join entries of a state that has them row by row; nothing to do for any other.

    Raises
    ------
    StateRefused
        If outcomes wait in it for the order of their predictions, or models predicted in folds.
    """
    manifest = manifest_of(database)
    if manifest is None or not manifest.commits:
        return
    if not manifest.in_columns:
        if next(iter(database.items("held")), None) is not None:
            raise StateRefused(
                f"the state in {database.directory} holds outcomes for the order of their predictions, which "
                "`join.order: resolution` cannot go on from in columns: set `state.join_memory_megabytes: 0` "
                "for a start that releases them, or name another directory in `state.directory`"
            )
        known = all_names_of(database, manifest)
        if any(SEPARATOR in name for name in known):
            raise StateRefused(
                f"the state in {database.directory} has models in folds, joined row by row, which cannot go "
                "on in columns: name another directory in `state.directory` to begin anew"
            )
        _remove(database, "columns")
        names = Names(known)
        codec = ChainCodec(names, manifest.horizon_ms, manifest.early_horizon_ms, manifest.floor)
        packer = RowPacker()
        for key, value in database.items("entries"):
            if (first := codec.unpack(key.decode("latin-1"), value)) is not None:
                packer.add(first)
        _write(database, packer.values())
        with database.batch() as batch:
            database.into("meta", batch)
            batch[STATE_KEY] = encoded(msgspec.structs.replace(manifest, in_columns=True))
        database.flush()
    for family in _REPLACED:
        _remove(database, family)


def _write(database: Database, values: Iterable[tuple[bytes, bytes]]) -> None:
    left = iter(values)
    while some := list(islice(left, _AT_ONCE)):
        with database.batch() as batch:
            database.into("columns", batch)
            for key, value in some:
                batch[key] = value


def _remove(database: Database, family: str) -> None:
    keys = [key for key, _ in database.items(family)]
    for start in range(0, len(keys), _AT_ONCE):
        with database.batch() as batch:
            database.into(family, batch)
            for key in keys[start : start + _AT_ONCE]:
                del batch[key]
