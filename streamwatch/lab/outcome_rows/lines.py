"""Lines of a file, whatever they are: rows of CSV, or JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.fetched import PADDING
from streamwatch.edge.decoders.scanner.inputs import Tables
from streamwatch.edge.decoders.scanner.tokens import Tokens
from streamwatch.lab.outcome_rows.json_scan import WORDS, scan_lines
from streamwatch.lab.outcome_rows.plan import RowPlan
from streamwatch.lab.outcome_rows.scan import scan_rows
from streamwatch.lab.recordings.file import BYTE_ORDER_MARK
from streamwatch.lab.recordings.lines import BadLine, LineRecord
from streamwatch.lab.recordings.recording import Recording

Scanned: TypeAlias = tuple[int, int, int, bool]
"""What `scan.scan_rows` returns."""

_WORDS = np.frombuffer(WORDS + bytes(PADDING), np.uint8)
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
    """Number of the model of all rows; -1 where they tell."""


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
        self._places = {int(role): place for place, role in enumerate(plan.roles.tolist())}

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
        return {role: cells[place] for role, place in self._places.items()}

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
    """

    def __init__(self, recording: Recording, plan: RowPlan) -> None:
        self._recording = recording
        self._plan = plan
        self._keys = Tokens()
        for number, name in enumerate(plan.header):
            self._keys.learn(name.encode(), number)

    def scan(self, stretch: Stretch, known: Known, most_odd: int, rows: NDArray[np.void]) -> Scanned:
        """Write the rows of a stretch."""
        keys, roles, unit = self._keys.table, self._plan.roles, self._plan.unit
        return scan_lines(*stretch, keys, roles, *known, unit, most_odd, _WORDS, rows)

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
