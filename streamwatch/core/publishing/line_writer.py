"""JSON lines of many outcomes, written by one compiled loop from columns and tables of texts."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import copy_bytes, entry, hot, inner
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM

_DIGITS: Final = 20
"""Digits of the largest number of 64 bits, with its sign."""
_NUMBERS: Final = 6
_HEX: Final = 32
_QUOTES: Final = 4
_NULL: Final = 4
_FALSE: Final = 5
_QUOTE, _BACKSLASH, _NAMESPACE_ENDS, _LINE_FEED = 34, 92, 31, 10


class TextTable(NamedTuple):
    """Texts by number."""

    texts: NDArray[np.uint8]
    """Concatenated texts, as bytes."""
    ends: NDArray[np.int64]
    """Shape (n + 1,): text i begins at `ends[i]`, and ends at `ends[i + 1]`."""

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Self:
        """Build a table of texts."""
        ends = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=ends[1:])
        return cls(np.frombuffer(b"".join(texts), np.uint8), ends)

    @property
    def longest(self) -> int:
        """Number of bytes of the longest text."""
        return int(np.diff(self.ends).max(initial=0))


class Keys(NamedTuple):
    """Namespace and id of each outcome's record, as one text; each column has shape (n,)."""

    texts: NDArray[np.uint8]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    """Number of bytes; -1 if the outcome has no id."""


class Written(NamedTuple):
    """Lines, each followed by a line feed."""

    text: NDArray[np.uint8]
    ends: NDArray[np.int64]
    """Shape (n,): index after each line's line feed."""


PIECES: Final = (
    ",",
    ',"namespace":',
    ',"id":',
    ',"id_digest":"',
    '","prediction":',
    ',"last_prediction":',
    ',"label":',
    ',"right":',
    ',"assumed":',
    ',"last_known_label":',
    ',"prediction_timestamp_ms":',
    ',"label_timestamp_ms":',
    ',"delay_ms":',
    ',"resolved_timestamp_ms":',
    ',"waited_ms":',
    ',"segments":',
    ',"label_probability":',
    "}\n",
    "null",
    "false",
    "true",
)
"""Fixed texts between the values of a line, from the one after its number on; then three literals."""
_NULL_PIECE, _FALSE_PIECE = 19, 20  # indices in `pieces_of`, where 0 is the beginning of a line


@hot
def put(out, at, texts, start, stop):
    """Copy `texts[start:stop]` to `out` from index `at` on; return the index after it."""
    copy_bytes(out, at, texts, start, stop - start)
    return at + stop - start


@hot
def put_numbered(out, at, table, number):
    """Copy a text of a table; return the index after it."""
    return put(out, at, table.texts, table.ends[number], table.ends[number + 1])


@inner
def put_number(out, at, value):
    """Write a number in decimal; return the index after it."""
    if value < 0:
        out[at] = 45
        at += 1
        value = -value
    size, rest = 1, value // 10
    while rest > 0:
        rest //= 10
        size += 1
    digit = at + size - 1
    while digit >= at:
        out[digit] = 48 + value % 10
        value //= 10
        digit -= 1
    return at + size


@inner
def put_hex(out, at, value):
    """Write a number as 16 hexadecimal digits; return the index after them."""
    for i in range(16):
        digit = (value >> np.uint64(60 - 4 * i)) & np.uint64(15)
        out[at + i] = 48 + digit if digit < 10 else 87 + digit
    return at + 16


@inner
def put_string(out, at, texts, start, stop):
    """Write a text without control characters as a JSON string; return the index after it."""
    out[at] = _QUOTE
    at += 1
    for i in range(start, stop):
        byte = texts[i]
        if byte in (_QUOTE, _BACKSLASH):
            out[at] = _BACKSLASH
            at += 1
        out[at] = byte
        at += 1
    out[at] = _QUOTE
    return at + 1


@inner
def put_key(out, at, pieces, keys, i):
    """Write namespace and id of an outcome; return the index after them."""
    start, size = keys.starts[i], keys.sizes[i]
    if size < 0:
        at = put_numbered(out, at, pieces, _NULL_PIECE)
        at = put_numbered(out, at, pieces, 3)
        return put_numbered(out, at, pieces, _NULL_PIECE)
    split = -1
    for j in range(start, start + size):
        if keys.texts[j] == _NAMESPACE_ENDS:
            split = j
    at = put_string(out, at, keys.texts, start, split if split >= 0 else start)
    at = put_numbered(out, at, pieces, 3)
    return put_string(out, at, keys.texts, split + 1 if split >= 0 else start, start + size)


