"""Reads recorded records: one JSON object per line, CSV with a header, or lines as `kcat -J` writes them.

A JSON line is a record's value. A CSV row becomes one: an object with a field for each column that is not
empty; dots in a column's name nest. Of kcat's lines topic, partition, offset, time, key and headers are those
of the record. Blank lines are skipped; a `.gz` file is unpacked while it is read.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self, TypeAlias, cast

import msgspec

from streamwatch.lab.lines import BadLine, LineRecord, is_kcat, kcat_record, sample_of

Layout: TypeAlias = Literal["jsonl", "csv", "kcat"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class RecordingError(ValueError):
    """The file is not a recording; the message says what was expected of it."""


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
                found = ", ".join(header) or "nothing"
                raise RecordingError(f"{name}: expected a CSV header with {expected}; got {found}")

    def fit(self, header: Sequence[str]) -> bool:
        """Tell whether `check` lets a header pass."""
        return all(_names_one(header, wanted) for wanted in (self.ids, self.classes))


@dataclass(frozen=True, slots=True)
class _Cells:
    """What a row must have."""

    count: int
    paths: Sequence[tuple[int, Sequence[str]]]
    """Fields that cells are of."""
    objects: set[int]
    """Cells that hold JSON objects."""


class Recording:
    """A recorded stream, read once from start to end.

    Parameters
    ----------
    source
        A path, or `-` for standard input.
    layout
        `jsonl`, `csv` or `kcat`; None looks at the name, then at the first characters.
    columns
        What a CSV header is expected to name.

    Raises
    ------
    RecordingError
        The file cannot be read, or its CSV header names nothing that is looked for.
    """

    def __init__(
        self, source: str | Path, layout: Layout | None = None, columns: CsvColumns | None = None
    ) -> None:
        self.name = str(source)
        self.lines = 0
        """Lines that held something, so far."""
        self._columns = columns or CsvColumns()
        self._number = 0
        self._header: Sequence[str] | None = None
        self._first = b""
        self.header_bytes = b""
        """Bytes that `csv_header` read."""
        self._error: OSError | EOFError | None = None
        """What `read_on` met behind the bytes it gave."""
        try:
            self._raw = sys.stdin.buffer if self.name == "-" else Path(self.name).open("rb")  # noqa: SIM115
            unpacked = gzip.GzipFile(fileobj=self._raw) if self.name.endswith(".gz") else self._raw
            self._stream = cast("io.BufferedReader", unpacked)
            self._chosen = layout
            self._layout: Layout = layout or _layout_of(self.name, self._first_byte())
        except OSError as error:
            raise RecordingError(f"{self.name} cannot be read: {error.strerror or error}") from error

    @property
    def total_bytes(self) -> int | None:
        """Size of the file; None for standard input."""
        return None if self.name == "-" else Path(self.name).stat().st_size

    @property
    def read_bytes(self) -> int:
        """Bytes read so far, of the file as it is on disk."""
        return 0 if self.name == "-" else self._raw.tell()

    @property
    def is_kcat(self) -> bool:
        """Tell whether its lines are kcat's; known once the first was read."""
        return self._layout == "kcat"

    def records(self) -> Iterator[LineRecord | BadLine]:
        """Records of the lines, in order."""
        rows = self._csv_rows() if self._layout == "csv" else self._json_rows()
        try:
            for row in rows:
                self.lines += 1
                yield row
        except (OSError, EOFError) as error:
            raise self._breaks_off(self._number, error) from error

    def csv_header(self) -> list[str] | None:
        """Read the header of a CSV file by itself; None, and nothing read, where that is not plain to do."""
        if self._layout != "csv":
            return None
        self.header_bytes = line = self._first_line()
        text = line.removeprefix(BYTE_ORDER_MARK).removesuffix(b"\n").removesuffix(b"\r")
        header = [name.strip() for name in text.decode("utf-8", "surrogateescape").split(",")]
        if not text or set(text) & {0, *b'"\r'} or not self._columns.fit(header):
            self.resume(None, line, 0)
            return None
        self._number = 1
        return header

    def read_on(self, most: int, lines: int) -> bytes:
        """Read up to so many bytes, none only at the end; `lines` were read before, with the header.

        Raises
        ------
        RecordingError
            The file breaks off, and all that was before has been read.
        """
        if self._first:
            first, self._first = self._first, b""
            return first
        parts: list[bytes] = []
        left = most
        try:
            if self._error is not None:
                raise self._error
            while left and (more := self._stream.read1(left)):
                parts.append(more)
                left -= len(more)
        except (OSError, EOFError) as error:
            if not parts:
                raise self._breaks_off(lines, error) from error
            self._error = error
        return b"".join(parts)

    def resume(self, header: Sequence[str] | None, first: bytes, number: int) -> None:
        """Go on at a line after `number` others: with these bytes, which were read, then what follows."""
        self._header, self._first, self._number = header, first, number

    @property
    def number(self) -> int:
        """Lines read so far, a header and blank ones included."""
        return self._number

    def are_json_lines(self) -> bool:
        """Tell whether lines are JSON values, by the first one; nothing is read."""
        if self._layout != "jsonl":
            return False
        line = self._first_line()
        self.resume(None, line, 0)
        return self._chosen is not None or (bool(line.strip()) and not is_kcat(_without_mark(line).strip()))

    def json_line(self, line: bytes, number: int) -> LineRecord:
        """Record of one line."""
        return LineRecord(number, (_without_mark(line) if number == 1 else line).strip(), offset=number)

    def csv_row(self, header: Sequence[str], line: bytes, number: int) -> LineRecord | BadLine:
        """Record of one row, a line without quotes."""
        self._number = number
        return self._csv_record(self._cells(header), line.decode("utf-8", "surrogateescape").split(","))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.name != "-":
            self._raw.close()

    def _first_line(self) -> bytes:
        try:
            return self._stream.readline()
        except (OSError, EOFError) as error:
            raise self._breaks_off(0, error) from error

    def _breaks_off(self, lines: int, error: Exception) -> RecordingError:
        return RecordingError(f"{self.name} breaks off after line {lines}: {error}")

    def _bad(self, reason: str, value: bytes = b"") -> BadLine:
        return BadLine(self._number, reason, sample_of(value), self.name)

    def _first_byte(self) -> bytes:
        peek = getattr(self._stream, "peek", None)
        head: bytes = peek(64) if peek is not None else b""
        return head.removeprefix(BYTE_ORDER_MARK).lstrip()[:1]

    def _json_rows(self) -> Iterator[LineRecord | BadLine]:
        first = self._number == 0
        for line in self._lines():
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

    def _lines(self) -> BinaryIO:
        """The stream, from what was given back on."""
        if not self._first:
            return self._stream
        return cast("BinaryIO", io.BufferedReader(_Rejoined(self._first, self._stream)))

    def _csv_rows(self) -> Iterator[LineRecord | BadLine]:
        # Bytes that are not UTF-8 become lone surrogates, which cannot be encoded again.
        encoding = "utf-8-sig" if self._header is None else "utf-8"
        text = io.TextIOWrapper(self._lines(), encoding, errors="surrogateescape", newline="")
        try:
            reader, before = csv.reader(text), self._number
            header = self._header
            if header is None:
                header = [name.strip() for name in next(reader, [])]
                self._columns.check(header, self.name)
            cells = self._cells(header)
            while True:
                try:
                    row = next(reader)
                except StopIteration:
                    return
                except csv.Error:
                    self._number = before + reader.line_num
                    yield self._bad("invalid_csv")
                    continue
                self._number = before + reader.line_num
                if row:
                    yield self._csv_record(cells, row)
        finally:
            text.detach()

    def _cells(self, header: Sequence[str]) -> _Cells:
        paths = [(i, name.split(".")) for i, name in enumerate(header) if name]
        objects = {i for i, name in enumerate(header) if name in self._columns.scores}
        return _Cells(len(header), paths, objects)

    def _csv_record(self, cells: _Cells, row: Sequence[str]) -> LineRecord | BadLine:
        if len(row) == cells.count:
            return self._row(row, cells.paths, cells.objects)
        return self._bad("wrong_number_of_columns", ",".join(row).encode(errors="replace"))

    def _row(
        self, row: Sequence[str], paths: Sequence[tuple[int, Sequence[str]]], objects: set[int]
    ) -> LineRecord | BadLine:
        """Make the value that a topic would have carried of a row."""
        value: dict[str, Any] = {}
        for i, (*above, name) in paths:
            if not row[i]:
                continue
            here = value
            for step in above:
                below = here.setdefault(step, {})
                here = below if isinstance(below, dict) else {}
            here[name] = _object(row[i]) if i in objects else row[i]
        try:
            return LineRecord(self._number, msgspec.json.encode(value), offset=self._number)
        except UnicodeEncodeError:
            return self._bad("invalid_utf8", ",".join(row).encode(errors="surrogateescape"))


class _Rejoined(io.RawIOBase):
    """Bytes that were read, and what follows them."""

    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        super().__init__()
        self._first = memoryview(first)
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        room = memoryview(buffer)
        taken = self._first[: len(room)] if len(self._first) else self._stream.read(len(room))
        self._first = self._first[len(taken) :] if len(self._first) else self._first
        room[: len(taken)] = taken
        return len(taken)


def _without_mark(line: bytes) -> bytes:
    return line.removeprefix(BYTE_ORDER_MARK)


def _names_one(header: Sequence[str], wanted: Sequence[str]) -> bool:
    return not wanted or bool(set(wanted) & set(header))


def total_bytes(recordings: Sequence[Recording]) -> int | None:
    """Size of all of them; None where one is standard input."""
    sizes = [recording.total_bytes for recording in recordings]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _object(cell: str) -> Any:
    """The JSON object of a cell; text that is none stays text, which is no valid object."""
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return cell


def _layout_of(name: str, first: bytes) -> Layout:
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix == ".csv":
        return "csv"
    if suffix in {".jsonl", ".ndjson", ".json"}:
        return "jsonl"
    return "jsonl" if first in {b"{", b""} else "csv"
