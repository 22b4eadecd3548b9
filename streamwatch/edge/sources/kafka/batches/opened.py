"""Batches with accessible records, decompressed if need be."""

from __future__ import annotations

import importlib
import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np

from streamwatch.core.records.fetched import APPENDED, KEY, OFFSET, TIMESTAMP, VALUE, VALUE_BYTES
from streamwatch.edge.extras import command_for
from streamwatch.edge.sources.kafka.batches.frames import APPEND_TIME, Batch
from streamwatch.edge.sources.kafka.batches.record import message_row, rows_within
from streamwatch.edge.sources.kafka.batches.scan import Scanned, new_rows

# Decompression of record batches to a bounded size.
#
# Every codec but snappy writes into an array of the allowed size, whose unused pages cost nothing. For snappy
# an array of the size that the batch claims is made, after that was compared with the allowed size.


Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
NAMES: Final = {GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}
"""Names of codecs by their number in the attributes of a batch."""

_MEMBERS = 16
"""Gzip members of one batch at most: producers write one, and setting up each takes time."""
_STEP_BYTES = 1 << 16
"""Bytes of gzip read and written at a time."""
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEAD_BYTES = 16
_FULL = "write whole buffer"
"""Part of the codec package's message when the output does not fit, for which it has no exception class."""


class Oversized(Exception):  # noqa: N818 - it names what is the case
    """The batch decompresses to more than allowed."""


class Undecompressable(Exception):  # noqa: N818 - it names what is the case
    """The batch is not in the format of its codec, is cut off, or names an unknown codec."""


class CodecMissing(Exception):  # noqa: N818 - it names what is the case
    """The package that decompresses snappy, lz4 and zstd is not installed."""

    def __init__(self, codec: str) -> None:
        super().__init__(
            f"records are compressed with {codec}, for which a package is missing:"
            f" install it with {command_for('compression')}"
        )


def decompress(codec: int, data: memoryview, most: int) -> Bytes:
    """Decompress to at most `most` bytes.

    Parameters
    ----------
    codec
        1 gzip, 2 snappy, 3 lz4, 4 zstd.
    data
        Bytes after the header of the batch.
    most
        Decompressed bytes allowed.

    Returns
    -------
    uint8, shape (n,), read-only.

    Raises
    ------
    Oversized
        There are more than `most` bytes.
    Undecompressable
        The data are not in the format of the codec, are cut off, or the codec is unknown.
    CodecMissing
        The codec needs a package that is not installed.
    """
    match codec:
        case 1:
            return _gzip(data, most)
        case 2:
            return _snappy(data, most)
        case 3 | 4:
            return _framed(NAMES[codec], data, most)
        case _:
            raise Undecompressable(f"unknown codec {codec}")


def _gzip(data: memoryview, most: int) -> Bytes:
    room = np.empty(most, np.uint8)
    at = length = members = 0
    while at < len(data):
        if members == _MEMBERS:
            raise Undecompressable(f"gzip: more than {_MEMBERS} members")
        at, length = _gzip_member(data, at, room, length)
        members += 1
    if not members:
        raise Undecompressable("gzip: empty")
    return _frozen(room[:length])


def _gzip_member(data: memoryview, at: int, room: Bytes, length: int) -> tuple[int, int]:
    """Decompress the member that begins at `at` to `room[length:]`; return the ends of input and output.

    The steps are small, because zlib holds the interpreter lock while it assembles a step's output.
    """
    member = zlib.decompressobj(wbits=31)
    waiting: bytes | memoryview = b""
    while not member.eof:
        if not waiting:
            if at == len(data):
                raise Undecompressable("gzip: ends early")
            waiting = data[at : at + _STEP_BYTES]
            at += len(waiting)
        try:
            part = member.decompress(waiting, min(_STEP_BYTES, len(room) - length + 1))
        except zlib.error as error:
            raise Undecompressable(f"gzip: {error}") from None
        if length + len(part) > len(room):
            raise Oversized
        room[length : length + len(part)] = np.frombuffer(part, np.uint8)
        length += len(part)
        waiting = member.unconsumed_tail
    return at - len(member.unused_data), length


