"""Gathers the contents of one record from the places a mapping names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.fields import is_plain
from streamwatch.edge.decoders.mapping import (
    Constant,
    FieldLocation,
    InArray,
    InHeader,
    InKey,
    InTopic,
    InValue,
    TopicMapping,
    parse_field_location,
)
from streamwatch.edge.decoders.paths import SCALAR, SCORES, Path, Row, ValuePaths

_FRAME_BYTES = 5


class Unusable:
    """Stands for content that is present but can never be valid."""


UNREADABLE = Unusable()
FRAMED = Unusable()
"""Text expected, Confluent wire format found."""


class FieldLocations:
    """Places at which the slots of one topic's records are found.

    Parameters
    ----------
    topic
        The topic's name.
    mapping
        Its mapping.
    slots
        The fields wanted, named as the mapping names them, in the order of every row.

    Raises
    ------
    ValueError
        A place is not in the notation, or a constant is not a valid name.
    """

    def __init__(self, topic: str, mapping: TopicMapping, slots: Sequence[str]) -> None:
        paths: dict[str, tuple[Path, Any]] = {}
        fixed: dict[str, str | None] = {}
        self.outside: dict[int, InKey | InHeader] = {}
        """Positions in a row that are filled from the key or a header."""
        self.by_slot: dict[str, FieldLocation | None] = {}
        for i, slot in enumerate(slots):
            location = self.by_slot[slot] = self._location(mapping, slot)
            fixed[slot] = None
            match location:
                case InValue(path):
                    paths[slot] = (path, SCORES if slot == "scores" else SCALAR)
                    del fixed[slot]
                case InTopic():
                    fixed[slot] = topic
                case Constant(text):
                    fixed[slot] = text
                case InKey() | InHeader():
                    self.outside[i] = location
                case InArray():
                    raise ValueError(f"{slot}: expected a place without arrays, got {location}")
                case None:
                    pass
        self.paths = ValuePaths(paths, fixed)
        self.constants: Row = tuple(fixed.get(slot) for slot in slots)
        """The row of a record without a value."""

    @staticmethod
    def _location(mapping: TopicMapping, slot: str) -> FieldLocation | None:
        if slot == "kind":
            text = mapping.kind.field if mapping.kind is not None else None
        else:
            text = getattr(mapping, slot)
        return located(slot, text)

    def completed(self, row: Row, record: Record) -> Row:
        """The row with what the record's key and headers carry."""
        if not self.outside:
            return row
        contents = list(row)
        for i, location in self.outside.items():
            contents[i] = text_outside(record, location)
        return tuple(contents)


def located(slot: str, text: str | None) -> FieldLocation | None:
    """Read the place of a slot; None where it has none.

    Raises
    ------
    ValueError
        Naming the slot: the place is not in the notation, or a constant that is no valid name.
    """
    try:
        location = None if text is None else parse_field_location(text)
    except ValueError as error:
        raise ValueError(f"{slot}: {error}") from None
    if isinstance(location, Constant) and not is_plain(location.text):
        raise ValueError(
            f"{slot}: a constant must be 1 to 128 bytes without control characters, got {text!r}"
        )
    return location


def is_framed(content: bytes) -> bool:
    """Tell whether content begins as the Confluent wire format does: a zero byte and a schema id of four."""
    return len(content) >= _FRAME_BYTES and content[0] == 0


def text_outside(record: Record, location: InKey | InHeader) -> object:
    """The text of a record's key, or of the last header of a name; None where there is none."""
    return _text(record.key if isinstance(location, InKey) else _header(record, location.name))


def _header(record: Record, name: str) -> bytes | None:
    for key, content in reversed(record.headers):
        if key == name:
            return content
    return None


def _text(content: bytes | None) -> object:
    if content is None:
        return None
    if is_framed(content):
        return FRAMED
    try:
        return content.decode()
    except UnicodeDecodeError:
        return UNREADABLE
