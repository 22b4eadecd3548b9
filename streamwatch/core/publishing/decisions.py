"""Decisions about notifications, passed in the ledger from one holder (publishing replica) to the next.

Notifications depend on the host's clock and on when commits are made, so replicas cannot decide them
independently. The holder decides, and writes its decisions to the ledger with its outcomes; the next holder
continues from them, as a restart continues from its state.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import msgspec
import xxhash

from streamwatch.core.records.events import Name

PART_BYTES: Final = 262_144
"""Most bytes of decisions in one record of the ledger: below `max.message.bytes` of any topic."""
VERSION: Final = 1
"""Version of the encoding of `Decisions`; the alarm book and pacing in them have versions of their own."""


class DecisionsError(ValueError):
    """Decisions in the ledger that cannot be decoded."""


class Decisions(msgspec.Struct, frozen=True, array_like=True):
    """State of all decisions up to a commit of the holder."""

    event: int
    """Number of the last alarm that was considered."""
    retired: int
    """Number of the last retirement of a model that was considered."""
    alarms: bytes
    """Book of alarms (`AlarmBook.state`)."""
    pacing: bytes
    """Notifications that wait to be issued (`Pacing.state`)."""
    outbox: dict[Name, bytes]
    """Entries of the outbox by id: notifications not known to be delivered yet."""
    comparisons: list[tuple[Name, Name, int]]
    """Verdicts, except open ones, of each comparison's latest event, as (champion, challenger, verdict)."""


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(Decisions)
_WITH_VERSION = msgspec.msgpack.Decoder(tuple[int, msgspec.Raw])


def to_parts(decisions: Decisions) -> list[bytes]:
    """Encode decisions as values of records of `PART_BYTES` or less; equal decisions give equal bytes."""
    text = zlib.compress(_ENCODER.encode((VERSION, decisions)), 1)
    return [text[at : at + PART_BYTES] for at in range(0, len(text), PART_BYTES)]


def parts_digest(parts: Sequence[bytes]) -> int:
    """Compute the 64-bit XXH3 of all parts together."""
    return xxhash.xxh3_64_intdigest(b"".join(parts))


def from_parts(parts: Sequence[bytes]) -> Decisions:
    """Decode what `to_parts` gave.

    Raises
    ------
    DecisionsError
        If the parts are not encoded decisions, are of another version, or one is missing.
    """
    try:
        version, encoded = _WITH_VERSION.decode(zlib.decompress(b"".join(parts)))
        if version != VERSION:
            raise DecisionsError(f"expected decisions of version {VERSION} in the ledger, got {version}")
        return _DECODER.decode(encoded)
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DecisionsError(f"decisions in the ledger cannot be read: {error}") from error
