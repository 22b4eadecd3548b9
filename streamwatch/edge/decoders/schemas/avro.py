"""Avro values → JSON text, read by fastavro (Apache Avro 1.12 specification, "Binary Encoding").

The cost of values is bounded before the first is read. Schemas under which a few bytes may become very many
values or very long text (arrays of items that take no bytes, enums with huge symbols, decimals of a million
digits, recursive records) are refused. Under every other schema, values and JSON are bounded by the record's
bytes: `VALUES_PER_BYTE`, `TEXT_PER_BYTE`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from io import BytesIO
from secrets import token_bytes
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import msgspec

from streamwatch.edge.decoders.schemas.schema import Schema, SchemaUnusable, Undecodable
from streamwatch.edge.decoders.transcoding.avro import MAX_DECIMAL_BYTES, AvroTranscoder, avro_program
from streamwatch.edge.decoders.transcoding.wanted import Bound, Transcoder, Wanted

VALUES_PER_BYTE: Final = 3
"""Values per byte of a record at most, besides `MAX_FREE_VALUES`."""
MAX_FREE_VALUES: Final = 1_000
"""Values of a record that take no bytes, at most: nulls, and records that only group others."""
TEXT_PER_BYTE: Final = 128
"""Bytes of JSON per byte of a record at most, besides `MAX_FREE_TEXT`."""
MAX_FREE_TEXT: Final = 16_384
"""Bytes of JSON of a record at most that do not grow with its bytes, such as names of fields."""
MAX_DEPTH: Final = 64
"""Depth of nested types at most, named ones included."""
MAX_NODES: Final = 20_000
"""Types, fields and symbols at most, in a schema and all that it refers to."""
MAX_SCALE: Final = 1_000
"""Scale and precision of a decimal at most: every value is written with that many digits, however short."""
_LARGEST_FIXED: Final = 2**31 - 1
_TOO_DEEP: Final = f"is nested more than {MAX_DEPTH} types deep"
_encoded: Final = msgspec.json.Encoder().encode
_lines: Final = msgspec.json.Encoder().encode_lines
_END: Final = "__streamwatch_end__"
_END_BYTES: Final = 16
"""Random bytes after each of many values: a value that is read past or short of its end misses them."""
_DECIMAL: Final = "streamwatch-decimal"
_UUID: Final = "streamwatch-uuid"
_SCALARS: Final[Mapping[str, tuple[int, int]]] = {
    "null": (0, 4),
    "boolean": (1, 5),
    "int": (1, 11),
    "long": (1, 20),
    "float": (4, 26),
    "double": (8, 26),
    "bytes": (1, 2),
    "string": (1, 2),
}
"""Type → (bytes of a value at least, bytes of its JSON at most); text and bytes grow with their contents."""
_FAULTS: Final = (
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    MemoryError,
    RecursionError,
    struct.error,
)
"""Exceptions of fastavro for bytes that do not fit the schema; UnicodeDecodeError is a ValueError."""


class AvroReader:
    """`ValueReader` of one Avro schema.

    Parameters
    ----------
    schema
        The schema, and the named ones that it refers to.

    Raises
    ------
    SchemaUnusable
        It is no Avro schema, refers to missing ones, or the cost of its values has no bound.
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
        plain = _Plain()
        try:
            for _, text in schema.references:
                fastavro.parse_schema(plain.of(json.loads(text)), named_schemas=named)
            field = {"name": "value", "type": plain.of(json.loads(schema.text))}
            # In a record, as a union by itself is parsed anew for every value.
            whole = {"type": "record", "name": "__streamwatch_value__", "fields": [field]}
            parsed: Any = fastavro.parse_schema(whole, named_schemas=named)
            top: Any = parsed["fields"][0]["type"]
            self._is_record = isinstance(top, dict) and top["type"] == "record"
            fields = top["fields"] if self._is_record else parsed["fields"]
            end = {"type": "fixed", "name": "__streamwatch_fixed__", "size": _END_BYTES}
            each = {
                "type": "record",
                "name": "__streamwatch_each__",
                "fields": [*fields, {"name": _END, "type": end}],
            }
            items = {"name": "values", "type": {"type": "array", "items": each}}
            many = {"type": "record", "name": "__streamwatch_values__", "fields": [items]}
            self._many: Any = fastavro.parse_schema(many, named_schemas=named)
        except SchemaUnusable:
            raise
        except (UnknownType, SchemaParseException, *_FAULTS) as error:
            raise SchemaUnusable(f"is no Avro schema: {error}"[:300]) from None
        self._named, self._top = named, top
        _Cost(named).check(top)
        self._schema = parsed
        self._read: Callable[..., Any] = fastavro.schemaless_reader

    def to_json(self, value: bytes, start: int, preface: bytes | None) -> bytes:
        """Convert a value to JSON text; raises Undecodable."""
        del preface
        stream = BytesIO(value)
        stream.seek(start)
        try:
            text = _encoded(self._read(stream, self._schema, None)["value"])
        except _FAULTS:
            raise Undecodable from None
        if stream.tell() != len(value):
            raise Undecodable
        return text

    def transcoder(self, wanted: Wanted) -> Transcoder | None:
        """Make the compiled writer of wanted parts; None where there is no `avro_program`."""
        program = avro_program(self._top, self._named, wanted)
        bound = Bound(MAX_FREE_TEXT, TEXT_PER_BYTE)
        return None if program is None else AvroTranscoder(program, bound)

    def all_to_json(self, contents: Sequence[bytes]) -> Sequence[bytes] | None:
        """Read values as items of one array, each followed by random bytes that confirm its end.

        None where any value is invalid.
        """
        end = token_bytes(_END_BYTES)
        written = b"".join(
            [_long(len(contents)), *(part for each in contents for part in (each, end)), b"\0"]
        )
        stream = BytesIO(written)
        try:
            found = self._read(stream, self._many, None)["values"]
            ends = [each.pop(_END) for each in found]
            if stream.tell() != len(written) or ends.count(end) != len(contents):
                return None
            texts = _lines(found if self._is_record else [each["value"] for each in found]).split(b"\n")
        except _FAULTS:
            return None
        return texts[:-1]


