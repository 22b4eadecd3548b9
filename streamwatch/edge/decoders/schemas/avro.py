"""Avro values → JSON text, read by fastavro (Apache Avro 1.12 specification, "Binary Encoding").

What a value may cost is settled before the first is read: schemas under which a few bytes would become very
many values (arrays of items that take no bytes, records within themselves) have no reader. Under every other
schema the work is bounded by the bytes of the value.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from decimal import Decimal
from io import BytesIO
from typing import Any, Final
from uuid import UUID

import msgspec

from streamwatch.edge.decoders.schemas.schema import Schema, SchemaUnusable, Undecodable

MAX_FREE: Final = 10_000
"""Values that a record may hold beyond its bytes: nulls, and records that only group others."""
MAX_FREE_PER_ITEM: Final = 256
"""The same for each item of an array or map."""
MAX_DECIMAL_BYTES: Final = 64
_DECIMAL: Final = "streamwatch-decimal"
_UUID: Final = "streamwatch-uuid"
_SCALARS: Final[Mapping[str, tuple[int, int]]] = {
    "null": (1, 0),
    **dict.fromkeys(("boolean", "int", "long", "bytes", "string"), (0, 1)),
    "float": (0, 4),
    "double": (0, 8),
}
"""Values for no bytes, and bytes at least."""
_FAULTS: Final = (
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    MemoryError,
    struct.error,
)
"""What fastavro raises on bytes that its schema does not describe; UnicodeDecodeError is a ValueError."""


class AvroReader:
    """Reads values of one schema.

    Parameters
    ----------
    schema
        The schema, and named ones that it refers to.

    Raises
    ------
    SchemaUnusable
        It is no Avro schema, refers to what is not there, or has values that cost more than their bytes.
    """

    def __init__(self, schema: Schema) -> None:
        import fastavro  # noqa: PLC0415 - an extra
        import fastavro.read  # noqa: PLC0415
        from fastavro.schema import SchemaParseException, UnknownType  # noqa: PLC0415

        if schema.type != "AVRO":
            raise SchemaUnusable(f"expected an Avro schema, got one of type {schema.type}")
        fastavro.read.LOGICAL_READERS.update(
            {f"bytes-{_DECIMAL}": _decimal, f"fixed-{_DECIMAL}": _decimal, f"fixed-{_UUID}": _uuid}
        )
        named: dict[str, Any] = {}
        try:
            for _, text in schema.references:
                fastavro.parse_schema(_plain(json.loads(text)), named_schemas=named)
            parsed = fastavro.parse_schema(_plain(json.loads(schema.text)), named_schemas=named)
        except (UnknownType, SchemaParseException) as error:
            raise SchemaUnusable(f"is no Avro schema: {error}"[:300]) from None
        except _FAULTS as error:
            raise SchemaUnusable(f"is no Avro schema: {error}"[:300]) from None
        except RecursionError:
            raise SchemaUnusable("is nested too deeply") from None
        if _Cost(named).free(parsed) > MAX_FREE:
            raise SchemaUnusable(f"holds more than {MAX_FREE} values that take no bytes")
        self._schema: Any = parsed
        self._read = fastavro.schemaless_reader
        self._encode = msgspec.json.Encoder().encode

    def to_json(self, value: bytes, start: int, preface: bytes | None) -> bytes:
        """Write a value as JSON text; raises Undecodable."""
        del preface
        stream = BytesIO(value)
        stream.seek(start)
        try:
            text = self._encode(self._read(stream, self._schema, None))
        except _FAULTS:
            raise Undecodable from None
        if stream.tell() != len(value):
            raise Undecodable
        return text


def compile_avro(schema: Schema) -> AvroReader:
    """Make the reader of a schema; raises SchemaUnusable."""
    return AvroReader(schema)


def _plain(node: Any) -> Any:
    """Leave out logical types: timestamps and dates stay numbers; decimals and ids become text."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _plain(each) for key, each in node.items() if key not in {"logicalType", "doc", "default"}}
    kind, logical = node.get("type"), node.get("logicalType")
    if logical == "decimal" and kind in {"bytes", "fixed"}:
        plain["logicalType"] = _DECIMAL
    elif logical == "uuid" and kind == "fixed" and node.get("size") == 16:
        plain["logicalType"] = _UUID
    return plain


def _decimal(content: bytes, written: Mapping[str, Any], *_: Any) -> str:
    """A decimal as text, with as many places as the schema says."""
    if len(content) > MAX_DECIMAL_BYTES:
        raise ValueError("a decimal of too many digits")
    number = int.from_bytes(content, "big", signed=True)
    digits = tuple(map(int, str(abs(number))))
    return format(Decimal((int(number < 0), digits, -int(written.get("scale", 0)))), "f")


def _uuid(content: bytes, *_: Any) -> str:
    return str(UUID(bytes=content))


class _Cost:
    """Counts values that a schema gives for no bytes; refuses schemas in which that has no end."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._found: dict[str, tuple[int, int]] = {}
        self._open: set[str] = set()

    def free(self, node: Any) -> int:
        """Most values beyond the bytes that a value takes."""
        return self._of(node)[0]

    def _of(self, node: Any) -> tuple[int, int]:
        """Values for no bytes at most, and bytes at least."""
        if isinstance(node, list):
            return max((self._of(branch)[0] for branch in node), default=1), 1
        if isinstance(node, str):
            return _SCALARS[node] if node in _SCALARS else self._of(self._named[node])
        kind = node["type"]
        if kind in {"record", "error"}:
            return self._record(node)
        if kind in {"array", "map"}:
            self._check_items(kind, *self._of(node["items" if kind == "array" else "values"]))
        elif kind == "fixed":
            return (0, int(node["size"])) if node["size"] else (1, 0)
        elif kind != "enum":
            return self._of(kind)
        return 0, 1

    @staticmethod
    def _check_items(kind: str, free: int, least: int) -> None:
        if (kind == "array" and least == 0) or free > MAX_FREE_PER_ITEM:
            raise SchemaUnusable(f"has {kind}s whose items are more than the bytes they take")

    def _record(self, node: Mapping[str, Any]) -> tuple[int, int]:
        name = str(node["name"])
        if name in self._found:
            return self._found[name]
        if name in self._open:
            raise SchemaUnusable(f"has a record within itself ({name}): such schemas are not read")
        self._open.add(name)
        parts = [self._of(field["type"]) for field in node["fields"]]
        self._open.discard(name)
        cost = min(1 + sum(free for free, _ in parts), MAX_FREE + 1), sum(least for _, least in parts)
        self._found[name] = cost
        return cost
