"""Lines of a file, whatever they are: rows of CSV, or JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records import PADDING
from streamwatch.edge.decoders.scanner.contents import no_score_room
from streamwatch.edge.decoders.scanner.plan import Tables
from streamwatch.edge.decoders.scanner.shape import Fields, new_template, new_trace
from streamwatch.history.outcome_rows.plan import RowPlan
from streamwatch.history.outcome_rows.scan import scan_lines, scan_rows
from streamwatch.history.recordings.file import BYTE_ORDER_MARK
from streamwatch.history.recordings.lines import BadLine, LineRecord
from streamwatch.history.recordings.recording import Recording

Scanned: TypeAlias = tuple[int, int, int, bool]
"""What `scan.scan_rows` returns."""

_VALUES = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Stretch(NamedTuple):
    """Bytes of a file that lines are read from."""

    data: NDArray[np.uint8]
    """With `PADDING` others behind."""
    at: int
    end: int
    line: int
    """Lines before `at`."""
    whole: bool
    """Whether the file ends with it."""


class Known(NamedTuple):
    """Names met before."""

    tables: Tables
    model: int
    """Number of the model of all rows; -1 where each row names its own."""


class Lines(Protocol):
    """Lines of one file."""

    def scan(self, stretch: Stretch, known: Known, most_odd: int, rows: NDArray[np.void]) -> Scanned:
        """Write the rows of a stretch: see `scan.scan_rows`."""
        ...

    def record(self, line: bytes, number: int) -> LineRecord | BadLine:
        """Record of one line."""
        ...

    def tokens(self, line: bytes) -> Mapping[int, bytes]:
        """Names of a line as they are written, by role."""
        ...

    def resume(self, first: bytes, number: int) -> None:
        """Have the recording go on with these bytes, after so many lines."""
        ...


class CsvLines:
    """Rows of CSV, without quotes.

    Parameters
    ----------
    recording
        Of which the header was read.
    plan
        What its columns hold.
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
        """Record of one line."""
        return self._recording.csv_row(self._plan.header, line, number)

    def tokens(self, line: bytes) -> Mapping[int, bytes]:
        """Cells of a line, by role."""
        cells = line.split(b",")
        return {role: cells[column] for role, column in self._columns.items()}

    def resume(self, first: bytes, number: int) -> None:
        """Have the recording go on with these bytes, after so many lines."""
        self._recording.resume(self._plan.header, first, number)


class JsonLines:
    """JSON objects, a line each.

    Parameters
    ----------
    recording
        Of which nothing was read, or what is given back.
    plan
        What its fields hold.
    fields
        The same for the compiled reader.
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
        """Record of one line."""
        return self._recording.json_line(line, number)

    def tokens(self, line: bytes) -> Mapping[int, bytes]:
        """Values of a line as they are written, by role."""
        values = _VALUES.decode(line.removeprefix(BYTE_ORDER_MARK))
        roles = zip(self._plan.header, self._plan.roles.tolist(), strict=True)
        return {role: bytes(values[name]) for name, role in roles if name in values}

    def resume(self, first: bytes, number: int) -> None:
        """Have the recording go on with these bytes, after so many lines."""
        self._recording.resume(None, first, number)


# Bytes of a recording from its first unread line on, read in large pieces.


_READ_BYTES: Final = 1 << 22
_SPARE_BYTES: Final = 1 << 18
"""Of rows that are left when more are read, mostly less."""


class LineBuffer:
    """Holds lines that are yet to be read.

    Parameters
    ----------
    recording
        Of which nothing but a header has been read.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._room = np.empty(0, np.uint8)
        self._data = padded(b"")
        self._at = 0
        """Where in `_data` the rows begin that are yet to be read."""
        self.line = recording.number
        """Lines of the file before that."""
        self.at_end = False
        """Whether the recording has no more."""

    @property
    def end(self) -> int:
        """Position behind the last byte that was read."""
        return len(self._data) - PADDING

    def stretch(self) -> Stretch:
        """Return all bytes that were read and not yet used."""
        return Stretch(self._data, self._at, self.end, self.line, self.at_end)

    def bytes_of(self, start: int, stop: int) -> bytes:
        """Copy the bytes between two positions."""
        return self._data[start:stop].tobytes()

    def left(self) -> bytes:
        """Copy what is yet to be read."""
        return self.bytes_of(self._at, self.end)

    def advance(self, at: int, line: int) -> None:
        """Drop the bytes before a position; `line` is the number of lines of the file that end before it."""
        self._at, self.line = at, line

    def fill(self) -> bool:
        """Have more at hand; whether there was more, and room for it."""
        left = self._data[self._at : self.end]
        if self.at_end or len(left) > _READ_BYTES:
            return False
        lines = self.line + int(np.count_nonzero(left == ord("\n")))
        more = self._recording.read_on(_READ_BYTES, lines)
        self.at_end = not more
        self._hold(left, more)
        return True

    def _hold(self, left: NDArray[np.uint8], more: bytes) -> None:
        """Have these bytes at hand, in memory that is used again: new memory costs more than a copy."""
        size = len(left) + len(more)
        if size + PADDING > len(self._room):
            self._room = np.empty(size + PADDING + _SPARE_BYTES, np.uint8)
        self._room[: len(left)] = left
        self._room[len(left) : size] = np.frombuffer(more, np.uint8)
        self._room[size : size + PADDING] = 0
        self._data, self._at = self._room[: size + PADDING], 0
        self._data.flags.writeable = False


def padded(data: bytes) -> NDArray[np.uint8]:
    """Bytes with as many others behind as compiled readers need."""
    return np.frombuffer(data + bytes(PADDING), np.uint8)