def _long(number: int) -> bytes:
    """Encode a count as an Avro long: zigzag, in groups of seven bits."""
    left, written = 2 * number, bytearray()
    while left > 127:
        written.append(left & 127 | 128)
        left >>= 7
    return bytes((*written, left))


class _Plain:
    """Copies a schema, reduced to what readers use: names, types and sizes, each checked for its type.

    Logical types are dropped, so that timestamps and dates stay numbers; decimals and UUIDs become text.
    """

    def __init__(self) -> None:
        self._nodes = 0

    def of(self, node: Any, depth: int = 0) -> Any:
        """Copy one type; raises SchemaUnusable."""
        self._count(1)
        if depth > MAX_DEPTH:
            raise SchemaUnusable(_TOO_DEEP)
        if isinstance(node, str):
            return node
        if isinstance(node, list):
            return [self.of(each, depth + 1) for each in cast("list[Any]", node)]
        if not isinstance(node, dict):
            raise SchemaUnusable(f"is no Avro schema: expected a type, got {node!r}"[:300])
        whole = cast("dict[str, Any]", node)
        match whole.get("type"):
            case "record" | "error" | "enum" | "fixed":
                return self._named(whole, depth)
            case "array" | "map" as kind:
                inner = "items" if kind == "array" else "values"
                return {"type": kind, inner: self.of(whole.get(inner), depth + 1)}
            case "bytes" as kind:
                return {"type": kind} | _logical(whole)
            case kind:
                return self.of(kind, depth + 1)

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise SchemaUnusable(f"has more than {MAX_NODES} types, fields and symbols")

    def _field(self, field: Any, depth: int) -> dict[str, Any]:
        if not isinstance(field, dict):
            raise SchemaUnusable(f"is no Avro schema: expected a field, got {field!r}"[:300])
        found = cast("dict[str, Any]", field)
        return {"name": _needed(found, "name", str), "type": self.of(found.get("type"), depth + 1)}

    def _named(self, node: Mapping[str, Any], depth: int) -> dict[str, Any]:
        named = {"type": node["type"], "name": _needed(node, "name", str)}
        if node.get("namespace") is not None:
            named["namespace"] = _needed(node, "namespace", str)
        match node["type"]:
            case "enum":
                symbols = _needed(node, "symbols", list)
                self._count(len(symbols))
                return named | {"symbols": [_text(each) for each in symbols]}
            case "fixed":
                return named | {"size": _number(node, "size", maximum=_LARGEST_FIXED)} | _logical(node)
            case _:
                fields = _needed(node, "fields", list)
                return named | {"fields": [self._field(each, depth) for each in fields]}


def _needed(node: Mapping[str, Any], key: str, kind: type) -> Any:
    found = node.get(key)
    if not isinstance(found, kind):
        raise SchemaUnusable(f"is no Avro schema: {key}: expected {kind.__name__}, got {found!r}"[:300])
    return found


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise SchemaUnusable(f"is no Avro schema: expected a symbol, got {found!r}"[:300])
    return found


def _number(node: Mapping[str, Any], key: str, default: Any = None, *, maximum: int) -> int:
    found = node.get(key, default)
    if type(found) is not int or not 0 <= found <= maximum:
        shown = str(found) if isinstance(found, float) else repr(found)[:100]
        raise SchemaUnusable(f"{key}: expected a whole number from 0 to {maximum}, got {shown}")
    return found


