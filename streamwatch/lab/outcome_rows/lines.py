"""Lines of a file, whatever they are: rows of CSV, or JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.edge.decoders.scanner.inputs import Tables
from streamwatch.edge.decoders.scanner.tokens import Tokens
from streamwatch.lab.lines import BadLine, LineRecord
from streamwatch.lab.outcome_rows.json_scan import scan_lines
from streamwatch.lab.outcome_rows.plan import RowPlan
from streamwatch.lab.outcome_rows.scan import scan_rows
from streamwatch.lab.recorded import BYTE_ORDER_MARK, Recording

_WORDS = np.frombuffer(b"truefalsenull" + bytes(64), np.uint8)
_VALUES = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Lines(Protocol):
    """Lines of one file."""

    def scan(  # noqa: PLR0913 - what the compiled loops are given
        self,
        data: NDArray[np.uint8],
        span: tuple[int, int],
        line: int,
        tables: Tables,
        model: int,
        most_odd: int,
        rows: NDArray[np.void],
        *,
        whole: bool,
    ) -> tuple[int, int, int, bool]:
        """Write the rows that stand in a span: see `scan.scan_rows`."""
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

    def scan(  # noqa: PLR0913 - see `Lines`
        self,
        data: NDArray[np.uint8],
        span: tuple[int, int],
        line: int,
        tables: Tables,
        model: int,
        most_odd: int,
        rows: NDArray[np.void],
        *,
        whole: bool,
    ) -> tuple[int, int, int, bool]:
        """Write the rows that stand in a span."""
        roles, unit = self._plan.roles, self._plan.unit
        return scan_rows(data, *span, line, whole, roles, tables, model, unit, most_odd, rows)

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

    def scan(  # noqa: PLR0913 - see `Lines`
        self,
        data: NDArray[np.uint8],
        span: tuple[int, int],
        line: int,
        tables: Tables,
        model: int,
        most_odd: int,
        rows: NDArray[np.void],
        *,
        whole: bool,
    ) -> tuple[int, int, int, bool]:
        """Write the rows that stand in a span."""
        keys, roles, unit = self._keys.table, self._plan.roles, self._plan.unit
        given: Any = (keys, roles, tables, model, unit, most_odd, _WORDS, rows)
        return scan_lines(data, *span, line, whole, *given)

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
