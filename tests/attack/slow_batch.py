"""A batch of Kafka records (format v2), read slowly and after the protocol's description alone.

What may be accepted beside that is said in the comments; `tests.attack.batches` holds the reader to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_HEADERS = 1_000
APPEND_TIME = 0x08


class Ends(Exception):  # noqa: N818 - it names what is the case
    """A field ends behind its frame, or a varint never does."""


@dataclass(frozen=True)
class SlowRecord:
    """As `core.ports.Record`."""

    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    fault: str | None = None
    topic: str = "events"
    partition: int = 3


@dataclass
class SlowBatch:
    """What can be read of it, and whether that is all."""

    records: list[SlowRecord] = field(default_factory=list)
    broken: bool = False
    """Its rest cannot be read, or records are missing."""
    frames: int = 0
    """Records looked at, the one included that broke it."""


def _require(condition: bool) -> None:  # noqa: FBT001
    if not condition:
        raise Ends


class Cursor:
    """Takes fields from a frame."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def varint(self) -> int:
        """Zigzag, at most ten bytes, of which 64 bits count."""
        number = 0
        for place in range(10):
            byte = self.bytes(1)[0]
            number += (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                number %= 1 << 64
                return -(number + 1) // 2 if number % 2 else number // 2
        raise Ends

    def bytes(self, count: int) -> bytes:
        if count > self.left:
            raise Ends
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    def sized(self) -> bytes | None:
        """None for any negative length."""
        length = self.varint()
        return None if length < 0 else self.bytes(length)


def slow_batch(
    body: bytes, base: int, last_delta: int, count: int, first_ms: int, max_ms: int, attributes: int
) -> SlowBatch:
    """Read the records of a batch whose checksum is right; `body` is decompressed."""
    read, all_of_it, delta = SlowBatch(), Cursor(body), -1
    while all_of_it.left:
        read.frames += 1
        try:
            length = all_of_it.varint()
            _require(length > 0)
            frame = Cursor(all_of_it.bytes(length))
            frame.bytes(1)  # attributes, of which none is in use
            stamp = first_ms + frame.varint()
            following = frame.varint()
        except Ends:
            read.broken = True
            return read
        if not delta < following <= last_delta:  # an offset twice, or one of another batch
            read.broken = True
            return read
        delta = following
        if attributes & APPEND_TIME:
            stamp = max(max_ms, 0)
        elif not -(2**63) < stamp < 2**63:
            stamp = -1
        read.records.append(_content(frame, base + delta, stamp))
    read.broken = len(read.records) < count
    return read


def _content(frame: Cursor, offset: int, stamp: int) -> SlowRecord:
    try:
        key, value, count = frame.sized(), frame.sized(), frame.varint()
        _require(0 <= count <= frame.left)
        if count > MOST_HEADERS:
            return SlowRecord(offset, stamp, fault="too_many_headers")
        headers: list[tuple[bytes, bytes | None]] = []
        for _ in range(count):
            length = frame.varint()
            _require(length >= 0)
            headers.append((frame.bytes(length), frame.sized()))
        _require(not frame.left)
    except Ends:
        return SlowRecord(offset, stamp, fault="record_structure")
    try:
        named = tuple((name.decode("utf-8"), content) for name, content in headers)
    except UnicodeDecodeError:
        return SlowRecord(offset, stamp, fault="header_encoding")
    return SlowRecord(offset, stamp, key, value, named)
