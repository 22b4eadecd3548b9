"""What one field may contain, and the one way it is written afterwards.

Each function takes what JSON, a key or a header carried and gives the canonical value, or `None` where the
content breaks a rule. None of them raises.
"""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from streamwatch.core.events import OTHER
from streamwatch.edge.decoders.mapping import TimestampUnit
from streamwatch.folds import Scheme, roles

MAX_TEXT_BYTES = 128
MAX_TIMESTAMP_MS = 253_402_300_799_999
"""The end of the year 9999."""

_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SHOWING_NOTHING = frozenset({"Cf", "Mn", "Me", "Zs", "Zl", "Zp"})
"""Categories of format characters, of marks on a letter before them, and of spaces."""
_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Fillers of Hangul, and the pattern of Braille without a dot."""
_NUMBER = re.compile(r"[+-]?\d{1,25}(\.\d{1,25})?([eE][+-]?\d{1,3})?", re.ASCII)
_BEYOND_TIME = 1e30
"""No timestamp in any unit; a float up to here stays finite in another unit."""
_LARGEST_NUMBER = 1e300
"""Sums of as many as a record may hold stay finite."""
_BEYOND_TEXT = 10**MAX_TEXT_BYTES
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


NAME = "1 to 128 bytes of visible text without control characters, and not __other__"
"""What `is_name` asks of a text, for messages."""


def is_plain(text: str) -> bool:
    """1 to 128 bytes of UTF-8 without control characters or lone surrogates."""
    if text.isascii() and text.isprintable():
        return 0 < len(text) <= MAX_TEXT_BYTES
    if _FORBIDDEN.search(text):
        return False
    return 0 < len(text) <= MAX_TEXT_BYTES and len(text.encode()) <= MAX_TEXT_BYTES


def is_name(text: str) -> bool:
    """Tell whether a text may name a model or a class: it is plain, can be seen, and is not `__other__`.

    A name of spaces, direction marks and other characters that show nothing would be a row without a name on
    the page; `__other__` stands for the classes beyond `max_classes`.
    """
    return is_plain(text) and text != OTHER and not all(map(_is_invisible, text))


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in _SHOWING_NOTHING or character in _BLANK_LETTERS


def canonical_text(raw: Any) -> str | None:
    """An id, model or class as text: integral numbers without a fraction, booleans as JSON writes them."""
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
    """A finite number, or one written as text (of a header, or a cell)."""
    if isinstance(raw, str):
        raw = float(raw) if _NUMBER.fullmatch(raw) else None
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    return float(raw) if abs(raw) <= _LARGEST_NUMBER else None  # None for nan, too


def timestamp_ms(raw: Any, unit: TimestampUnit) -> int | None:
    """Milliseconds since the epoch, from 1970 to 9999; fractions of one are cut off, in seconds rounded.

    Text in ISO 8601 without an offset is UTC.
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
    """A number in [0, 1]; rounding may have put it a millionth outside."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    return min(max(float(raw), 0.0), 1.0) if -1e-6 <= raw <= 1.000001 else None


# The fold a prediction carries, and whether that fold tests its id.


_MOST_DIGITS: Final = 4


def judged_fold(raw: Any, scheme: Scheme | None) -> tuple[int, str]:
    """The number of a fold and no reason, or −1 and the reason why it is none of the scheme's."""
    if scheme is None:
        return -1, "fold_without_scheme"
    text = canonical_text(raw) or ""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else -1
    if not 0 <= number < scheme.folds or str(number) != text:
        return -1, "invalid_fold"
    return number, ""


def fold_tests(event_id: str, fold: int, scheme: Scheme | None) -> bool:
    """Tell whether a fold tests an id, given as trainers know it; every fold does in the prequential form."""
    return scheme is None or scheme.prequential or roles(event_id, fold, scheme).tests
