"""Reads recordings: JSON objects per line, CSV with a header, lines of `kcat -J`, Parquet.

A JSON line is a record's value; `lines` describes the values of CSV rows. Records of kcat's lines have topic,
partition, offset, time, key and headers. Blank lines are skipped.

A row of Parquet becomes an object with a field for each column that is not null; structs and maps become
objects, lists and empty maps arrays. Whole decimals keep all their digits, as they may be ids; those beyond
64 bits become text. Timestamps become milliseconds since the epoch (UTC if they have no zone), dates, times
of day and durations ISO 8601 text. Binary values become text, in base64 where they are not UTF-8.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

import msgspec

from streamwatch.edge.extras import command_for
from streamwatch.history.recordings.file import (
    BROKEN,
    BYTE_ORDER_MARK,
    RecordedFile,
    RecordingError,
    printable,
)
from streamwatch.history.recordings.lines import (
    BadLine,
    CsvColumns,
    CsvRows,
    LineRecord,
    is_kcat,
    kcat_record,
    sample_of,
)

_ROWS: Final = 5_000
"""Number of rows converted at a time."""
_BEYOND_64_BITS: Final = 2**63


def parquet_values(file: RecordedFile) -> Iterator[bytes]:
    """Yield the JSON value of each row of a file, in order.

    Raises
    ------
    RecordingError
        The file is no Parquet file, is truncated, has a value that JSON cannot represent, is standard input
        or a pipe, or pyarrow is not installed.
    """
    name = file.name
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, and takes a fifth of a second to import
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise RecordingError(f"{name}: reading Parquet needs pyarrow: {command_for('parquet')}") from error
    if not file.has_end:
        got = "standard input" if file.path == "-" else "a pipe or a device"
        raise RecordingError(
            f"{name}: expected the name of a Parquet file, whose end is read first; got {got}"
        )
    row = 0
    batch: Any = None
    try:
        with pq.ParquetFile(file.path) as opened:
            for read in opened.iter_batches(_ROWS):
                batch = read
                fields = [field.with_type(_in_microseconds(field.type, pa)) for field in batch.schema]
                if fields != list(batch.schema):
                    batch = batch.cast(pa.schema(fields), safe=False)
                for found in batch.to_pylist():
                    yield msgspec.json.encode(_value(found))
                    row += 1
    except (pa.ArrowException, OSError) as error:
        raise RecordingError(f"{name} cannot be read as Parquet behind row {row:,}: {error}") from error
    except _NOT_JSON as error:
        where = f"{name}, row {row + 1:,} or later, column {_not_json(batch)}"
        raise RecordingError(f"{where}: expected values that JSON can hold: {error}") from error


_NOT_JSON: Final = (TypeError, ValueError, OverflowError, KeyError)
"""Errors of values that Python or JSON cannot represent, such as of dates and time zones."""


def _not_json(batch: Any) -> str:
    """Find the column of a batch with a value that JSON cannot represent."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            msgspec.json.encode(_value(column.to_pylist()))
        except _NOT_JSON:
            return printable(name)
    return "of another type than expected"


def _in_microseconds(kind: Any, pa: Any) -> Any:
    """Return an Arrow type with microseconds for nanoseconds, which Python's dates and times do not have."""
    plain = kind
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        plain = pa.timestamp("us", kind.tz)
    elif pa.types.is_time64(kind):
        plain = pa.time64("us")
    elif pa.types.is_duration(kind) and kind.unit == "ns":
        plain = pa.duration("us")
    elif pa.types.is_struct(kind):
        plain = pa.struct([field.with_type(_in_microseconds(field.type, pa)) for field in kind])
    elif pa.types.is_map(kind):
        plain = pa.map_(_in_microseconds(kind.key_type, pa), _in_microseconds(kind.item_type, pa))
    elif pa.types.is_list(kind):
        plain = pa.list_(kind.value_field.with_type(_in_microseconds(kind.value_type, pa)))
    elif pa.types.is_dictionary(kind):
        value = _in_microseconds(kind.value_type, pa)
        plain = kind if value.equals(kind.value_type) else value
    return plain


def _value(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _value(each) for name, each in found.items() if each is not None}
    if isinstance(found, list):
        if found and isinstance(found[0], tuple):  # a map: (key, value) in order
            return {_value(name): _value(each) for name, each in found if each is not None}
        return [_value(each) for each in found]
    if isinstance(found, datetime):
        aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        return round(aware.timestamp() * 1_000)
    if isinstance(found, Decimal):
        return _number(found)
    return _text(found) if isinstance(found, bytes) else found


def _text(found: bytes) -> str | bytes:
    """Decode UTF-8; other bytes are returned as they are, of which JSON encoders write base64."""
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found


def _number(found: Decimal) -> float | int | str:
    """Convert a decimal: a whole one to all its digits, as text where JSON readers would round them."""
    if found != found.to_integral_value():
        return float(found)
    whole = int(found)
    return whole if -_BEYOND_64_BITS <= whole < _BEYOND_64_BITS else str(whole)


# Records of a file, whatever its layout.


Layout: TypeAlias = Literal["jsonl", "csv", "kcat", "parquet"]