def _framed(name: str, data: memoryview, most: int) -> Bytes:
    """Decompress the frames of lz4 or zstd, which may be several."""
    into = getattr(_package(name), name).decompress_into
    room = np.empty(most, np.uint8)
    return _frozen(room[: _written(name, into, data, room)])


def _snappy(data: memoryview, most: int) -> Bytes:
    """Decompress one block, or the Java library's framing: a header, then big-endian lengths and blocks."""
    snappy = _package("snappy").snappy
    blocks = [data]
    if bytes(data[: len(_XERIAL)]) == _XERIAL:
        blocks = _blocks(data[_XERIAL_HEAD_BYTES:])
    claims = [_claimed(snappy, block) for block in blocks]
    if sum(claims) > most:
        raise Oversized
    room, length = np.empty(sum(claims), np.uint8), 0
    for block, claimed in zip(blocks, claims, strict=True):
        length += _written("snappy", snappy.decompress_raw_into, block, room[length : length + claimed])
    return _frozen(room[:length])


def _blocks(data: memoryview) -> list[memoryview]:
    blocks: list[memoryview] = []
    at = 0
    while at < len(data):
        if len(data) - at < 4:
            raise Undecompressable("snappy: ends early")
        (length,) = struct.unpack_from(">i", data, at)
        at += 4
        if length <= 0 or length > len(data) - at:
            raise Undecompressable("snappy: a block ends beyond the batch")
        blocks.append(data[at : at + length])
        at += length
    return blocks


def _claimed(snappy: Any, block: memoryview) -> int:
    try:
        return snappy.decompress_raw_len(block)
    except Exception as error:  # noqa: BLE001 - as below
        raise Undecompressable(f"snappy: {error}") from None


def _written(name: str, into: Callable[[memoryview, Bytes], int], data: memoryview, room: Bytes) -> int:
    """Run a codec; return the number of bytes that it wrote to `room`."""
    try:
        return into(data, room)
    except Exception as error:  # noqa: BLE001 - the type of exception for invalid data differs by codec
        if _FULL in str(error):
            raise Oversized from None
        raise Undecompressable(f"{name}: {error}") from None


def _frozen(data: Bytes) -> Bytes:
    data.flags.writeable = False
    return data


@cache
def _installed() -> Any:
    try:
        return importlib.import_module("cramjam")
    except ImportError:
        return None


def _package(codec: str) -> Any:
    package = _installed()
    if package is None:
        raise CodecMissing(codec)
    return package


Rows: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class Contradictory(Exception):  # noqa: N818 - it names what is the case
    """A batch whose content contradicts its header."""


class OpenBatch:
    """A batch with decompressed records, read a part at a time.

    Parameters
    ----------
    batch
        Its header.
    data
        Decompressed bytes of its records.
    messages
        Rows of the messages of a batch of format v0 or v1; None for a batch of v2.
    """

    def __init__(self, batch: Batch, data: Bytes, messages: Rows | None = None) -> None:
        self.batch = batch if messages is None else batch._replace(records=len(messages))
        self.data = data
        self._messages = messages
        self.at = 0
        """Number of bytes of `data` read so far."""
        self.delta = -1
        """Offset delta of the last record read; -1 before the first."""
        self.found = 0
        """Number of records read so far."""

    @property
    def record_bytes(self) -> int:
        """Average bytes of a record, at least 1."""
        return len(self.data) // max(1, self.batch.records) + 1

    def scan(self, scanner: Scanner, room: int) -> tuple[Rows, bool]:
        """Read up to `room` records; return their rows, and whether the next record is broken."""
        batch = self.batch
        if self._messages is not None:
            rows, after = self._messages[self.found : self.found + room], self.found + room
            self.at = int(self._messages[after, KEY]) if after < len(self._messages) else len(self.data)
            self.found += len(rows)
            return rows, False
        append_ms = max(batch.max_ms, 0) if batch.attributes & APPEND_TIME else -1
        found, self.at, self.delta, broken = scanner.scan(
            self.data,
            self.at,
            min(room, scanner.room),
            batch.base_offset,
            batch.last_delta,
            self.delta,
            batch.first_ms,
            append_ms,
            scanner.rows,
        )
        self.found += found
        rows = scanner.rows[:found].copy()
        rows[:, APPENDED] = append_ms >= 0
        return rows, bool(broken)


