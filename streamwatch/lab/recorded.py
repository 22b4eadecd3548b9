"""Reads recorded predictions, labels and outcomes: one JSON object per line, or CSV with a header.

Fields have their default names: `id`, `model`, `prediction`, `label`, `timestamp` (milliseconds since the
epoch), `scores`, `fold`. Blank lines are skipped; a `.gz` file is unpacked while it is read.

Record time is a line's `timestamp`; a line without one comes a millisecond after the line before it, so a
file without timestamps counts its lines as milliseconds.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Self, TypeAlias, cast

import msgspec

from streamwatch.edge.decoders.mapping import TimestampUnit
from streamwatch.lab.lines import BadLine, LineError, LineFields, Recorded, recorded, time_of

Layout: TypeAlias = Literal["jsonl", "csv"]
Clamp: TypeAlias = Callable[[int], int]

_NAMES = LineFields.__struct_fields__
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class RecordingError(ValueError):
    """The file is not a recording; the message says what was expected of it."""


class Recording:
    """A recorded stream, read once from start to end.

    Parameters
    ----------
    source
        A path, or `-` for standard input.
    layout
        `jsonl` or `csv`; None looks at the name, then at the first character.
    unit
        Unit of the `timestamp` field.

    Raises
    ------
    RecordingError
        The file cannot be read, or its CSV header names no `id`.
    """

    def __init__(self, source: str | Path, layout: Layout | None = None, unit: TimestampUnit = "ms") -> None:
        self.name = str(source)
        self.lines = 0
        """Lines that held something, so far."""
        self._unit: TimestampUnit = unit
        self._number = 0
        self._at_ms = 0
        try:
            self._raw = sys.stdin.buffer if self.name == "-" else Path(self.name).open("rb")  # noqa: SIM115
            unpacked = gzip.GzipFile(fileobj=self._raw) if self.name.endswith(".gz") else self._raw
            self._stream = cast("BinaryIO", unpacked)
            self._layout: Layout = layout or _layout_of(self.name, self._first_byte())
        except OSError as error:
            raise RecordingError(f"{self.name} cannot be read: {error.strerror or error}") from error

    @property
    def total_bytes(self) -> int | None:
        """Size of the file; None for standard input."""
        return None if self.name == "-" else Path(self.name).stat().st_size

    @property
    def read_bytes(self) -> int:
        """How far reading has come, in bytes of the file as it is on disk."""
        return 0 if self.name == "-" else self._raw.tell()

    def items(self, clamp: Clamp) -> Iterator[Recorded]:
        """What the lines hold, in order; `clamp` bounds record time."""
        rows = self._json_rows() if self._layout == "jsonl" else self._csv_rows()
        try:
            for row in rows:
                self.lines += 1
                yield row if isinstance(row, BadLine) else self._item(row, clamp)
        except (OSError, EOFError) as error:
            raise RecordingError(f"{self.name} breaks off after line {self._number}: {error}") from error

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

    def _first_byte(self) -> bytes:
        peek = getattr(self._stream, "peek", None)
        head: bytes = peek(64) if peek is not None else b""
        return head.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1]

    def _json_rows(self) -> Iterator[LineFields | BadLine]:
        decode = msgspec.json.Decoder(LineFields).decode
        for line in self._stream:
            self._number += 1
            text = line.removeprefix(_BYTE_ORDER_MARK) if self._number == 1 else line
            if not text.strip():
                continue
            try:
                yield decode(text)
            except msgspec.ValidationError:
                yield BadLine(self._number, "not_an_object")
            except UnicodeDecodeError:
                yield BadLine(self._number, "invalid_utf8")
            except (msgspec.DecodeError, RecursionError):
                yield BadLine(self._number, "invalid_json")

    def _csv_rows(self) -> Iterator[LineFields | BadLine]:
        # Bytes that are not UTF-8 become lone surrogates, which no field may contain.
        text = io.TextIOWrapper(self._stream, "utf-8-sig", errors="surrogateescape", newline="")
        try:
            reader = csv.reader(text)
            header = [name.strip() for name in next(reader, [])]
            if "id" not in header or not {"prediction", "label"} & set(header):
                found = ", ".join(header) or "nothing"
                raise RecordingError(
                    f"{self.name}: expected a CSV header with id and model, prediction, label; got {found}"
                )
            places = [(i, name) for i, name in enumerate(header) if name in _NAMES]
            while True:
                try:
                    row = next(reader)
                except StopIteration:
                    return
                except csv.Error:
                    self._number = reader.line_num
                    yield BadLine(self._number, "invalid_csv")
                    continue
                self._number = reader.line_num
                if len(row) == len(header):
                    yield LineFields(**{name: row[i] or None for i, name in places})
                elif row:
                    yield BadLine(self._number, "wrong_number_of_columns")
        finally:
            text.detach()

    def _item(self, fields: LineFields, clamp: Clamp) -> Recorded:
        try:
            stamp = time_of(fields, self._unit)
            at_ms = clamp(self._at_ms + 1 if stamp is None else stamp)
            item = recorded(fields, stamp, at_ms)
        except LineError as error:
            return BadLine(self._number, str(error))
        self._at_ms = at_ms
        return item


def _layout_of(name: str, first: bytes) -> Layout:
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix == ".csv":
        return "csv"
    if suffix in {".jsonl", ".ndjson", ".json"}:
        return "jsonl"
    return "jsonl" if first in {b"{", b""} else "csv"
