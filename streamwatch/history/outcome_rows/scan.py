"""Compiled readers of CSV rows and JSON lines: bytes → rows of numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from streamwatch.core.jit import entry, hot, trailing_zeros, word_at
from streamwatch.edge.decoders.scanner.contents import MAX_ID_BYTES, ScoreRoom, time_ms
from streamwatch.edge.decoders.scanner.plan import (
    Tables,
)
from streamwatch.edge.decoders.scanner.shape import Fields, Template, Trace, found
from streamwatch.edge.decoders.scanner.text import ABSENT, NULL, NUMBER, RAW, TEXT, WIDE
from streamwatch.edge.decoders.scanner.tokens import number_of

OTHER, ID, MODEL, PREDICTION, LABEL, TIME = range(6)
"""Roles of columns."""
ORDINARY, ODD = range(2)
"""Status of a row: its numbers are complete, or it is left to the reader of single rows."""

ROW: Final = np.dtype(
    [
        ("start", np.int64),
        ("stop", np.int64),
        ("line", np.int64),
        ("own_ms", np.int64),
        ("model", np.int32),
        ("predicted_class", np.int32),
        ("true_class", np.int32),
        ("status", np.int32),
    ],
    align=True,
)
"""One row: range of its bytes without the line end, number of its line (from 1), its own time (-1 without
one), numbers of its names, status."""

_LONGEST: Final = 100_000
"""Most bytes of a row; the csv module's limit of a cell is a third more."""
_NEWLINE, _RETURN, _QUOTE, _COMMA, _SPACE, _TILDE = 10, 13, 34, 44, 32, 126


@entry
def scan_rows(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - compiled: scalars, and one loop
    data: Any,
    at: int,
    end: int,
    line: int,
    whole: bool,  # noqa: FBT001 - compiled: by position
    roles: Any,
    tables: Tables,
    model_number: int,
    unit: int,
    most_odd: int,
    rows: Any,
) -> tuple[int, int, int, bool]:
    """Write rows from `at` on, until `rows` is full, no whole line is left, or `most_odd` are not ordinary.

    Parameters
    ----------
    data
        uint8: bytes up to `end`, then `core.records.fetched.PADDING` others.
    line
        Number of lines before `at`.
    whole
        Whether the file ends at `end`, so that the last line needs no line end.
    roles
        int64 (columns,): role of each column.
    tables
        Numbers of known names, by the bytes of cells.
    model_number
        Number of the model of all rows; -1 if a column has it.
    unit
        Unit of times, as in `UNITS`.
    rows
        Dtype `ROW`, output.

    Returns
    -------
    count, at, line, foreign
        Number of rows written; start of the next line; number of lines before it; whether this loop cannot
        read that line (quotes, a NUL, a lone carriage return, or too long).
    """
    columns = len(roles)
    count = odd = 0
    while at < end and count < len(rows) and odd < most_odd:
        begin = cell = at
        column = 0
        status = ORDINARY
        own_ms, model, predicted, true = -1, model_number, -1, -1
        has_id = False
        stop = following = -1
        while True:
            byte = _NEWLINE if at == end else data[at]
            if at == end and not whole:
                return count, begin, line, False
            if byte == _QUOTE or byte == 0:  # noqa: PLR1714 - compiled
                return count, begin, line, True
            if byte == _COMMA or byte == _NEWLINE or byte == _RETURN:  # noqa: PLR1714, SIM109 - compiled
                if byte == _RETURN:
                    if at + 1 == end and not whole:
                        return count, begin, line, False
                    if at + 1 == end or data[at + 1] != _NEWLINE:
                        return count, begin, line, True
                if column < columns and at > cell:
                    role = roles[column]
                    size = at - cell
                    if role == ID:
                        has_id = size <= MAX_ID_BYTES
                    elif role == MODEL:
                        model = number_of(data, cell, size, tables.models)
                    elif role == PREDICTION:
                        predicted = number_of(data, cell, size, tables.predictions)
                    elif role == LABEL:
                        true = number_of(data, cell, size, tables.labels)
                    elif role == TIME:
                        own_ms = time_ms(data, RAW, cell, at, unit)
                        if own_ms < 0:
                            status = ODD
                column += 1
                if byte == _COMMA:
                    at += 1
                    cell = at
                    continue
                stop = at
                following = at + 2 if byte == _RETURN else min(at + 1, end)
                break
            if byte < _SPACE or byte > _TILDE:
                status = ODD
            at += 1
        if stop - begin > _LONGEST:
            return count, begin, line, True
        at = following
        line += 1
        if stop == begin:
            continue
        if column != columns or not has_id or model < 0 or predicted < 0 or true < 0:
            status = ODD
        row = rows[count]
        row["start"], row["stop"], row["line"], row["own_ms"] = begin, stop, line, own_ms
        row["model"], row["predicted_class"], row["true_class"] = model, predicted, true
        row["status"] = status
        odd += status
        count += 1
    return count, at, line, False


