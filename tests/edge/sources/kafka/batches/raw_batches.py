"""Kafka record batches byte by byte, sound or not: after the protocol's description, with no client."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import cramjam

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20
ABORT, COMMIT = 0, 1


def _table() -> list[int]:
    table: list[int] = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """Castagnoli's, bit by bit in a table."""
    value = 0xFFFFFFFF
    for byte in data:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def varint(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    value &= (1 << 64) - 1
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def sized(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def record(
    delta: int,
    value: bytes | None = b"v",
    key: bytes | None = None,
    headers: Sequence[tuple[bytes, bytes | None]] = (),
    ms: int = 0,
) -> bytes:
    body = b"\x00" + varint(ms) + varint(delta) + sized(key) + sized(value) + varint(len(headers))
    body += b"".join(sized(name) + sized(content) for name, content in headers)
    return sized(body)


def compressed(codec: int, data: bytes) -> bytes:
    match codec:
        case 0:
            return data
        case 1:
            return gzip.compress(data)
        case 2:
            return bytes(cramjam.snappy.compress_raw(data))
        case 3:
            return bytes(cramjam.lz4.compress(data))
        case 4:
            return bytes(cramjam.zstd.compress(data))
        case _:
            return data


@dataclass
class RawBatch:
    """A batch of format v2; whatever is given is written, true or not."""

    records: Sequence[bytes]
    base: int = 0
    codec: int = 0
    flags: int = 0
    first_ms: int = 1_000
    max_ms: int = 2_000
    producer: int = -1
    magic: int = 2
    last_delta: int | None = None
    count: int | None = None
    body: bytes | None = None
    """Instead of the records, compressed."""
    crc: int | None = None
    length: int | None = None
    epoch: tuple[int, int] = field(default=(-1, -1))
    """Producer epoch and first sequence number."""

    def bytes(self) -> bytes:
        body = compressed(self.codec, b"".join(self.records)) if self.body is None else self.body
        count = len(self.records) if self.count is None else self.count
        last_delta = len(self.records) - 1 if self.last_delta is None else self.last_delta
        checked = struct.pack(
            ">hiqqqhii",
            self.codec | self.flags,
            last_delta,
            self.first_ms,
            self.max_ms,
            self.producer,
            *self.epoch,
            count,
        )
        checked += body
        crc = crc32c(checked) if self.crc is None else self.crc
        length = len(checked) + 9 if self.length is None else self.length
        return struct.pack(">qiibI", self.base, length, 0, self.magic, crc) + checked


def of(values: Sequence[bytes | None], base: int = 0, **choices: object) -> RawBatch:
    """A sound batch of these values."""
    return RawBatch([record(i, value) for i, value in enumerate(values)], base, **choices)  # type: ignore[arg-type]


def marker(kind: int, base: int, producer: int) -> bytes:
    """The control batch that ends a transaction."""
    content = record(0, b"\x00\x00\x00\x00\x00\x00", struct.pack(">hh", 0, kind))
    return RawBatch([content], base, flags=CONTROL | TRANSACTIONAL, producer=producer).bytes()


def message(
    offset: int,
    value: bytes | None,
    key: bytes | None = None,
    magic: int = 1,
    attributes: int = 0,
    ms: int = 1_500,
) -> bytes:
    """A message of format v0 or v1."""
    content = struct.pack(">bb", magic, attributes) + (struct.pack(">q", ms) if magic else b"")
    for part in (key, value):
        content += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(content) + 4, zlib.crc32(content)) + content
