"""Avro's binary encoding by hand, from the specification (1.12, "Binary Encoding"); an oracle, no library."""

from __future__ import annotations

import struct
from typing import Any

EVENT: dict[str, Any] = {
    "type": "record",
    "name": "Scored",
    "namespace": "ml",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "model", "type": "string"},
        {"name": "prediction", "type": {"type": "enum", "name": "Class", "symbols": ["legit", "fraud"]}},
        {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "scores", "type": ["null", {"type": "map", "values": "double"}], "default": None},
    ],
}
"""Schema of a prediction."""


def number(value: int) -> bytes:
    """An int or long: zigzag, seven bits a byte, least significant first."""
    rest = (value << 1) ^ (value >> 63)
    written = bytearray()
    while rest > 127:
        written.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*written, rest])


def text(value: str | bytes) -> bytes:
    encoded = value.encode() if isinstance(value, str) else value
    return number(len(encoded)) + encoded


def event(
    id_: str = "a",
    model: str = "m",
    class_: int = 1,
    timestamp: int = 1_700_000_000_000,
    scores: dict[str, float] | None = None,
) -> bytes:
    """A prediction under `EVENT`."""
    written = text(id_) + text(model) + number(class_) + number(timestamp)
    if scores is None:
        return written + number(0)
    items = b"".join(text(name) + struct.pack("<d", score) for name, score in scores.items())
    return written + number(1) + number(len(scores)) + items + number(0)


def framed(schema: int, contents: bytes) -> bytes:
    """Confluent's wire format."""
    return b"\0" + schema.to_bytes(4, "big") + contents
