"""Conversions of a state's contents from one schema to the next, made when it is opened for writing.

A release that changes the meaning of anything on disk raises `SCHEMA` and adds a line to `CONVERSIONS`. A
state of any schema that `CONVERSIONS` begins with or has later is then converted step by step. A step is one
write batch that includes the number of the schema it reaches, so that a crash leaves it done or undone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from rocksdict import WriteBatch

from streamwatch.edge.stores.rocksdb.database import Database

Conversion: TypeAlias = Callable[[Database, WriteBatch], None]
"""Reads the state, adds converted values to the batch; raises StateDamaged for invalid contents."""
CONVERSIONS: Final[Mapping[int, Conversion]] = MappingProxyType({})
"""Schema → the conversion from it to the next schema. Empty: nothing has been released yet."""
REACHED_KEY: Final = b"schema"
"""Key in the family `meta` of the schema that the last conversion reached; absent before any conversion."""


def is_convertible(schema: int, to: int) -> bool:
    """Tell whether every step from the older schema `schema` to the newer schema `to` has a conversion."""
    return schema < to and all(step in CONVERSIONS for step in range(schema, to))


def convert(database: Database, schema: int, to: int) -> None:
    """Convert a state from `schema` to `to`, step by step, resuming after the last step that was flushed.

    Raises
    ------
    StateDamaged
        If contents of the state do not fit its schema.
    StateFailed
        If the disk fails.
    """
    reached = database.get("meta", REACHED_KEY)
    for step in range(max(schema, 0 if reached is None else int(reached)), to):
        with database.batch() as batch:
            CONVERSIONS[step](database, batch)
            database.into("meta", batch)
            batch[REACHED_KEY] = str(step + 1).encode()
        database.flush()
