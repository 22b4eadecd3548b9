"""One record as places and what stands there, in the notation of mappings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from streamwatch.core.ports import Record

Scalar: TypeAlias = str | int | float | bool
MAX_DEPTH: Final = 10
MAX_PLACES: Final = 400
"""Places of one record that are looked at."""
MAX_ELEMENTS: Final = 2
"""First elements of an array that are looked at."""
_FRAME: Final = 5
"""Bytes before the content: a zero byte and the number of a schema."""


@dataclass(slots=True)
class FlatRecord:
    """A record's scalars by place (`value.a.b`, `key`, `header:x`).

    `unaddressable` are names of fields that no mapping can write.
    """

    record: Record
    scalars: dict[str, Scalar] = field(default_factory=dict[str, Scalar])
    arrays: set[str] = field(default_factory=set[str])
    """Places of arrays."""
    unaddressable: set[str] = field(default_factory=set[str])
    fault: str = ""
    """Reason why the value cannot be looked into; empty if it can."""

    @property
    def record_ms(self) -> int:
        """Record time in milliseconds; -1 where it has none."""
        return self.record.timestamp


def flatten(record: Record) -> FlatRecord:
    """Lay out key, headers and value of one record."""
    flat = FlatRecord(record)
    if (key := _text(record.key)) is not None:
        flat.scalars["key"] = key
    for name, content in record.headers:
        if (text := _text(content)) is not None and name:
            flat.scalars[f"header:{name}"] = text
    flat.fault = record.fault or _fill(flat, record.value)
    return flat


def framed_schema(value: bytes) -> int | None:
    """Number of the schema in the wire format of a schema registry, a zero byte and four more; else None."""
    return int.from_bytes(value[1:_FRAME]) if len(value) > _FRAME and value[0] == 0 else None


def _fill(flat: FlatRecord, value: bytes | None) -> str:
    if value is None:
        return "null"
    if (schema := framed_schema(value)) is not None:
        return f"framed by a schema registry (schema {schema})"
    try:
        content: Any = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "not JSON"
    if isinstance(content, str) and content.lstrip().startswith("{"):
        return "JSON inside a JSON string"
    if not isinstance(content, dict):
        return f"JSON, but {_kind(content)} and not an object"
    for place, scalar in _walk("value", content, flat, 0):
        if len(flat.scalars) >= MAX_PLACES:
            break
        flat.scalars[place] = scalar
    return ""


def _walk(place: str, content: Any, flat: FlatRecord, depth: int) -> Iterator[tuple[str, Scalar]]:
    if isinstance(content, dict) and depth < MAX_DEPTH:
        for name, inner in content.items():
            if not name or not name.isprintable() or set(name) & _UNWRITABLE:
                flat.unaddressable.add(f"{place}: {name!r}")
            else:
                yield from _walk(f"{place}.{name}", inner, flat, depth + 1)
    elif isinstance(content, list) and depth < MAX_DEPTH:
        flat.arrays.add(place)
        for at, inner in enumerate(content[:MAX_ELEMENTS]):
            yield from _walk(f"{place}[{at}]", inner, flat, depth + 1)
    elif isinstance(content, str | int | float):
        yield place, content


_UNWRITABLE: Final = frozenset('.[]"\\')


def _text(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def _kind(content: Any) -> str:
    match content:
        case list():
            return "an array"
        case str():
            return "a text"
        case _:
            return "a single value"
