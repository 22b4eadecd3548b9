"""Finds contents in records that were read whole: trees of objects and arrays, beside key and headers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import msgspec

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.field_locations import text_outside
from streamwatch.edge.decoders.mapping import (
    Constant,
    FieldLocation,
    InArray,
    InHeader,
    InKey,
    InTopic,
    InValue,
)
from streamwatch.edge.decoders.places import Step


@dataclass(frozen=True, slots=True)
class Content:
    """A record and what was read of its value; None where it has none, or none that can be read."""

    record: Record
    tree: Any = None


_JSON: Final = msgspec.json.Decoder()
Lookup: TypeAlias = Callable[[Content], Any]


def walk(here: Any, steps: Sequence[Step]) -> Any:
    """The content at the end of a path; None where there is no such field or element."""
    for step in steps:
        if isinstance(step, str):
            here = cast("dict[str, Any]", here).get(step) if isinstance(here, dict) else None
        elif isinstance(here, list) and step < len(cast("list[Any]", here)):
            here = cast("list[Any]", here)[step]
        else:
            return None
    return here


def lookup(location: FieldLocation | None, topic: str) -> Lookup:
    """A function from a record to the content of a place, which is None if there is nothing.

    Of a place in each element of an array it gives the array.
    """
    match location:
        case None:
            return _nothing
        case InValue(path) | InArray(path):
            return lambda content: walk(content.tree, path)
        case InTopic():
            return lambda _: topic
        case Constant(text):
            return lambda _: text
        case InKey(path) if path:
            return lambda content: walk(key_tree(content.record), path)
        case InKey() | InHeader():
            return lambda content: text_outside(content.record, location)


def key_tree(record: Record) -> Any:
    """Tree of a record's key, read as JSON; None where it has none, or is none."""
    if record.key is None:
        return None
    try:
        return _JSON.decode(record.key)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _nothing(_content: Content) -> None:
    return None
