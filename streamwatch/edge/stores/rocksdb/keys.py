"""Keys on disk: numbers big-endian, so that they sort; ids are their digest."""

from __future__ import annotations

from struct import Struct
from typing import Final

DIGEST_BYTES: Final = 16

_EXPIRY = Struct(">BQQ")
_DEDUP = Struct(">IQ")
_NUMBER = Struct(">Q")

STATE_KEY: Final = b"state"
IDENTITY_KEY: Final = b"identity"
NAME_PREFIX: Final = b"name/"
SECTION_PREFIX: Final = b"section/"


def split_digests(value: bytes) -> list[str]:
    """The ids in a value of concatenated digests."""
    ids = value.decode("latin-1")
    return [ids[start : start + DIGEST_BYTES] for start in range(0, len(ids), DIGEST_BYTES)]


def expiry_key(kind: int, deadline_s: int, number: int) -> bytes:
    """Entries sort by kind, deadline, and the order they were written in."""
    return _EXPIRY.pack(kind, deadline_s, number)


def expiry_parts(key: bytes) -> tuple[int, int, int]:
    """Kind, deadline and number of an entry."""
    kind, deadline_s, number = _EXPIRY.unpack(key)
    return kind, deadline_s, number


def dedup_key(generation: int, commit: int) -> bytes:
    """Dedup keys sort by generation."""
    return _DEDUP.pack(generation, commit)


def dedup_parts(key: bytes) -> tuple[int, int]:
    """Generation and commit."""
    generation, commit = _DEDUP.unpack(key)
    return generation, commit


def number_key(number: int) -> bytes:
    """A number that sorts."""
    return _NUMBER.pack(number)


def key_number(key: bytes) -> int:
    """The number of a `number_key`."""
    return int.from_bytes(key, "big")


def name_key(number: int) -> bytes:
    """Of a model or class."""
    return NAME_PREFIX + _NUMBER.pack(number)
