r"""Export of a state to one file, and import on any machine: all families, entry by entry.

    streamwatch-state 1\n
    frame …            length and CRC-32 of what follows (big-endian), then msgpack, deflated
        {schema, identity, created_s}                          the first
        [family, [key, value, key, value, …]]                  about a megabyte each
        {counts, digest}                                       the last: BLAKE2b of all frames before it

Frames are written and read one at a time. A file that was cut off lacks the last frame, a file that was
altered fails a checksum; an import of either fails and leaves the directory as it was.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, Final

import msgspec

from streamwatch.edge.stores.kind import StateFailed, StateNewer, StateRefused
from streamwatch.edge.stores.rocksdb.database import FAMILIES, MEBIBYTE, SCHEMA, Database
from streamwatch.edge.stores.rocksdb.inspect import Inspection
from streamwatch.edge.stores.rocksdb.opening import Format, is_convertible, unexpected_files, write_format

MAGIC: Final = b"streamwatch-state 1\n"
ORDER: Final = ("meta", *(family for family in FAMILIES if family != "meta"))
"""`meta` comes first: with it, an import that was interrupted is not mistaken for an empty directory."""
FRAME_BYTES: Final = MEBIBYTE
_FRAME: Final = Struct(">II")
_YEAR_5138_S: Final = 1e11
_ENDING: Final = "it is cut off or was altered; export the state again"


class Head(msgspec.Struct, frozen=True):
    """Contents of the first frame."""

    schema: int
    identity: str
    created_s: float


class Tail(msgspec.Struct, frozen=True):
    """Contents of the last frame."""

    counts: Mapping[str, int]
    digest: bytes


_encode = msgspec.msgpack.Encoder().encode
_head = msgspec.msgpack.Decoder(Head).decode
_body = msgspec.msgpack.Decoder(tuple[str, list[bytes]] | Tail).decode


def export_state(
    state: Inspection, file: BinaryIO, report: Callable[[int], None] = lambda _: None
) -> tuple[int, int]:
    """Write everything of a state; return the numbers of entries and bytes.

    `report` is called after every frame with the number of entries written so far.
    """
    digest = blake2b()
    size = len(MAGIC)

    def put(what: Any) -> None:
        deflated = zlib.compress(_encode(what), 1)
        frame = _FRAME.pack(len(deflated), zlib.crc32(deflated)) + deflated
        digest.update(frame)
        file.write(frame)
        nonlocal size
        size += len(frame)

    file.write(MAGIC)
    put(Head(state.schema, state.identity, state.created_s))
    counts = dict.fromkeys(ORDER, 0)
    done = 0
    for family in ORDER:
        entries: list[bytes] = []
        gathered = 0
        for key, value in state.items(family):
            entries += (key, value)
            gathered += len(key) + len(value)
            counts[family] += 1
            if gathered >= FRAME_BYTES:
                put((family, entries))
                done += len(entries) // 2
                report(done)
                entries, gathered = [], 0
        if entries:
            put((family, entries))
            done += len(entries) // 2
    put(Tail(counts, digest.digest()))
    file.flush()
    report(done)
    return done, size


def import_state(file: BinaryIO, directory: Path, report: Callable[[int], None] = lambda _: None) -> Head:
    """Make a state from an export, in a directory that is empty or absent.

    Raises
    ------
    StateRefused
        If the file is incomplete or altered, its schema is not this program's, or the directory is not
        empty; the directory is left as it was.
    StateFailed
        If the disk fails.
    """
    frames = _frames(file)
    head = _first(frames)
    made = not directory.exists()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        before, unexpected = set(directory.iterdir()), unexpected_files(directory)
    except OSError as error:
        raise StateFailed(f"{directory} cannot be written: {error}") from error
    if unexpected:
        raise StateRefused(
            f"{directory} is not empty (there is {min(unexpected)!r}): name an empty directory, or move away "
            "what is there; nothing was changed"
        )
    try:
        _fill(directory, frames, report)
        _date(directory, head.created_s)
        write_format(directory, Format(head.schema, head.identity))
    except BaseException:
        for path in set(directory.iterdir()) - before:
            path.unlink()
        if made:
            directory.rmdir()
        raise
    return head


def _fill(directory: Path, frames: Iterator[tuple[bytes, bytes]], report: Callable[[int], None]) -> None:
    counts = dict.fromkeys(ORDER, 0)
    database = Database(directory, 8 * MEBIBYTE, 48 * MEBIBYTE)
    try:
        for digest, frame in frames:
            what = _decoded(_body, frame)
            if isinstance(what, Tail):
                if what.digest != digest or what.counts != counts or next(frames, None) is not None:
                    raise StateRefused(f"the export is not whole: {_ENDING}")
                break
            family, entries = what
            if family not in counts or len(entries) % 2:
                raise StateRefused(f"the export holds a part {family!r} that there is not: {_ENDING}")
            with database.batch() as batch:
                database.into(family, batch)
                for key, value in zip(entries[::2], entries[1::2], strict=True):
                    batch[key] = value
            counts[family] += len(entries) // 2
            report(sum(counts.values()))
        else:
            raise StateRefused(f"the export has no end: {_ENDING}")
        database.flush()
    finally:
        database.close()


def _date(directory: Path, created_s: float) -> None:
    identity = directory / "IDENTITY"
    if identity.exists():
        os.utime(identity, (created_s, created_s))


def _first(frames: Iterator[tuple[bytes, bytes]]) -> Head:
    _, frame = next(frames)
    head = _decoded(_head, frame)
    if not 0 <= head.created_s < _YEAR_5138_S:  # false of NaN, too
        raise StateRefused(f"the export says that its state was made at {head.created_s:g} s: {_ENDING}")
    if head.schema > SCHEMA:
        raise StateNewer(
            f"the export has schema {head.schema}, this program knows up to {SCHEMA}: "
            "import it with the version that wrote it, or a newer one"
        )
    if head.schema < SCHEMA and not is_convertible(head.schema, SCHEMA):
        raise StateRefused(
            f"the export has schema {head.schema}, this program reads {SCHEMA} and nothing older: import it "
            "with the version that wrote it"
        )
    return head


def _decoded(decode: Callable[[bytes], Any], frame: bytes) -> Any:
    try:
        return decode(zlib.decompress(frame))
    except (ValueError, RecursionError, zlib.error) as error:  # DecodeError is a ValueError
        raise StateRefused(f"the export cannot be read ({error}): {_ENDING}") from error


def _frames(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """Yield (digest of all frames before, inflated contents) of each frame."""
    if file.read(len(MAGIC)) != MAGIC:
        raise StateRefused("the file is no export of a state: it does not begin with `streamwatch-state 1`")
    digest = blake2b()
    number = 0
    while True:
        number += 1
        begin = file.read(_FRAME.size)
        if not begin and number > 1:
            break
        length, checksum = _FRAME.unpack(begin) if len(begin) == _FRAME.size else (0, 1)
        held = _read(file, length)
        if len(held) < length or zlib.crc32(held) != checksum:
            raise StateRefused(f"part {number} of the export fails its checksum: {_ENDING}")
        yield digest.digest(), held
        digest.update(begin + held)


def _read(file: BinaryIO, length: int) -> bytes:
    """Read up to `length` bytes, in pieces, so that a false length allocates no more than the file has."""
    parts: list[bytes] = []
    while length > 0 and (part := file.read(min(length, 4 * MEBIBYTE))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


# Names of backups, which encode the times at which they were begun.


_NAME: Final = "state-%Y%m%dT%H%M%S.%fZ"


def backup_name(seconds: float) -> str:
    """Name a backup that is begun at this time, in seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).strftime(_NAME)


def begun_at(path: Path) -> float | None:
    """Return when a backup was begun, in seconds since the epoch; None for a path that is no backup's."""
    try:
        return datetime.strptime(path.name, _NAME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def backups_in(directory: Path) -> list[Path]:
    """List the complete backups in a directory, the oldest first."""
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if begun_at(path) is not None)
