"""Format of a bucket's log: its state at some time (the base) in parts, then the input of each feed since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from streamwatch.core.records.events import Name


class BatchInput(msgspec.Struct, array_like=True, frozen=True, tag=0):
    """Arguments of one feed, with which a bucket repeats it."""

    bucket: Name
    batch: int
    end_ms: int | None
    pieces: Sequence[bytes]


class BasePart(msgspec.Struct, array_like=True, frozen=True, tag=1):
    """Part of a bucket's encoded state."""

    bucket: Name
    number: int
    count: int
    """Number of parts of the base."""
    body: bytes


Entry: TypeAlias = BatchInput | BasePart

_ENCODER: Final = msgspec.msgpack.Encoder()
_ENTRIES: Final = msgspec.msgpack.Decoder(Entry)
_PART_BYTES: Final = 4_000_000
"""Bytes of the items of a part of a base, above which it ends."""


def encode_entry(entry: Entry) -> bytes:
    """Encode an entry of the log."""
    return _ENCODER.encode(entry)


def decode_entry(delta: bytes, bucket: str) -> Entry:
    """Decode an entry of the log.

    Raises
    ------
    ValueError
        If the entry is of another bucket; as msgspec.DecodeError, if the bytes are not an entry.
    """
    entry = _ENTRIES.decode(delta)
    if entry.bucket != bucket:
        raise ValueError(f"expected an entry of bucket {bucket}, got one of {entry.bucket}")
    return entry


def encode_base(bucket: str, state: object, items: Iterable[tuple[object, int]]) -> list[bytes]:
    """Encode a base as entries of the log: a state, and its items, which are given with their sizes."""
    bodies = [_ENCODER.encode(state)]
    part: list[object] = []
    size = 0
    for item, item_bytes in items:
        part.append(item)
        size += item_bytes
        if size > _PART_BYTES:
            bodies.append(_ENCODER.encode(part))
            part, size = [], 0
    if part:
        bodies.append(_ENCODER.encode(part))
    count = len(bodies)
    return [encode_entry(BasePart(bucket, number, count, body)) for number, body in enumerate(bodies)]


class BaseReader:
    """Checks that a base is complete, in order, and before every feed of the log.

    Parameters
    ----------
    bucket
        Name of the bucket.
    """

    __slots__ = ("_bucket", "_count", "_is_over", "_next")

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._next = self._count = 0
        self._is_over = False

    def take(self, part: BasePart) -> None:
        """Record a part; raises ValueError if it is not the next one, or follows a feed."""
        if self._is_over:
            raise ValueError(
                f"expected the base of bucket {self._bucket} first, got part {part.number} after a feed"
            )
        is_next = part.number == self._next < part.count
        if not is_next or (self._next and part.count != self._count):
            raise ValueError(
                f"expected part {self._next} of the base of bucket {self._bucket}, got part {part.number} "
                f"of {part.count}"
            )
        self._next, self._count = part.number + 1, part.count

    def end(self) -> None:
        """End the base, before each feed; raises ValueError if parts are missing."""
        self._is_over = True
        if self._next < self._count:
            raise ValueError(
                f"expected {self._count} parts of the base of bucket {self._bucket}, got {self._next}"
            )
