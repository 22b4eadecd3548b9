"""Bytes of a file of JSON lines → its ordinary rows as numbers, in one compiled loop."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from streamwatch.core.jit import entry, hot, text_stops, trailing_zeros, without_refcount
from streamwatch.edge.decoders.scanner.contents import MAX_ID_BYTES, time_ms
from streamwatch.edge.decoders.scanner.inputs import Tables, borrowed_table, borrowed_tables
from streamwatch.edge.decoders.scanner.text import RAW, same
from streamwatch.edge.decoders.scanner.tokens import TokenTable, number_of
from streamwatch.lab.outcome_rows.scan import ID, LABEL, MODEL, ODD, ORDINARY, OTHER, PREDICTION, TIME

REFUSED: Final = TIME + 1
"""Role of a field whose content columns do not hold."""

_NEWLINE, _RETURN, _SPACE, _QUOTE, _COMMA, _MINUS, _POINT = 10, 13, 32, 34, 44, 45, 46
_ZERO, _NINE, _COLON, _OPEN, _CLOSE = 48, 57, 58, 123, 125
_NULL = 110
_NOTHING: Final = -1
_FIELDS: Final = 32
"""Fields at the front of an object whose names are compared with those of the object before."""
_BEGIN, _SIZE, _ROLE = range(3)
"""Columns of the names seen: where one begins, from its quote to the spaces behind its colon; its role."""
_PLAIN_NUMBER: Final = 18
"""Characters of a number of which no more is asked."""
WORDS: Final = b"truefalsenull"
"""Values that are no text, number, object or array, behind one another."""


@hot
def _text_end(data: Any, at: int) -> int:
    """Place behind a text without escapes, of printable ASCII; `_NOTHING` if it is another."""
    at += 1
    stops = text_stops(data, at)
    while not stops:
        at += 32
        stops = text_stops(data, at)
    at += trailing_zeros(stops)
    return at + 1 if data[at] == _QUOTE else _NOTHING


@hot
def _number_end(data: Any, at: int) -> int:
    """Place behind a number without an exponent; `_NOTHING` if it is another."""
    if data[at] == _MINUS:
        at += 1
    first = at
    while _ZERO <= data[at] <= _NINE:
        at += 1
    if at == first or (data[first] == _ZERO and at > first + 1):
        return _NOTHING
    if data[at] == _POINT:
        at += 1
        first = at
        while _ZERO <= data[at] <= _NINE:
            at += 1
        if at == first:
            return _NOTHING
    return at


@hot
def _value_end(data: Any, at: int, words: Any) -> int:
    """Place behind a text, a number, true, false or null; `_NOTHING` if it is none, or not plain."""
    byte = data[at]
    if byte == _QUOTE:
        return _text_end(data, at)
    if byte == _MINUS or _ZERO <= byte <= _NINE:
        return _number_end(data, at)
    for first, size in ((0, 4), (4, 5), (9, 4)):
        if same(data, at, words, first, size):
            return at + size
    return _NOTHING


@hot
def _spaces(data: Any, at: int) -> int:
    while data[at] == _SPACE:
        at += 1
    return at


@hot
def _fill(  # noqa: C901, PLR0911, PLR0912, PLR0913, PLR0917 - compiled: a reason each
    data: Any,
    at: int,
    keys: TokenTable,
    roles: Any,
    tables: Tables,
    model: int,
    unit: int,
    words: Any,
    names: Any,
    row: Any,
) -> int:
    """Write what an object says that begins at `at`; the place behind it, `_NOTHING` if it is not ordinary.

    Objects mostly name the same fields in the same order: `names` are those of the object before.
    """
    predicted, true, own_ms = -1, -1, -1
    seen = field = 0
    if data[at] != _OPEN:
        return _NOTHING
    at = _spaces(data, at + 1)
    while True:
        if (
            field < _FIELDS
            and names[field, _SIZE]
            and same(data, at, data, names[field, _BEGIN], names[field, _SIZE])
        ):
            role = names[field, _ROLE]
            at += names[field, _SIZE]
        else:
            if data[at] != _QUOTE:
                return _NOTHING
            begin, end = at, _text_end(data, at)
            if end < 0:
                return _NOTHING
            key = number_of(data, at + 1, end - at - 2, keys)
            role = roles[key] if key >= 0 else OTHER
            at = _spaces(data, end)
            if data[at] != _COLON:
                return _NOTHING
            at = _spaces(data, at + 1)
            if field < _FIELDS:
                names[field, _BEGIN], names[field, _SIZE], names[field, _ROLE] = begin, at - begin, role
        field += 1
        at = _spaces(data, at)
        end = _value_end(data, at, words)
        if end < 0:
            return _NOTHING
        if role != OTHER:
            is_text = data[at] == _QUOTE
            if role == REFUSED or seen & (1 << role) or data[at] == _NULL:
                return _NOTHING
            seen |= 1 << role
            first, last = (at + 1, end - 1) if is_text else (at, end)
            if role == ID:
                most = MAX_ID_BYTES if is_text else _PLAIN_NUMBER
                if (not is_text and data[at] > _NINE) or not 0 < last - first <= most:
                    return _NOTHING
            elif role == MODEL:
                model = number_of(data, at, end - at, tables.models)
            elif role == PREDICTION:
                predicted = number_of(data, at, end - at, tables.predictions)
            elif role == LABEL:
                true = number_of(data, at, end - at, tables.labels)
            else:
                own_ms = time_ms(data, RAW, first, last, unit)
                if own_ms < 0:
                    return _NOTHING
        at = _spaces(data, end)
        if data[at] == _COMMA:
            at = _spaces(data, at + 1)
        elif data[at] == _CLOSE:
            break
        else:
            return _NOTHING
    if not seen & (1 << ID) or model < 0 or predicted < 0 or true < 0:
        return _NOTHING
    row["own_ms"], row["model"] = own_ms, model
    row["predicted_class"], row["true_class"] = predicted, true
    return at + 1


@entry
def scan_lines(  # noqa: PLR0913, PLR0917 - compiled: scalars, and one loop
    data: Any,
    at: int,
    end: int,
    line: int,
    whole: bool,  # noqa: FBT001 - compiled: by position
    keys: TokenTable,
    roles: Any,
    tables: Tables,
    model_number: int,
    unit: int,
    most_odd: int,
    words: Any,
    rows: Any,
) -> tuple[int, int, int, bool]:
    """Write rows from `at` on, as `scan.scan_rows` does of CSV.

    Parameters
    ----------
    keys
        Names of the fields that have a role.
    roles
        int64: by number of such a name, what it holds.
    words
        uint8: the bytes of `WORDS`.
    """
    data = without_refcount(data)
    roles = without_refcount(roles)
    words = without_refcount(words)
    rows = without_refcount(rows)
    keys = borrowed_table(keys)
    tables = borrowed_tables(tables)
    names = np.zeros((_FIELDS, 3), np.int64)
    count = odd = 0
    while at < end and count < len(rows) and odd < most_odd:
        row = rows[count]
        row["own_ms"] = row["model"] = row["predicted_class"] = row["true_class"] = -1
        begin, stop = at, _fill(data, at, keys, roles, tables, model_number, unit, words, names, row)
        behind = stop + (stop >= 0 and data[stop] == _RETURN)
        if 0 <= behind < end and data[behind] == _NEWLINE:
            following, status = behind + 1, ORDINARY
        else:
            stop = at
            while stop < end and data[stop] != _NEWLINE:
                stop += 1
            if stop == end and not whole:
                break
            following = min(stop + 1, end)
            while begin < stop and data[begin] <= _SPACE:
                if data[begin] < 9 or 13 < data[begin] < _SPACE:
                    break
                begin += 1
            while stop > begin and (data[stop - 1] == _SPACE or 9 <= data[stop - 1] <= _RETURN):
                stop -= 1
            if stop == begin:
                line += 1
                at = following
                continue
            row["own_ms"] = row["model"] = row["predicted_class"] = row["true_class"] = -1
            filled = _fill(data, begin, keys, roles, tables, model_number, unit, words, names, row)
            status = ORDINARY if filled == stop else ODD
            if status == ODD:
                row["own_ms"] = row["model"] = row["predicted_class"] = row["true_class"] = -1
        line += 1
        at = following
        row["start"], row["stop"], row["line"] = begin, stop, line
        row["status"] = status
        odd += status
        count += 1
    return count, at, line, False
