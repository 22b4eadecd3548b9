"""Contents of a record's fields: their canonical form, where they are, and texts joined from several.

Functions that judge content from JSON, a key or a header return the canonical value, or `None` where the
content is invalid; others tell whether a text is valid, or give the reason why a fold is not. None of them
raises.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from streamwatch.core.ports import Record
from streamwatch.core.records.events import OTHER, Side
from streamwatch.edge.decoders.mapping import (
    Affixes,
    AnyLocation,
    Constant,
    FieldLocation,
    InHeader,
    InKey,
    Joined,
    Paths,
    TimestampUnit,
    TopicMapping,
    carried_slots,
    parse_paths,
    parts_of,
    paths_of,
)
from streamwatch.folds import Scheme, roles

MAX_TEXT_BYTES = 128
MAX_TIMESTAMP_MS = 253_402_300_799_999
"""The end of the year 9999."""

_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SHOWING_NOTHING = frozenset({"Cf", "Mn", "Me", "Zs", "Zl", "Zp"})
"""Unicode categories of characters that are invisible alone: formats, combining marks, spaces."""
_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters without a visible shape: fillers of Hangul, and the Braille pattern without a dot."""
_NUMBER = re.compile(r"[+-]?\d{1,25}(\.\d{1,25})?([eE][+-]?\d{1,3})?", re.ASCII)
_BEYOND_TIME = 1e30
"""Larger than any timestamp in any unit; floats below it stay finite when converted."""
_LARGEST_NUMBER = 1e300
"""Limit of a number, at which sums over a record's numbers stay finite."""
_BEYOND_TEXT = 10**MAX_TEXT_BYTES
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


NAME = "1 to 128 bytes of visible text without control characters, and not __other__"
"""Requirement of `is_name`, for messages."""


def is_plain(text: str) -> bool:
    """Tell whether a text has 1 to 128 bytes of UTF-8, no control characters and no lone surrogates."""
    if text.isascii() and text.isprintable():
        return 0 < len(text) <= MAX_TEXT_BYTES
    if _FORBIDDEN.search(text):
        return False
    return 0 < len(text) <= MAX_TEXT_BYTES and len(text.encode()) <= MAX_TEXT_BYTES


def is_name(text: str) -> bool:
    """Tell whether a text may name a model or a class: it is plain, visible, and not `__other__`.

    A name of invisible characters, such as spaces or direction marks, would be an empty cell on the page;
    `__other__` is the name under which classes beyond `max_classes` are counted.
    """
    return is_plain(text) and text != OTHER and not all(map(_is_invisible, text))


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in _SHOWING_NOTHING or character in _BLANK_LETTERS


def canonical_text(raw: Any) -> str | None:
    """Canonical text of an id, model or class: `1.0` is `1`, booleans are as in JSON; None if invalid."""
    if isinstance(raw, str):
        return raw if is_plain(raw) else None
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, float):
        if not math.isfinite(raw):
            return None
        if not raw.is_integer():
            return repr(raw)
        raw = int(raw)
    if isinstance(raw, int) and -_BEYOND_TEXT < raw < _BEYOND_TEXT:
        text = str(raw)
        return text if len(text) <= MAX_TEXT_BYTES else None
    return None


def number_of(raw: Any) -> float | None:
    """Convert a number, or its text, to a float; None unless it is a number up to ±1e300."""
    if isinstance(raw, str):
        raw = float(raw) if _NUMBER.fullmatch(raw) else None
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    return float(raw) if abs(raw) <= _LARGEST_NUMBER else None  # None for nan, too


def timestamp_ms(raw: Any, unit: TimestampUnit) -> int | None:
    """Convert a timestamp from 1970 to 9999 to milliseconds since the epoch; None if invalid.

    Fractions of a millisecond are cut off, except that seconds with decimals are rounded. Text in ISO 8601
    without an offset is UTC.
    """
    if unit == "iso8601":
        return _from_iso8601(raw)
    number: Any = raw
    if isinstance(raw, str):
        if not _NUMBER.fullmatch(raw):
            return None
        number = int(raw) if raw.isdigit() else float(raw)
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    if isinstance(number, float) and not abs(number) < _BEYOND_TIME:  # nan, too
        return None
    match unit:
        case "ms":
            event_ms = math.floor(number)
        case "s":
            event_ms = number * 1_000 if isinstance(number, int) else round(number * 1_000)
        case "us":
            event_ms = math.floor(number // 1_000)
        case "ns":
            event_ms = math.floor(number // 1_000_000)
    return event_ms if 0 <= event_ms <= MAX_TIMESTAMP_MS else None


def _from_iso8601(raw: Any) -> int | None:
    if not isinstance(raw, str):
        return None
    try:
        moment = datetime.fromisoformat(raw)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        event_ms = (moment - _EPOCH) // _MILLISECOND  # exactly: seconds as a float are not
    except (ValueError, OverflowError):
        return None
    return event_ms if 0 <= event_ms <= MAX_TIMESTAMP_MS else None


def probability(raw: Any) -> float | None:
    """Convert content to a number in [0, 1]; one up to 1e-6 outside is clipped. None if invalid."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    return min(max(float(raw), 0.0), 1.0) if -1e-6 <= raw <= 1.000001 else None


# Folds: the number that a prediction carries, and whether that fold tests its id.


_MOST_DIGITS: Final = 4


def judged_fold(raw: Any, scheme: Scheme | None) -> tuple[int, str]:
    """Return (fold number, ""), or (−1, reason) where the content is no fold of the scheme."""
    if scheme is None:
        return -1, "fold_without_scheme"
    text = canonical_text(raw) or ""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else -1
    if not 0 <= number < scheme.folds or str(number) != text:
        return -1, "invalid_fold"
    return number, ""


def fold_tests(event_id: str, fold: int, scheme: Scheme | None) -> bool:
    """Tell whether a fold tests an id (without its namespace); in the prequential form every fold does."""
    return scheme is None or scheme.prequential or roles(event_id, fold, scheme).tests


# Locations of fields, and contents of keys and headers.


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
