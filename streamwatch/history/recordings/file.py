"""A file of records, read as bytes once from start to end; gzipped bytes are decompressed while reading."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_LINE_MEBIBYTES: Final = 16
"""Longest line of a recording: several times Kafka's default limit of a record, escaped as kcat does."""


_READ_BYTES: Final = 1 << 17
BROKEN: Final = (OSError, EOFError, zlib.error)
"""Errors of files that cannot be read, that break off, or whose compressed bytes are damaged."""


class RecordingError(ValueError):
    """File that cannot be read as a recording; the message says what was expected."""


_GZIP: Final = b"\x1f\x8b"
_PARQUET: Final = b"PAR1"
_OTHERS: Final = (
    (b"\x28\xb5\x2f\xfd", "is compressed by zstd", "zstd -d"),
    (b"\xfd7zXZ\x00", "is compressed by xz", "xz -d"),
    (b"BZh", "is compressed by bzip2", "bzip2 -d"),
    (b"PK\x03\x04", "is a zip archive, or a spreadsheet", "unzip, or export as CSV"),
    (b"\xff\xfe", "is UTF-16 text", "iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "is UTF-16 text", "iconv -f UTF-16 -t UTF-8"),
    (b"Obj\x01", "is an Avro file", "avro-tools tojson"),
    (b"ARROW1\x00", "is an Arrow or Feather file", "export as Parquet"),
)
"""First bytes of files that cannot be read, what they are, and what converts them."""


def printable(text: str) -> str:
    """Escape what a terminal would execute or cannot show: control characters, bytes that are not UTF-8."""
    decoded = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in decoded
    )


def place_of(path: str | Path) -> object:
    """Return what two paths of one file have in common, such as a link; None for a device or a pipe.

    `-` is standard input.
    """
    try:
        found = os.fstat(sys.stdin.fileno()) if str(path) == "-" else Path(path).stat()
    except (OSError, ValueError):
        return None if str(path) == "-" else Path(path).absolute()
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def require_distinct(sources: Sequence[str | Path]) -> None:
    """Check that no file is given twice.

    Raises
    ------
    RecordingError
        Two paths are of one file, or standard input is given twice: outcomes would count twice.
    """
    seen: set[object] = set()
    for source in sources:
        place = "-" if str(source) == "-" else place_of(source)
        if place is None:
            continue
        if place in seen:
            raise RecordingError(f"{printable(str(source))}: expected each file once, got this one twice")
        seen.add(place)