class Recording:
    """Recorded stream, read once from start to end.

    Parameters
    ----------
    source
        A path, or `-` for standard input.
    layout
        `jsonl`, `csv`, `kcat` or `parquet`; None: detected from the name, then from the first characters.
    columns
        Columns that a CSV header must have.

    Raises
    ------
    RecordingError
        The file cannot be read, or its CSV header lacks required columns.
    """

    def __init__(
        self, source: str | Path, layout: Layout | None = None, columns: CsvColumns | None = None
    ) -> None:
        self.lines = 0
        """Number of lines so far that are not blank."""
        self._columns = columns or CsvColumns()
        self._number = 0
        self._header: Sequence[str] | None = None
        self.header_bytes = b""
        """Bytes that `csv_header` read."""
        self.file = RecordedFile(source)
        self.name = self.file.name
        self._chosen = layout
        try:
            self._layout: Layout = layout or _layout_of(self.file)
        except RecordingError:
            self.file.close()
            raise

    @property
    def is_kcat(self) -> bool:
        """Tell whether its lines are kcat's; known once the first line has been read."""
        return self._layout == "kcat"

    def records(self) -> Iterator[LineRecord | BadLine]:
        """Yield the record of each line, in order."""
        rows = self._rows()
        try:
            for row in rows:
                self.lines += 1
                yield row
        except BROKEN as error:
            raise self.file.breaks_off(self._number, error) from error

    def _rows(self) -> Iterator[LineRecord | BadLine]:
        if self._layout == "parquet":
            for value in parquet_values(self.file):
                self._number += 1
                yield LineRecord(self._number, value, offset=self._number)
            return
        yield from self._csv_rows() if self._layout == "csv" else self._json_rows()

    def csv_header(self) -> list[str] | None:
        """Read the header of a CSV file; None, with nothing read, if it has quotes or lacks columns."""
        if self._layout != "csv":
            return None
        self.header_bytes = line = self.file.first_line()
        text = line.removeprefix(BYTE_ORDER_MARK).removesuffix(b"\n").removesuffix(b"\r")
        header = [name.strip() for name in text.decode("utf-8", "surrogateescape").split(",")]
        if not text or set(text) & {0, *b'"\r'} or not self._columns.fit(header):
            self.resume(None, line, 0)
            return None
        self._number = 1
        return header

    def resume(self, header: Sequence[str] | None, first: bytes, number: int) -> None:
        """Continue after `number` lines: with the bytes `first`, which are given back, then with the file."""
        self._header, self._number = header, number
        self.file.give_back(first)

    @property
    def number(self) -> int:
        """Number of lines read so far, including a header and blank lines."""
        return self._number

    def are_json_lines(self) -> bool:
        """Tell from the first line, which stays unread, whether lines are JSON values and not kcat's."""
        if self._layout != "jsonl":
            return False
        line = self.file.first_line()
        self.resume(None, line, 0)
        return self._chosen is not None or (bool(line.strip()) and not is_kcat(_without_mark(line).strip()))

    def json_line(self, line: bytes, number: int) -> LineRecord:
        """Convert a JSON line to a record."""
        return LineRecord(number, (_without_mark(line) if number == 1 else line).strip(), offset=number)

    def csv_row(self, header: Sequence[str], line: bytes, number: int) -> LineRecord | BadLine:
        """Convert a CSV line without quotes to a record."""
        self._number = number
        cells = line.decode("utf-8", "surrogateescape").split(",")
        return CsvRows(header, self._columns, self.name).record(cells, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def _bad(self, reason: str, value: bytes = b"") -> BadLine:
        return BadLine(self._number, reason, sample_of(value), self.name)

    def _json_rows(self) -> Iterator[LineRecord | BadLine]:
        first = self._number == 0
        for line in self.file.stream():
            self._number += 1
            text = (_without_mark(line) if self._number == 1 else line).strip()
            if not text:
                continue
            if first and self._chosen is None and is_kcat(text):
                self._layout = "kcat"
            first = False
            if self._layout == "jsonl":
                yield LineRecord(self._number, text, offset=self._number)
                continue
            try:
                yield kcat_record(text, self._number)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                yield self._bad("not_of_kcat", text)

    def _csv_rows(self) -> Iterator[LineRecord | BadLine]:
        # Bytes that are not UTF-8 become lone surrogates, which cannot be encoded again.
        encoding = "utf-8-sig" if self._header is None else "utf-8"
        text = io.TextIOWrapper(self.file.stream(), encoding, errors="surrogateescape", newline="")
        try:
            reader, before = csv.reader(text), self._number
            header = self._header
            if header is None:
                try:
                    header = [name.strip() for name in next(filter(None, reader), [])]
                except csv.Error as error:
                    raise RecordingError(f"{self.name}: expected a CSV header, got a {error}") from None
                if not header:
                    return
                self._columns.check(header, self.name)
            rows = CsvRows(header, self._columns, self.name)
            while True:
                try:
                    row = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    self._number = before + reader.line_num
                    yield BadLine(self._number, "invalid_csv", "", self.name, str(error))
                    continue
                self._number = before + reader.line_num
                if row:
                    yield rows.record(row, self._number)
        finally:
            text.detach()


def total_bytes(recordings: Sequence[Recording]) -> int | None:
    """Return the size of all files together; None if that of one is unknown."""
    sizes = [recording.file.total_bytes for recording in recordings]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _without_mark(line: bytes) -> bytes:
    return line.removeprefix(BYTE_ORDER_MARK)


def _layout_of(file: RecordedFile) -> Layout:
    """Detect the layout from the file's name, or else from its first characters."""
    suffix = Path(file.path.removesuffix(".gz")).suffix.lower()
    if suffix == ".parquet" or file.is_parquet:
        return "parquet"
    first = file.first_character()
    if suffix == ".csv":
        return "csv"
    if suffix in {".jsonl", ".ndjson", ".json"}:
        return "jsonl"
    return "jsonl" if first in {b"{", b""} else "csv"
