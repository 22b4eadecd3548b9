"""Decisions about notifications as one replica leaves them to the next: through the ledger.

What is announced depends on the host's clock and on where commits fall, so replicas do not decide each by
itself. The holder decides, and writes with its outcomes what it has decided: the next one goes on from there,
as a restart goes on from its state.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import msgspec
import xxhash

from streamwatch.core.events import Name

PART_BYTES: Final = 262_144
"""Bytes of a record of the ledger that is part of a decision: below `max.message.bytes` of any topic."""


class DecisionsError(ValueError):
    """Decisions in the ledger are not what a holder writes."""


class Decisions(msgspec.Struct, frozen=True, array_like=True):
    """Everything that was decided up to a commit of the holder."""

    event: int
    """Number of the last alarm that was considered."""
    retired: int
    """Number of the last retirement of a model that was considered."""
    alarms: bytes
    """The book of alarms (`AlarmBook.state`)."""
    pacing: bytes
    """Notifications that wait to be issued (`Pacing.state`)."""
    outbox: dict[Name, bytes]
    """Notifications that receivers do not have yet, as far as it is known, by id."""
    comparisons: list[tuple[Name, Name, int]]
    """Verdicts of comparisons last written."""


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(Decisions)


def to_parts(decisions: Decisions) -> list[bytes]:
    """Encode decisions as values of as many records as they take; equal decisions give equal bytes."""
    text = zlib.compress(_ENCODER.encode(decisions), 1)
    return [text[at : at + PART_BYTES] for at in range(0, len(text), PART_BYTES)]


def parts_digest(parts: Sequence[bytes]) -> int:
    """Digest of parts, XXH3 with 64 bits."""
    return xxhash.xxh3_64_intdigest(b"".join(parts))


def from_parts(parts: Sequence[bytes]) -> Decisions:
    """Decode what `to_parts` gave.

    Raises
    ------
    DecisionsError
        If it is none of this version, or a part is missing.
    """
    try:
        return _DECODER.decode(zlib.decompress(b"".join(parts)))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise DecisionsError(f"decisions in the ledger cannot be read: {error}") from error