class RecordedFile:
    """Open file of records.

    Parameters
    ----------
    source
        A path, or `-` for standard input.

    Raises
    ------
    RecordingError
        The file cannot be opened, or is of a kind that cannot be read (`_OTHERS`).
    """

    def __init__(self, source: str | Path) -> None:
        self.path = str(source)
        self.name = printable(self.path)
        """Path for messages."""
        self._returned = b""
        self._error: Exception | None = None
        """Error behind the bytes that `read` returned last; raised by the next `read`."""
        try:
            self._raw = sys.stdin.buffer if self.path == "-" else Path(self.path).open("rb")  # noqa: SIM115
        except OSError as error:
            raise self._unreadable(error) from error
        self.has_end = self.path != "-" and stat.S_ISREG(os.fstat(self._raw.fileno()).st_mode)
        """Whether its size is known and its end can be read first: not of standard input, pipes, devices."""
        packed = gzip.GzipFile(fileobj=self._raw) if self.path.endswith(".gz") else self._raw
        self._stream = self._lines_of(packed)
        self.is_parquet = False
        if packed is self._raw:
            try:
                self._recognise()
            except BaseException:
                self.close()
                raise

    def _recognise(self) -> None:
        """Decompress gzipped bytes under another name, and refuse kinds of files that cannot be read."""
        head = self._head()
        self.is_parquet = head.startswith(_PARQUET)
        if head.startswith(_GZIP):
            self._stream = self._lines_of(gzip.GzipFile(fileobj=self._stream))
        for first, kind, command in _OTHERS:
            if head.startswith(first):
                expected = "expected UTF-8 text, gzipped or not, or Parquet"
                raise RecordingError(f"{self.name} {kind}: {expected}; convert it first ({command})")

    def _lines_of(self, stream: Any) -> io.BufferedReader:
        return io.BufferedReader(_BoundedLines(stream, self.name), _READ_BYTES)

    @property
    def total_bytes(self) -> int | None:
        """Size of the file; None without `has_end`."""
        return os.fstat(self._raw.fileno()).st_size if self.has_end else None

    @property
    def read_bytes(self) -> int:
        """Number of bytes read so far from the file on disk, before decompression; 0 without `has_end`."""
        return self._raw.tell() if self.has_end else 0

    def first_character(self) -> bytes:
        """Peek at the first byte that is not blank, after a byte order mark.

        Raises
        ------
        RecordingError
            The file cannot be read.
        """
        return self._head().removeprefix(BYTE_ORDER_MARK).lstrip()[:1]

    def _head(self) -> bytes:
        try:
            return self._stream.peek(64)
        except BROKEN as error:
            raise self._unreadable(error) from error

    def first_line(self) -> bytes:
        """Read the first line.

        Raises
        ------
        RecordingError
            The file breaks off in this line.
        """
        try:
            return self._stream.readline()
        except BROKEN as error:
            raise self.breaks_off(0, error) from error

    def read(self, most: int, lines: int) -> bytes:
        """Read up to `most` bytes; empty only at the end.

        `lines` is the number of lines read before, with a header, for the error.

        Raises
        ------
        RecordingError
            The file breaks off, and all bytes before have been returned.
        """
        if self._returned:
            first, self._returned = self._returned, b""
            return first
        parts: list[bytes] = []
        left = most
        try:
            if self._error is not None:
                raise self._error
            while left and (more := self._stream.read1(left)):
                parts.append(more)
                left -= len(more)
        except BROKEN as error:
            if not parts:
                raise self.breaks_off(lines, error) from error
            self._error = error
        return b"".join(parts)

    def give_back(self, first: bytes) -> None:
        """Put back bytes that were read: the next read starts with them."""
        self._returned = first

    def stream(self) -> BinaryIO:
        """Return a stream of all bytes that are not read yet, including those given back."""
        if not self._returned:
            return self._stream
        return cast("BinaryIO", io.BufferedReader(_Rejoined(self._returned, self._stream)))

    def breaks_off(self, lines: int, error: Exception) -> RecordingError:
        """Build the error of a file that cannot be read after so many lines."""
        return RecordingError(f"{self.name} breaks off after line {lines}: {error}")

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.path != "-":
            self._raw.close()

    def _unreadable(self, error: Exception) -> RecordingError:
        why = error.strerror if isinstance(error, OSError) else None
        return RecordingError(f"{self.name} cannot be read: {why or error}")


class _BoundedLines(io.RawIOBase):
    """Stream that raises RecordingError at a too long line: a few kilobytes may decompress to gigabytes.

    Parameters
    ----------
    stream
        Decompressed bytes.
    name
        Name of the file, for the error.
    """

    def __init__(self, stream: Any, name: str) -> None:
        super().__init__()
        self._read1 = stream.read1
        self._name = name
        self._lines = 0
        self._unended = 0
        """Number of bytes since the last line end."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        room = memoryview(buffer)
        try:
            read: bytes = self._read1(len(room))
        except zlib.error as error:
            raise OSError(f"its compressed bytes are damaged: {error}") from error
        end = read.rfind(b"\n")
        self._unended = self._unended + len(read) if end < 0 else len(read) - end - 1
        self._lines += read.count(b"\n")
        if self._unended > MAX_LINE_MEBIBYTES << 20:
            most = f"expected at most {MAX_LINE_MEBIBYTES} MiB, got a longer line"
            raise RecordingError(f"{self._name}, line {self._lines + 1}: {most}")
        room[: len(read)] = read
        return len(read)


class _Rejoined(io.RawIOBase):
    """Stream of bytes that were put back, then of another stream."""

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
