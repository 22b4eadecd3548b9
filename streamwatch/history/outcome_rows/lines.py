"""Lines of a file: rows of CSV, or JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.timestamps import LOOK_AHEAD
from streamwatch.core.records.fetched import PADDING
from streamwatch.edge.decoders.scanner.contents import no_score_room
from streamwatch.edge.decoders.scanner.plan import ContentTree, Tables, fields_of
from streamwatch.edge.decoders.scanner.shape import Fields, new_template, new_trace
from streamwatch.edge.decoders.scanner.tokens import Tokens
from streamwatch.history.outcome_rows.plan import RowPlan
from streamwatch.history.outcome_rows.scan import ROW, believed_times, scan_lines, scan_rows
from streamwatch.history.recordings.file import BYTE_ORDER_MARK
from streamwatch.history.recordings.lines import BadLine, LineRecord
from streamwatch.history.recordings.recording import Recording

Scanned: TypeAlias = tuple[int, int, int, bool]
"""Result of `scan.scan_rows`."""

_VALUES = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Stretch(NamedTuple):
    """Bytes of a file that lines are read from."""

    data: NDArray[np.uint8]
    """Bytes, followed by `PADDING` others."""
    at: int
    end: int
    line: int
    """Number of lines before `at`."""
    whole: bool
    """Whether the file ends at `end`."""


class Known(NamedTuple):
    """Names with numbers so far."""

    tables: Tables
    model: int
    """Number of the model of all rows; -1 where each row names its own."""


class Lines(Protocol):
    """Lines of one file."""

    def scan(self, stretch: Stretch, known: Known, most_odd: int, rows: NDArray[np.void]) -> Scanned:
        """Write the rows of a stretch: see `scan.scan_rows`."""
        ...

    def record(self, line: bytes, number: int) -> LineRecord | BadLine:
        """Convert one line to a record."""
        ...

    def tokens(self, line: bytes) -> Mapping[int, bytes]:
        """Return the names in a line as they are written, by role."""
        ...

    def resume(self, first: bytes, number: int) -> None:
        """Let the recording continue with the bytes `first`, after `number` lines."""
        ...


class CsvLines:
    """Rows of CSV, without quotes.

    Parameters
    ----------
    recording
        Recording of which only the header was read.
    plan
        Roles of its columns.
    """

    def __init__(self, recording: Recording, plan: RowPlan) -> None:
        self._recording = recording
        self._plan = plan
        self._columns = {int(role): column for column, role in enumerate(plan.roles.tolist())}

    def scan(self, stretch: Stretch, known: Known, most_odd: int, rows: NDArray[np.void]) -> Scanned:
        """Write the rows of a stretch."""
        roles, unit = self._plan.roles, self._plan.unit
        return scan_rows(*stretch, roles, *known, unit, most_odd, rows)

    def record(self, line: bytes, number: int) -> LineRecord | BadLine:
        """Convert one line to a record."""
        return self._recording.csv_row(self._plan.header, line, number)

    def tokens(self, line: bytes) -> Mapping[int, bytes]:
        """Return the cells of a line, by role."""
        cells = line.split(b",")
        return {role: cells[column] for role, column in self._columns.items()}

    def resume(self, first: bytes, number: int) -> None:
        """Let the recording continue with the bytes `first`, after `number` lines."""
        self._recording.resume(self._plan.header, first, number)


class JsonLines:
    """JSON objects, one per line.

    Parameters
    ----------
    recording
        Recording of which nothing was read.
    plan
        Roles of its fields.
    fields
        Fields for the compiled reader, in the order of `plan`.
    """

    def __init__(self, recording: Recording, plan: RowPlan, fields: Fields) -> None:
        self._recording = recording
        self._plan = plan
        self._fields = fields
        self._template, self._trace, self._room = (
            new_template(0),
            new_trace(fields.shared, 0, 0),
            no_score_room(),
        )

    def scan(self, stretch: Stretch, known: Known, most_odd: int, rows: NDArray[np.void]) -> Scanned:
        """Write the rows of a stretch."""
        found = self._template, self._trace, self._room
        return scan_lines(
            *stretch, self._fields, self._plan.roles, *known, self._plan.unit, most_odd, *found, rows
        )

    def record(self, line: bytes, number: int) -> LineRecord | BadLine:
        """Convert one line to a record."""
        return self._recording.json_line(line, number)

    def tokens(self, line: bytes) -> Mapping[int, bytes]:
        """Return the values in a line as they are written, by role."""
        values = _VALUES.decode(line.removeprefix(BYTE_ORDER_MARK))
        roles = zip(self._plan.header, self._plan.roles.tolist(), strict=True)
        return {role: bytes(values[name]) for name, role in roles if name in values}

    def resume(self, first: bytes, number: int) -> None:
        """Let the recording continue with the bytes `first`, after `number` lines."""
        self._recording.resume(None, first, number)


# Bytes of a recording that are not converted yet, read in large pieces.


_READ_BYTES: Final = 1 << 22
_SPARE_BYTES: Final = 1 << 18
"""Extra size of the buffer for the unused bytes that are kept when more are read."""


class LineBuffer:
    """Buffer of the lines that are not converted yet.

    Parameters
    ----------
    recording
        Recording of which at most a header has been read.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._room = np.empty(0, np.uint8)
        self._data = padded(b"")
        self._at = 0
        """Index in `_data` of the first unused byte."""
        self.line = recording.number
        """Number of lines of the file before the first unused byte."""
        self.at_end = False
        """Whether the recording has been read to its end."""

    @property
    def end(self) -> int:
        """Index after the last byte that was read."""
        return len(self._data) - PADDING

    def stretch(self) -> Stretch:
        """Return all bytes that were read and are unused."""
        return Stretch(self._data, self._at, self.end, self.line, self.at_end)

    def bytes_of(self, start: int, stop: int) -> bytes:
        """Copy the bytes between two positions."""
        return self._data[start:stop].tobytes()

    def left(self) -> bytes:
        """Copy the unused bytes."""
        return self.bytes_of(self._at, self.end)

    def advance(self, at: int, line: int) -> None:
        """Drop the bytes before a position; `line` is the number of lines of the file that end before it."""
        self._at, self.line = at, line

    def fill(self) -> bool:
        """Read more of the recording; False at its end, or while more than `_READ_BYTES` are unused."""
        left = self._data[self._at : self.end]
        if self.at_end or len(left) > _READ_BYTES:
            return False
        lines = self.line + int(np.count_nonzero(left == ord("\n")))
        more = self._recording.file.read(_READ_BYTES, lines)
        self.at_end = not more
        self._hold(left, more)
        return True

    def _hold(self, left: NDArray[np.uint8], more: bytes) -> None:
        """Set the unused bytes, in memory that is reused: new memory costs more than a copy."""
        size = len(left) + len(more)
        if size + PADDING > len(self._room):
            self._room = np.empty(size + PADDING + _SPARE_BYTES, np.uint8)
        self._room[: len(left)] = left
        self._room[len(left) : size] = np.frombuffer(more, np.uint8)
        self._room[size : size + PADDING] = 0
        self._data, self._at = self._room[: size + PADDING], 0
        self._data.flags.writeable = False


def padded(data: bytes) -> NDArray[np.uint8]:
    """Append the `PADDING` bytes that compiled readers need."""
    return np.frombuffer(data + bytes(PADDING), np.uint8)


# Compilation of the readers of rows, or loading them from the cache.


def warm_up_rows() -> None:
    """Compile or load the readers of rows, by calling each on empty input."""
    table, none = Tokens().table, np.zeros(0, np.int64)
    tables = Tables(*[table] * 5)
    nothing, rows = padded(b""), np.zeros(1, ROW)
    scan_rows(nothing, 0, 0, 0, True, none, tables, -1, 0, 1, rows)
    fields = fields_of(ContentTree())
    assert fields is not None  # noqa: S101 - it has none
    found = new_template(0), new_trace(0, 0, 0), no_score_room()
    scan_lines(nothing, 0, 0, 0, True, fields, none, tables, -1, 0, 1, *found, rows)
    believed_times(none, np.zeros(0, np.bool_), 0, -1, 0, 0, LOOK_AHEAD, none, none)