@entry
def believed_times(  # noqa: C901, PLR0912, PLR0913, PLR0917 - compiled: scalars, and three loops
    own_ms: Any,
    timed: Any,
    last_ms: int,
    running_ms: int,
    max_future_ms: int,
    latest_ms: int,
    look_ahead: int,
    stamps_ms: Any,
    times_ms: Any,
) -> int:
    """Compute the timestamp of each row and the time of its partition; return the number of rows dated.

    Stops at the first row whose time needs the full check of `core.merge.timestamps`: one that is the first,
    or more than `max_future_ms` ahead of earlier times, and beyond `latest_ms`; or one that is so far ahead
    while one of the `look_ahead` rows behind it is nearer to the earlier times; or a row before the first
    `timed` one. A row without a time of its own comes a millisecond after the previous one; a row that is not
    `timed` (it could not be decoded) does not advance the time.
    """
    n = len(own_ms)
    last = last_ms
    for i in range(n):
        if timed[i]:
            last = last + 1 if own_ms[i] < 0 else max(1, own_ms[i])
        stamps_ms[i] = last
    least = np.int64(2**62)
    for i in range(n - 1, -1, -1):  # for now the least timestamp behind the row
        times_ms[i] = least
        if timed[i]:
            least = min(least, stamps_ms[i])
    running = running_ms
    for i in range(n):
        if timed[i]:
            stamp = stamps_ms[i]
            if running < 0:
                if stamp > latest_ms:
                    return i
            elif stamp > running + max_future_ms:
                if stamp > latest_ms:
                    return i
                between = (running + stamp) / 2
                if times_ms[i] < between:
                    for j in range(i + 1, min(n, i + 1 + look_ahead)):
                        if timed[j] and stamps_ms[j] < between:
                            return i
            running = max(running, stamp)
        elif running < 0:
            return i
        times_ms[i] = running
    return n


# JSON lines.


REFUSED: Final = TIME + 1
"""Role of a field that makes a line not ordinary."""

_PLAIN_NUMBER: Final = 18
"""Most characters of a number that is accepted as an id without further checks."""
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_LOWEST, _HIGHEST = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


@hot
def _end_of_line(data: Any, at: int, end: int) -> int:
    """Return the index of the first newline from `at` on; `end` without one."""
    while at < end:
        word = word_at(data, at) ^ _NEWLINES
        zeros = (word - _LOWEST) & ~word & _HIGHEST  # the lowest of these bits is exact
        if zeros:
            return min(at + (trailing_zeros(zeros) >> 3), end)
        at += 8
    return end


@hot
def _is_blank(byte: Any) -> bool:
    return byte == _SPACE or 9 <= byte <= _RETURN


@hot
def _fill(data: Any, roles: Any, trace: Trace, tables: Tables, model: int, unit: int, row: Any) -> bool:
    """Write the values of the fields found to a row; return False if the line is not ordinary."""
    predicted, true, own_ms = -1, -1, -1
    has_id = False
    for leaf in range(len(roles)):
        kind, role = trace.kind[leaf], roles[leaf]
        if kind == ABSENT:
            continue
        if role == REFUSED or kind == NULL:
            return False
        start, stop = trace.start[leaf], trace.stop[leaf]
        if role == ID:
            size = stop - start
            if kind == TEXT or kind == WIDE:  # noqa: PLR1714, SIM109 - compiled
                has_id = 2 < size <= MAX_ID_BYTES + 2
            else:
                has_id = kind == NUMBER and size <= _PLAIN_NUMBER
        elif role == MODEL:
            model = number_of(data, start, stop - start, tables.models)
        elif role == PREDICTION:
            predicted = number_of(data, start, stop - start, tables.predictions)
        elif role == LABEL:
            true = number_of(data, start, stop - start, tables.labels)
        else:
            own_ms = time_ms(data, kind, start, stop, unit)
            if own_ms < 0:
                return False
    if not has_id or model < 0 or predicted < 0 or true < 0:
        return False
    row["own_ms"], row["model"] = own_ms, model
    row["predicted_class"], row["true_class"] = predicted, true
    return True


@entry
def scan_lines(  # noqa: PLR0913, PLR0917 - compiled: scalars, and one loop
    data: Any,
    at: int,
    end: int,
    line: int,
    whole: bool,  # noqa: FBT001 - compiled: by position
    fields: Fields,
    roles: Any,
    tables: Tables,
    model_number: int,
    unit: int,
    most_odd: int,
    template: Template,
    trace: Trace,
    room: ScoreRoom,
    rows: Any,
) -> tuple[int, int, int, bool]:
    """Write rows of JSON lines from `at` on; other parameters and results are those of `scan_rows`.

    Parameters
    ----------
    fields
        Fields that have a role.
    roles
        int64 (fields,): role of each field.
    template, trace, room
        As for `edge.decoders.scanner.shape.found`; changed.
    """
    count = odd = 0
    while at < end and count < len(rows) and odd < most_odd:
        begin, stop = at, _end_of_line(data, at, end)
        if stop == end and not whole:
            break
        at = min(stop + 1, end)
        line += 1
        while begin < stop and _is_blank(data[begin]):
            begin += 1
        while stop > begin and _is_blank(data[stop - 1]):
            stop -= 1
        if stop == begin:
            continue
        row = rows[count]
        row["own_ms"] = row["model"] = row["predicted_class"] = row["true_class"] = -1
        row["start"], row["stop"], row["line"], row["status"] = begin, stop, line, ODD
        if found(data, begin, stop, fields, template, trace, room) and _fill(
            data, roles, trace, tables, model_number, unit, row
        ):
            row["status"] = ORDINARY
        else:
            odd += 1
        count += 1
    return count, at, line, False