@entry
def put_lines(parts, first, out, ends):
    """Write the lines of outcomes.

    Parameters
    ----------
    parts
        `LineParts`.
    first
        Number of the first outcome.
    out
        uint8, output: at least `LineParts.most_bytes` long.
    ends
        int64 (n,), output: index after each line.
    """
    classes, pieces = parts.classes, parts.pieces
    at = 0
    for i in range(parts.records.shape[0]):
        row = parts.records[i]
        at = put_numbered(out, at, pieces, 0)
        at = put_number(out, at, first + i)
        at = put_numbered(out, at, pieces, 1)
        at = put_numbered(out, at, parts.models, row.model)
        at = put_numbered(out, at, pieces, 2)
        at = put_key(out, at, pieces, parts.keys, i)
        at = put_numbered(out, at, pieces, 4)
        at = put_hex(out, at, row.high)
        at = put_hex(out, at, row.low)
        at = put_numbered(out, at, pieces, 5)
        at = put_numbered(out, at, classes, row.predicted_class + 1)
        at = put_numbered(out, at, pieces, 6)
        at = put_numbered(out, at, classes, row.last_class)
        at = put_numbered(out, at, pieces, 7)
        at = put_numbered(out, at, classes, row.true_class + 1)
        at = put_numbered(out, at, pieces, 8)
        right = 1 if row.true_class == row.predicted_class else 0
        at = put_numbered(out, at, pieces, _FALSE_PIECE + right)
        at = put_numbered(out, at, pieces, 9)
        assumed = 1 if row.assumed != 0 else 0
        at = put_numbered(out, at, pieces, _FALSE_PIECE + assumed)
        at = put_numbered(out, at, pieces, 10)
        at = put_numbered(out, at, classes, row.label_at_prediction + 1)
        at = put_numbered(out, at, pieces, 11)
        at = put_number(out, at, row.event_ms - row.delay_ms)
        at = put_numbered(out, at, pieces, 12)
        at = put_number(out, at, row.event_ms)
        at = put_numbered(out, at, pieces, 13)
        at = put_number(out, at, row.delay_ms)
        at = put_numbered(out, at, pieces, 14)
        at = put_number(out, at, row.resolved_ms)
        at = put_numbered(out, at, pieces, 15)
        at = put_number(out, at, row.waited_ms)
        at = put_numbered(out, at, pieces, 16)
        at = put_numbered(out, at, parts.segments, max(row.scores - SEGMENTS_FROM, -1) + 1)
        at = put_numbered(out, at, pieces, 17)
        at = put_numbered(out, at, parts.sampling, parts.sampled[i])
        at = put_numbered(out, at, pieces, 18)
        ends[i] = at


class LineParts(NamedTuple):
    """Columns and tables from which lines of outcomes are written."""

    records: NDArray[np.void]
    """Outcomes without scores, dtype `OUTCOME`, shape (n,)."""
    models: TextTable
    classes: TextTable
    """Texts by number of the class + 1; the first stands for none. So have `segments`."""
    keys: Keys
    segments: TextTable
    sampling: TextTable
    sampled: NDArray[np.int32]
    """Number of each outcome's text in `sampling`, shape (n,)."""
    pieces: TextTable
    """Result of `pieces_of`."""

    @property
    def most_bytes(self) -> int:
        """Upper bound of the number of bytes of all lines."""
        texts = self.models.longest + self.segments.longest + self.sampling.longest
        texts += 4 * self.classes.longest + int(self.pieces.ends[-1])
        each = texts + _HEX + _QUOTES + 2 * _NULL + 2 * _FALSE + _NUMBERS * _DIGITS
        return len(self.records) * each + 2 * int(np.maximum(self.keys.sizes, 0).sum())

    def written(self, first: int) -> Written:
        """Write the lines; outcomes are numbered from `first` on."""
        out, ends = np.empty(self.most_bytes, np.uint8), np.empty(len(self.records), np.int64)
        put_lines(self, first, out, ends)
        return Written(out[: int(ends[-1]) if len(ends) else 0], ends)


def pieces_of(begin: str) -> TextTable:
    """Build the table of fixed texts: the beginning of a line, then `PIECES`."""
    return TextTable.of([text.encode() for text in (begin, *PIECES)])


def warm_up_lines() -> None:
    """Compile the writer, or load it from the cache."""
    table, none = TextTable.of([b"null"]), np.zeros(0, np.int32)
    empty: Any = np.zeros(0, np.int64)
    keys = Keys(np.zeros(0, np.uint8), empty, empty)
    LineParts(np.zeros(0, OUTCOME), table, table, keys, table, table, none, pieces_of("")).written(1)
