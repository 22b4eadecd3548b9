"""Rows of a CSV file as the values that a topic would have carried.

A row becomes an object with a field for each column that is not empty; dots in a column's name nest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from streamwatch.lab.recordings.file import RecordingError
from streamwatch.lab.recordings.lines import BadLine, LineRecord, sample_of


@dataclass(frozen=True, slots=True)
class CsvColumns:
    """Columns that a CSV header is expected to have.

    `ids` and `classes`: one of each at least, where there are any. `scores`: cells hold a JSON object.
    """

    ids: Sequence[str] = ("id",)
    classes: Sequence[str] = ("prediction", "label")
    others: Sequence[str] = ("model",)
    scores: Sequence[str] = ("scores",)

    def check(self, header: Sequence[str], name: str) -> None:
        """Refuse a header by which nothing could be found.

        Raises
        ------
        RecordingError
            It has no column of ids, or none of classes.
        """
        for wanted in (self.ids, self.classes):
            if not _names_one(header, wanted):
                expected = ", ".join(dict.fromkeys((*self.ids, *self.others, *self.classes)))
                # A line without a comma is no header; it may be the first one of a key or of a password file.
                found = ", ".join(header) if len(header) > 1 else "a line without a comma"
                raise RecordingError(f"{name}: expected a CSV header with {expected}; got {found}")

    def fit(self, header: Sequence[str]) -> bool:
        """Tell whether `check` lets a header pass."""
        return all(_names_one(header, wanted) for wanted in (self.ids, self.classes))


class CsvRows:
    """Makes records of the rows of one file.

    Parameters
    ----------
    header
        Names of its columns.
    columns
        Which of them hold JSON objects.
    name
        Of the file, for rows that are no records.
    """

    def __init__(self, header: Sequence[str], columns: CsvColumns, name: str) -> None:
        self._count = len(header)
        self._paths = [(i, column.split(".")) for i, column in enumerate(header) if column]
        self._objects = {i for i, column in enumerate(header) if column in columns.scores}
        self._name = name

    def record(self, row: Sequence[str], number: int) -> LineRecord | BadLine:
        """Record of a row that ends on line `number`."""
        if len(row) != self._count:
            written = ",".join(row).encode(errors="replace")
            return BadLine(number, "wrong_number_of_columns", sample_of(written), self._name)
        try:
            return LineRecord(number, msgspec.json.encode(self._value(row)), offset=number)
        except UnicodeEncodeError:
            written = ",".join(row).encode(errors="surrogateescape")
            return BadLine(number, "invalid_utf8", sample_of(written), self._name)

    def _value(self, row: Sequence[str]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for i, (*above, name) in self._paths:
            if not row[i]:
                continue
            here = value
            for step in above:
                below = here.setdefault(step, {})
                here = below if isinstance(below, dict) else {}
            here[name] = _object(row[i]) if i in self._objects else row[i]
        return value


def _names_one(header: Sequence[str], wanted: Sequence[str]) -> bool:
    return not wanted or bool(set(wanted) & set(header))


def _object(cell: str) -> Any:
    """The JSON object of a cell; text that is none stays text, which is no valid object."""
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return cell