def _logical(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that make bytes or a fixed a decimal or a UUID; empty for others."""
    match node.get("logicalType"), node.get("type"), node.get("size"):
        case "decimal", _, _:
            _number(node, "precision", 1, maximum=MAX_SCALE)
            return {"logicalType": _DECIMAL, "scale": _number(node, "scale", 0, maximum=MAX_SCALE)}
        case "uuid", "fixed", 16:
            return {"logicalType": _UUID}
        case _:
            return {}


def _decimal(content: bytes, written: Mapping[str, Any], *_: Any) -> str:
    """Write a decimal as text, with as many decimals as its scale."""
    if len(content) > MAX_DECIMAL_BYTES:
        raise ValueError("a decimal of too many digits")
    number = int.from_bytes(content, "big", signed=True)
    digits = tuple(map(int, str(abs(number))))
    return format(Decimal((int(number < 0), digits, -int(written.get("scale", 0)))), "f")


def _uuid(content: bytes, *_: Any) -> str:
    return str(UUID(bytes=content))


class _Excess(NamedTuple):
    """Cost of a value at most, beyond the allowance per byte of `VALUES_PER_BYTE` and `TEXT_PER_BYTE`.

    The excess of a record is the sum over its fields. A type without positive excess may be repeated without
    limit, because each repetition takes bytes.
    """

    values: int
    text: int
    height: int = 0
    """Depth of types nested in it."""


class _Cost:
    """Computes the highest cost of a schema's values; refuses schemas without a bound."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._found: dict[str, _Excess] = {}
        self._open: set[str] = set()

    def check(self, node: Any) -> None:
        """Raise SchemaUnusable where few bytes may become very many values, or very long text."""
        excess = self._of(node, 0)
        if excess.values > MAX_FREE_VALUES:
            raise SchemaUnusable(f"holds more than {MAX_FREE_VALUES} values that take no bytes")
        if excess.text > MAX_FREE_TEXT:
            raise SchemaUnusable(f"becomes more than {MAX_FREE_TEXT} bytes of text for no bytes")

    def _of(self, node: Any, depth: int) -> _Excess:
        if depth > MAX_DEPTH:
            raise SchemaUnusable(_TOO_DEEP)
        if isinstance(node, list):
            branches = [self._of(branch, depth + 1) for branch in cast("list[Any]", node)]
            return _Excess(
                max((each.values for each in branches), default=0) - VALUES_PER_BYTE,
                max((each.text for each in branches), default=0) - TEXT_PER_BYTE,
                max((each.height for each in branches), default=0) + 1,
            )
        if isinstance(node, str):
            return _beyond(*_SCALARS[node]) if node in _SCALARS else self._of_name(node, depth)
        kind = node["type"]
        match kind:
            case "record" | "error" | "enum" | "fixed":
                return self._of_name(str(node["name"]), depth)
            case "array" | "map":
                items = self._of(node["items" if kind == "array" else "values"], depth + 1)
                key = _beyond(1, 3) if kind == "map" else _Excess(0, 0)
                if items.values + key.values > 0 or items.text + key.text > 0:
                    raise SchemaUnusable(f"has {kind}s whose items are more than the bytes they take")
                return _beyond(1, 2)._replace(height=items.height + 1)
            case "bytes" if "scale" in node:
                return _beyond(1, node["scale"] + 4)
            case _:
                return self._of(kind, depth)

    def _of_name(self, name: str, depth: int) -> _Excess:
        found = self._found.get(name)
        if found is None:
            if name in self._open:
                raise SchemaUnusable(f"has a record within itself ({name}): such schemas are not read")
            self._open.add(name)
            found = self._found[name] = self._of_named(self._named[name], depth)
            self._open.discard(name)
        if depth + found.height > MAX_DEPTH:
            raise SchemaUnusable(_TOO_DEEP)
        return found

    def _of_named(self, node: Mapping[str, Any], depth: int) -> _Excess:
        match node["type"]:
            case "enum":
                return _beyond(1, 2 + max((len(_encoded(symbol)) for symbol in node["symbols"]), default=0))
            case "fixed":
                return _beyond(node["size"], node.get("scale", 0) + 38)
            case _:
                fields = [self._of(field["type"], depth + 1) for field in node["fields"]]
                names = sum(len(_encoded(field["name"])) + 2 for field in node["fields"])
                return _Excess(
                    1 + sum(each.values for each in fields),
                    3 + names + sum(each.text for each in fields),
                    max((each.height for each in fields), default=0) + 1,
                )


def _beyond(least: int, text: int) -> _Excess:
    """Excess of one value that takes `least` bytes or more, and `text` bytes of JSON."""
    return _Excess(1 - VALUES_PER_BYTE * least, text + 1 - TEXT_PER_BYTE * least)
