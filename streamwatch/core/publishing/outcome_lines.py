"""Outcomes as JSON lines (`OutcomeDocument`), with the ids of the records that resolved them."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Self

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from streamwatch.core.jit import copy_bytes, entry, hot, inner
from streamwatch.core.publishing.documents import SCHEMA_VERSION
from streamwatch.core.publishing.kept import KeptOutcomes, Keys
from streamwatch.core.records.batch import OBJECT, RecordBatch
from streamwatch.core.records.events import (
    SAMPLING,
    Label,
    Prediction,
    fold_of,
    model_of,
    probability_of,
    requested_of,
    segments_of,
)
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch

# JSON lines of many outcomes, written by one compiled loop from columns and tables of texts.


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


_json = msgspec.json.Encoder().encode

# Ids by digest, from records: the join keeps digests only.


class IdTexts:
    """Finds the keys (namespace and id) of the records of one stretch of the sequence by their digests.

    Parameters
    ----------
    records
        Records with the texts of their keys. The stretch holds the record that resolves an outcome: its
        label, or its prediction where the label came first.
    """

    def __init__(self, records: RecordBatch) -> None:
        self._records = records
        rows = records.rows
        with_text = (
            np.flatnonzero(rows["side"] != OBJECT) if records.texts is not None else np.empty(0, np.intp)
        )
        low = rows["id_low"][with_text]
        order = np.argsort(low)
        self._indices = with_text[order]
        self._low = low[order]
        self._high = rows["id_high"][self._indices]
        self._of_objects: dict[tuple[int, int], str] = {}
        for event in records.objects_at(records.object_rows()):
            if isinstance(event, Prediction | Label):
                digest = xxhash.xxh3_128_intdigest(event.id.encode())
                self._of_objects[digest >> 64, digest & 0xFFFF_FFFF_FFFF_FFFF] = event.id

    def keys(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> Keys:
        """Return the key of each digest, shape (n,).

        Raises
        ------
        KeyError
            If no record of the stretch has this digest.
        """
        texts = self._records.texts if self._records.texts is not None else np.zeros(0, np.uint8)
        starts, sizes = np.zeros(len(low), np.int64), np.zeros(len(low), np.int64)
        found = np.zeros(len(low), np.bool_)
        if len(self._low):
            at = np.minimum(np.searchsorted(self._low, low), len(self._low) - 1)
            found = (self._low[at] == low) & (self._high[at] == high)
            rows, indices = self._records.rows, self._indices[at[found]]
            starts[found], sizes[found] = rows["id_at"][indices], rows["id_bytes"][indices]
        if found.all():
            return Keys(texts, starts, sizes)
        others: list[bytes] = []
        end = len(texts)
        for i in np.flatnonzero(~found).tolist():
            text = self._other(int(high[i]), int(low[i]))
            starts[i], sizes[i] = end, len(text)
            others.append(text + b"\n")
            end += len(text) + 1
        return Keys(np.concatenate([texts, np.frombuffer(b"".join(others), np.uint8)]), starts, sizes)

    def _other(self, high: int, low: int) -> bytes:
        """Find the key of an event object, or of a row whose lower half other rows have as well."""
        if (high, low) in self._of_objects:
            return self._of_objects[high, low].encode()
        same = np.flatnonzero((self._low == low) & (self._high == high))
        if not len(same) or self._records.texts is None:
            raise KeyError(f"no record of the stretch has the digest {high:016x}{low:016x}")
        row = self._records.rows[self._indices[same[0]]]
        return self._records.texts[row["id_at"] : row["id_at"] + row["id_bytes"]].tobytes()


# Lines of a batch.


class OutcomeLines:
    """Writes outcomes as lines of JSON.

    Parameters
    ----------
    life
        Name of the sequence in which outcomes are numbered (`OutcomeDocument.life`).
    """

    def __init__(self, life: str) -> None:
        self._pieces = pieces_of(
            f'{{"schema_version":{SCHEMA_VERSION},"life":{_json(life).decode()},"number":'
        )

    def of(self, kept: KeptOutcomes, first: int) -> Written:
        """Write outcomes in order, numbered from `first` on."""
        records = np.frombuffer(kept.records, OUTCOME)
        different, sampled = np.unique(records["carried"][:, SAMPLING], return_inverse=True)
        return LineParts(
            records,
            TextTable.of(list(map(_model, kept.models))),
            TextTable.of([b"null", *map(_json, kept.classes)]),
            kept.record_keys(),
            TextTable.of([b"null", *(_json(segments_of(text)) for text in kept.segments)]),
            TextTable.of(list(map(_sampled, different.tolist()))),
            sampled.astype(np.int32),
            self._pieces,
        ).written(first)


def keys_of(batch: OutcomeBatch, ids: Callable[[], IdTexts] | None) -> Keys:
    """Find the keys of outcomes; assumed ones have none, as no record resolves them.

    Parameters
    ----------
    batch
        The outcomes.
    ids
        Function that returns the keys of the records that resolved them; None: no outcome gets a key.
    """
    records = batch.records
    starts, sizes = np.zeros(len(records), np.int64), np.full(len(records), -1, np.int64)
    resolved = records["assumed"] == 0
    if ids is None or not resolved.any():
        return Keys(np.zeros(0, np.uint8), starts, sizes)
    found = ids().keys(records["high"][resolved], records["low"][resolved])
    starts[resolved], sizes[resolved] = found.starts, found.sizes
    return Keys(found.texts, starts, sizes)


def _model(name: str) -> bytes:
    fold = fold_of(name)
    return b'"model":%b,"fold":%b' % (_json(model_of(name)), b"null" if fold is None else b"%d" % fold)


def _sampled(number: int) -> bytes:
    return b'%b,"label_requested":%b' % (_json(probability_of(number)), _json(requested_of(number)))