def open_plain(batch: Batch, answer: memoryview) -> OpenBatch:
    """Open an uncompressed batch, which is in `answer`."""
    content = answer[batch.body : batch.end]
    data = np.frombuffer(content, np.uint8)
    if batch.magic == 2:
        return OpenBatch(batch, data)
    row = message_row(batch._replace(body=0, end=len(content)), content)
    return OpenBatch(batch, data, np.array([row], np.int64))


def open_compressed(batch: Batch, answer: memoryview, most: int) -> OpenBatch:
    """Decompress a batch to no more than `most` bytes.

    Raises
    ------
    Oversized
        It decompresses to more.
    Undecompressable
        As from `decompress`.
    Contradictory
        A batch of format v0 or v1 has no content, or messages that contradict its header.
    CodecMissing
        The package of its codec is not installed.
    """
    if batch.magic == 2:
        return OpenBatch(batch, decompress(batch.codec, answer[batch.body : batch.end], most))
    row = message_row(batch, answer)
    at, length = row[VALUE], row[VALUE_BYTES]
    if length < 0:
        raise Contradictory("a message without content")
    data = decompress(batch.codec, answer[at : at + length], most)
    rows = rows_within(batch, memoryview(data.data), row[TIMESTAMP])
    offsets = rows[:, OFFSET]
    if not len(rows) or (offsets[1:] <= offsets[:-1]).any() or offsets[-1] != batch.base_offset:
        raise Contradictory("messages that do not fit it")
    return OpenBatch(batch, data, rows)


# Compiled functions that read batches, and the rows that they write to.


# Several plain batches are read in one pass; the others are left to the reader, batch by batch.
#
# For a batch of a hundred records, the interpreter's steps per batch cost more than scanning its records. The
# pass stops at the first batch that is not plain, and the reader continues there.


Passed: TypeAlias = tuple[int, int, int]
"""(rows written; position of the next batch; its expected offset)."""

PlainBatches: TypeAlias = Callable[..., Passed]
"""Function of (data, at, room, least, most, largest, rows): see `whole_batches`."""


@cache
def compiled_plain_batches() -> PlainBatches | None:
    """Compile `whole_batches`, or load it from the cache; None without a CRC-32C instruction.

    On processors other than x86-64 with SSE 4.2, batches are read one by one, and the client's library
    computes their checksums.
    """
    from streamwatch.edge.sources.kafka.batches import whole_batches as checksum  # noqa: PLC0415 - nobody else waits for numba

    if not checksum.has_instruction():
        return None
    import numpy as np  # noqa: PLC0415

    from streamwatch.edge.sources.kafka.batches.whole_batches import whole_batches  # noqa: PLC0415

    nothing: Any = np.frombuffer(b"\0\0", np.uint8)
    whole_batches(nothing, 0, 0, 0, -1, 0, new_rows(1))
    return whole_batches


class Scanner:
    """A scan function for one batch, one for several plain batches (or None), and the rows they write to."""

    def __init__(self, scan: Callable[..., Scanned], room: int, plain: PlainBatches | None = None) -> None:
        self.scan = scan
        self.plain = plain
        self.rows = new_rows(room)
        self.room = room
