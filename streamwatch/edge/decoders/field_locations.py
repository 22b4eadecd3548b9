"""Reads contents from a record's key and headers, and joins the texts of several paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from streamwatch.core.ports import Record
from streamwatch.core.records.events import Side
from streamwatch.edge.decoders.fields import NAME, canonical_text, is_name
from streamwatch.edge.decoders.mapping import (
    Affixes,
    AnyLocation,
    Constant,
    FieldLocation,
    InHeader,
    InKey,
    Joined,
    Paths,
    TopicMapping,
    carried_slots,
    parse_paths,
    parts_of,
    paths_of,
)

_FRAME_BYTES = 5


class Unusable:
    """Placeholder for content that is present but can never be valid."""


UNREADABLE = Unusable()
"""Content is not UTF-8, or cannot be part of a name."""
FRAMED = Unusable()
"""Content begins as the Confluent wire format does where text was expected."""
INCOMPLETE = Unusable()
"""One of several paths that must have a content has none."""


SLOTS: Final[Mapping[Side, Sequence[str]]] = MappingProxyType(
    {
        "prediction": ("id", "model", "prediction", "timestamp", "scores", "fold"),
        "label": ("id", "model", "label", "timestamp"),
        "both": ("id", "model", "prediction", "timestamp", "scores", "fold", "label", "kind"),
    }
)
"""Fields of a mapping that are read, by what the topic carries."""
SEGMENT_SLOT: Final = "segments."
"""Prefix of a segment's slot, before the segment's name."""


def slot_locations(mapping: TopicMapping, side: Side) -> dict[str, AnyLocation | None]:
    """Parse the paths of `SLOTS`, then, of predictions, those of carried numbers and segments, in order.

    None where a slot has no path.

    Raises
    ------
    ValueError
        As `located_joined` does.
    """
    kind = None if mapping.kind is None else mapping.kind.field
    found: dict[str, AnyLocation | None] = {}
    for slot in SLOTS[side]:
        paths = kind if slot == "kind" else paths_of(mapping, slot)
        found[slot] = located_joined(slot, paths)
    if side != "label":
        for slot in carried_slots(mapping):
            found[slot] = located_joined(slot, paths_of(mapping, slot))
        for name, path in mapping.segments.items():
            found[SEGMENT_SLOT + name] = located("segments", path)
    return found


def located(slot: str, text: str | None) -> FieldLocation | None:
    """Parse the path of a slot that must have a single one; None without a path.

    Raises
    ------
    ValueError
        As `located_joined` does.
    """
    location = located_joined(slot, text)
    assert not isinstance(location, Joined)  # noqa: S101 - which is of several texts
    return location


def located_joined(slot: str, paths: Paths | None) -> AnyLocation | None:
    """Parse the path of a slot, or its several paths; None without any.

    Raises
    ------
    ValueError
        A path is not in the notation, or a constant is no valid name; the message names the slot.
    """
    try:
        location = None if paths is None else parse_paths(paths)
    except ValueError as error:
        raise ValueError(f"{slot}: {error}") from None
    for each in parts_of(location):
        if isinstance(each, Constant) and not is_name(each.text):
            raise ValueError(f"{slot}: a constant must be {NAME}, got {paths!r}")
    return location


def is_framed(content: bytes) -> bool:
    """Tell whether content begins like the Confluent wire format: a zero byte, four bytes of schema id."""
    return len(content) >= _FRAME_BYTES and content[0] == 0


def text_outside(record: Record, location: InKey | InHeader) -> object:
    """Return the text of a record's key, or of the last header of a name; None where absent.

    `FRAMED` for one in the Confluent wire format, `UNREADABLE` for one that is not UTF-8.
    """
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


# Joining the contents of several paths, such as a model's name and version, to one text; or trimming one.
#
# The texts are separated by `/`: `fraud/7`. Different contents never give the same text: within a part, `%`
# is written `%25` and `/` is written `%2F`; an optional path without a content gives an empty part, which is
# dropped at the end.


BETWEEN: Final = "/"


def joined_text(
    contents: Sequence[Any], optional: Sequence[bool], affixes: Sequence[Affixes] | None = None
) -> object:
    """Join the contents of paths, each in its canonical text, to one text.

    Parameters
    ----------
    contents
        The content at each path; None where absent.
    optional
        Whether the content of each path may be absent. An empty text then counts as absent, because that is
        what records with a schema have for a field that was not set.
    affixes
        Prefix and suffix that are cut off each path's text; None where none are.

    Returns
    -------
    The text. None where no path has a content. `INCOMPLETE` where a path that is not optional has none,
    `UNREADABLE` where a content cannot be part of a name, `FRAMED` where it is in the Confluent wire format.
    """
    texts: list[str] = []
    is_missing = False
    for content, may_miss in zip(contents, optional, strict=True):
        if content is None or (may_miss and content == ""):
            is_missing |= not may_miss
            texts.append("")
            continue
        if content is FRAMED:
            return FRAMED
        text = canonical_text(content)
        if text is None:
            return UNREADABLE
        texts.append(text if affixes is None else affixes[len(texts)].off(text))
    if len(texts) == 1:
        return texts[0] or None
    texts = list(map(escaped, texts))
    if not any(texts):
        return None
    return INCOMPLETE if is_missing else BETWEEN.join(texts).rstrip(BETWEEN)


def escaped(text: str) -> str:
    """Escape `%` and the separator `/` in a part of a joined text."""
    return text.replace("%", "%25").replace(BETWEEN, "%2F")


def fixed_text(paths: Paths | None) -> str | None:
    """Return the text of paths that are all constants, such as `[=fraud, =v3]`; None for other paths."""
    if paths is None:
        return None
    location = parse_paths(paths)
    if not isinstance(location, Joined):
        return location.text if isinstance(location, Constant) else None
    texts = [part.text for part in location.parts if isinstance(part, Constant)]
    if len(texts) < len(location.parts):
        return None
    text = joined_text(texts, location.optional, location.affixes)
    return text if isinstance(text, str) else None
