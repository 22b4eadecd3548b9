"""Manifest of a state, in the family `meta`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from streamwatch.edge.stores.errors import StateDamaged
from streamwatch.edge.stores.rocksdb.directory.database import Database
from streamwatch.edge.stores.rocksdb.keys import (
    IDENTITY_KEY,
    NAME_PREFIX,
    SECTION_PREFIX,
    STATE_KEY,
    key_number,
)

SCHEMA = 4
"""Of everything on disk; a change of meaning is a new number and a migration."""


class StoreManifest(msgspec.Struct, frozen=True, array_like=True):
    """Manifest of a state as of its last commit."""

    commits: int = 0
    entries: int = 0
    """Number of the next entry of the index of deadlines."""
    floor: int = 0
    """Generations of dedup entries below this are dead."""
    since_s: tuple[int, int, int] = (0, 0, 0)
    """By kind of waiting: nothing in the index is due earlier."""
    horizon_ms: int = 0
    """Horizons the state began with: deadlines are written as differences from theirs."""
    early_horizon_ms: int = 0
    names: int = 0
    """Number of names of models and classes; 0 in a state written before this was."""
    in_columns: bool = False
    """Whether join entries are packed in the family `columns`, rather than one value per id in `entries`."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoreManifest).decode


def encoded(manifest: StoreManifest) -> bytes:
    """As it is written."""
    return _encode(manifest)


def manifest_of(database: Database) -> StoreManifest | None:
    """As the last commit left it; None before the first."""
    value = database.get("meta", STATE_KEY)
    return None if value is None else _decode(value)


def identity_of(database: Database) -> str | None:
    """Of this state, since it began."""
    value = database.get("meta", IDENTITY_KEY)
    return None if value is None else value.decode()


def names_of(database: Database) -> list[str]:
    """Models and classes, by number, as far as they are there."""
    return [value.decode() for _, value in prefixed(database, NAME_PREFIX)]


def all_names_of(database: Database, manifest: StoreManifest) -> list[str]:
    """Models and classes, by number.

    Raises
    ------
    StateDamaged
        If one is missing: what was written with its number could not be read, or would get another's name.
    """
    names: list[str] = []
    for key, value in prefixed(database, NAME_PREFIX):
        if key_number(key) != len(names):
            break
        names.append(value.decode())
    else:
        if len(names) >= manifest.names:
            return names
    raise StateDamaged(
        f"the state is damaged: a file in {database.directory} is not what was written (of "
        f"{manifest.names or 'all'} names of models and classes in commit {manifest.commits}, number "
        f"{len(names)} is missing); restore a backup of the directory, or move it away to start afresh"
    )


def sections_of(database: Database) -> dict[str, bytes]:
    """Sections of a commit, by name."""
    return {key.decode(): value for key, value in prefixed(database, SECTION_PREFIX)}


def prefixed(database: Database, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Values under keys with a prefix, which is taken off."""
    for key, value in database.items("meta", prefix):
        if not key.startswith(prefix):
            return
        yield key[len(prefix) :], value
