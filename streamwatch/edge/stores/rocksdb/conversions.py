"""Conversions of what a state holds from one schema to the next, made when it is opened for writing.

A release that changes the meaning of anything on disk raises `SCHEMA` and adds a line to `CONVERSIONS`.
States of all schemas from the first line on are opened then, through every step between. A step is one
batch, with the number of the schema that it reaches, so that a crash leaves it whole or undone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from rocksdict import WriteBatch

from streamwatch.edge.stores.rocksdb.database import Database

Conversion: TypeAlias = Callable[[Database, WriteBatch], None]
"""Reads the state, and writes its converted values to the batch; raises StateDamaged if that fails."""
CONVERSIONS: Final[Mapping[int, Conversion]] = MappingProxyType({})
"""By the schema that each converts to the one after it. None yet: nothing has been released."""
REACHED_KEY: Final = b"schema"
"""In the family `meta`: the schema that the last conversion reached. Absent where there was none."""


def is_convertible(schema: int, to: int) -> bool:
    """Return whether there is a conversion for every step from an older schema to a newer one."""
    return schema < to and all(step in CONVERSIONS for step in range(schema, to))


def convert(database: Database, schema: int, to: int) -> None:
    """Make the steps from a schema that are not made yet, each durable before the next.

    Raises
    ------
    StateDamaged
        If something of the state contradicts its schema.
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
