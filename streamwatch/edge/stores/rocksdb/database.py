"""RocksDB as the state uses it: six column families in one directory, with one write-ahead log.

A commit is one write batch over all families, so a crash leaves all of it or nothing. Recovery stops at the
first incomplete record of the log (`point_in_time`): a power cut may leave pages that were never flushed in
any order, and flushed records precede them. A stricter mode would refuse to open after an ordinary power cut.
Where the log breaks off before contents that other files already have, RocksDB itself refuses to open.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from struct import Struct
from typing import Any, Final

import msgspec
from rocksdict import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    WriteBatch,
)

from streamwatch.edge.stores.kind import (
    StateDamaged,
    StateFailed,
    StateForbidden,
    StateInUse,
    StateRefused,
)

# Errors of RocksDB → errors that an operator can act on.


_FILE = re.compile(r"[^\s:,'\"()]*(?:\d{6,}\.(?:sst|log|ldb|blob)|MANIFEST-\d+|OPTIONS-\d+|/CURRENT)")
_DAMAGED = ("Corruption:", "checksum mismatch", "No such file or directory", "does not exist")
_UNNAMED = {"CURRENT file": "CURRENT", "ahead of WALs": "*.log"}
"""Text in an error of RocksDB that names no file → the damaged file."""
_FORBIDDEN = ("Permission denied", "Operation not permitted", "Read-only file system")
_HELD = ("Resource temporarily unavailable", "No locks available", "lock hold by")
_RESTORE = "restore a backup of the directory, or move it away to start afresh"


@contextmanager
def failures(directory: Path) -> Generator[None]:
    """Turn RocksDB's errors in the block, exceptions without a type, into StateFailed or StateRefused."""
    try:
        yield
    except (StateFailed, StateRefused):
        raise
    except Exception as error:
        raise translated(error, directory) from error


def translated(error: Exception, directory: Path) -> Exception:
    """Return the StateFailed or StateRefused for an error of RocksDB; other errors unchanged."""
    if type(error) is not Exception and not isinstance(error, OSError):
        return error
    text = str(error)
    if isinstance(error, FileExistsError | NotADirectoryError):
        return StateRefused(f"{directory} is not a directory: name another in `state.directory` ({text})")
    if any(sign in text for sign in _FORBIDDEN):
        return StateForbidden(
            f"the state in {directory} may not be read or written ({text}): "
            "give the daemon's user the right to, or name another directory in `state.directory`"
        )
    if "/LOCK:" in text and any(sign in text for sign in _HELD):
        return StateInUse(
            f"the state in {directory} is in use by another process: one directory serves one daemon"
        )
    if any(sign in text for sign in _DAMAGED):
        where = _damaged_file(text, directory)
        return StateDamaged(f"the state is damaged: {where} is not what was written ({text}); {_RESTORE}")
    return StateFailed(f"the state in {directory} could not be read or written: {text}")


def _damaged_file(text: str, directory: Path) -> str:
    if named := _FILE.search(text):
        return str(directory / Path(named.group()).name)
    for sign, name in _UNNAMED.items():
        if sign in text:
            return str(directory / name)
    return f"a file in {directory}"


# Check that RocksDB will read its manifest to the end, made before it opens a directory.
#
# A manifest is a log of blocks of 32 KiB. A record in it is `[checksum 4][length 2][type 1][content]`; the
# checksum covers type and content (RocksDB wiki, "Write Ahead Log File Format"), not the length. A record
# whose damaged length reaches past the end of the file looks like a write that a crash cut short. RocksDB
# drops it and all records after it, and then removes the files that the remaining records do not name.
#
# The cases can be distinguished: after a crash the content is incomplete and its checksum fits no length;
# with a damaged length the content is complete, and its true length is the one that the checksum fits.


MANIFEST_BLOCK_BYTES: Final = 32_768
HEADER_BYTES: Final = 7
_POLYNOMIAL: Final = 0x82F63B78
"""Reflected polynomial of CRC-32C."""
_MASK: Final = 0xA282EAD8
"""Number that RocksDB adds to a rotated checksum before it stores it."""


def require_whole_manifest(directory: Path) -> None:
    """Refuse a directory whose manifest RocksDB would silently read only in part; reads at most 32 KiB.

    A directory without a manifest, or whose `CURRENT` names none, is left for RocksDB to judge.

    Raises
    ------
    StateDamaged
        If a record's checksum fits another length than the one it states.
    """
    try:
        named = (directory / "CURRENT").read_bytes().strip()
        path = directory / Path(named.decode()).name
        with path.open("rb") as file:
            size = file.seek(0, 2)
            # Only in a last block that is not full does RocksDB treat a record that is too long as cut short.
            begin = file.seek(size // MANIFEST_BLOCK_BYTES * MANIFEST_BLOCK_BYTES)
            block = file.read()
    except (FileNotFoundError, IsADirectoryError, ValueError):
        return
    position = 0
    while (content := position + HEADER_BYTES) <= len(block):
        length = int.from_bytes(block[position + 4 : position + 6], "little")
        if content + length > len(block):
            found = _length_of(int.from_bytes(block[position : position + 4], "little"), block[content - 1 :])
            if found is not None:
                raise StateDamaged(
                    f"the state is damaged: {path} is not what was written (the record at byte "
                    f"{begin + position} has a length of {length} bytes, its checksum is that of {found}); "
                    f"{_RESTORE}"
                )
            return
        position = content + length


def _length_of(stored: int, typed: bytes) -> int | None:
    """Bytes of content, after the byte of type, that have the checksum `stored`; None where none do."""
    rotated = (stored - _MASK) & 0xFFFFFFFF
    wanted = (rotated >> 17 | rotated << 15) & 0xFFFFFFFF ^ 0xFFFFFFFF
    table = [_step(byte) for byte in range(256)]
    checksum = 0xFFFFFFFF
    for count, byte in enumerate(typed):
        checksum = checksum >> 8 ^ table[(checksum ^ byte) & 0xFF]
        if checksum == wanted:
            return count
    return None


def _step(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


COLD_RUNS: Final = "runs"
"""Family of cold entries."""
FAMILIES: Final = (
    "columns",
    COLD_RUNS,
    "journal",
    "models",
    "outbox",
    "meta",
)
MEBIBYTE: Final = 2**20
BLOCK_BYTES: Final = 4096
OPEN_FILES: Final = 400
"""Files that RocksDB keeps open at most."""
LEVELS: Final = 7
"""Levels of files in a family, as RocksDB has them by default."""


def options_of(family: str | None, cache: Cache, write_buffer_bytes: int) -> Options:
    """Options of a family, or of the database (None), that bound memory, open files and logs."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_paranoid_checks(True)
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    options.set_db_write_buffer_size(write_buffer_bytes)
    options.set_write_buffer_size(max(MEBIBYTE, write_buffer_bytes // 3))
    options.set_max_write_buffer_number(3)
    options.set_max_total_wal_size(2 * write_buffer_bytes)
    options.set_max_open_files(OPEN_FILES)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(3)
    options.set_max_log_file_size(4 * MEBIBYTE)
    options.set_max_manifest_file_size(16 * MEBIBYTE)
    options.set_stats_dump_period_sec(0)
    options.set_bytes_per_sync(MEBIBYTE)
    # Most values are removed soon; files of level 0 would be compressed only to be read and compressed again.
    lz4 = DBCompressionType.lz4()
    options.set_compression_per_level([DBCompressionType.none(), *[lz4] * (LEVELS - 1)])
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_target_file_size_base(32 * MEBIBYTE)
    options.set_block_based_table_factory(table_of(family, cache))
    if family == COLD_RUNS:  # digests do not compress
        options.set_compression_per_level([DBCompressionType.none()] * LEVELS)
    return options


def table_of(family: str | None, cache: Cache) -> BlockBasedOptions:
    """Options of a family's files: their block layout, and which parts are cached in memory."""
    table = BlockBasedOptions()
    table.set_format_version(5)
    if family == COLD_RUNS:
        # Values are hardly ever read twice, so a cache would not help. In memory are the keys of every
        # sixteenth value, 7 MB for a hundred million entries.
        table.disable_cache()
        table.set_cache_index_and_filter_blocks(False)
        table.set_index_block_restart_interval(16)
        table.set_block_size(BLOCK_BYTES // 4)  # less than one value, so that a read loads no other
        return table
    table.set_block_cache(cache)
    table.set_cache_index_and_filter_blocks(True)
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)  # a file's whole filter exceeds a shard of the cache
    table.set_metadata_block_size(BLOCK_BYTES)
    table.set_pin_top_level_index_and_filter(True)
    return table


class Database:
    """An open directory of RocksDB.

    Parameters
    ----------
    directory
        Directory of the database; made where it is absent, except for `read_only`.
    cache_bytes, write_buffer_bytes
        See `RocksSpec`.
    read_only
        Whether it is opened beside a process that writes to it.
    open_files
        Files that RocksDB keeps open at most.
    recovery
        How much of a damaged log is accepted; None: all before the first incomplete record.

    Raises
    ------
    StateRefused, StateFailed
        If it cannot be opened; as StateDamaged, if a file is not what was written.
    """

    def __init__(
        self,
        directory: Path,
        cache_bytes: int,
        write_buffer_bytes: int,
        *,
        read_only: bool = False,
        open_files: int = OPEN_FILES,
        recovery: DBRecoveryMode | None = None,
    ) -> None:
        self.directory = directory
        cache = Cache.new_hyper_clock_cache(cache_bytes, BLOCK_BYTES)
        access = AccessType.read_only(False) if read_only else AccessType.read_write()
        options = options_of(None, cache, write_buffer_bytes)
        options.set_max_open_files(open_files)
        if recovery is not None:
            options.set_wal_recovery_mode(recovery)
        with failures(directory):
            require_whole_manifest(directory)
            self._database = Rdict(
                str(directory),
                options,
                {family: options_of(family, cache, write_buffer_bytes) for family in FAMILIES},
                access,
            )
            self._families = {family: self._database.get_column_family(family) for family in FAMILIES}
            self._handles = {family: self._database.get_column_family_handle(family) for family in FAMILIES}

    @property
    def raw(self) -> Rdict:
        """The open database object of the client library."""
        return self._database

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return the value of a key; None where it is absent."""
        with failures(self.directory):
            return self._families[family].get(key)

    def get_all(self, family: str, keys: list[bytes]) -> Sequence[bytes | None]:
        """Return the values of many keys, in their order; None for each that is absent."""
        with failures(self.directory):
            asked: Any = keys
            values: Any = self._families[family].get(asked)
            return values

    def items(self, family: str, since: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Iterate over (key, value) of a family in key order, from `since` on; raises if a read fails."""
        with failures(self.directory):
            found = self._families[family].iter()
            try:
                if since:
                    found.seek(since)
                else:
                    found.seek_to_first()
                while found.valid():
                    yield found.key(), found.value()
                    found.next()
                found.status()
            finally:
                del found  # kept alive by a traceback, it would keep the directory locked

    @contextmanager
    def batch(self) -> Generator[WriteBatch]:
        """Write a batch when the block ends, all or nothing; it is on the disk only after `flush`.

        `into` chooses the family of the writes that follow.
        """
        batch = WriteBatch(raw_mode=True)
        with failures(self.directory):
            try:
                yield batch
                self._database.write(batch)
            finally:
                batch.set_default_column_family(None)  # or a traceback that has it keeps the directory locked

    def into(self, family: str, batch: WriteBatch) -> None:
        """Make this family the one that later writes of the batch go to."""
        batch.set_default_column_family(self._handles[family])

    def replace(self, family: str, values: Iterable[tuple[bytes, bytes | None]], batch: WriteBatch) -> None:
        """Add values of a family to the batch, by key; None removes the key."""
        self.into(family, batch)
        for key, value in values:
            if value is None:
                del batch[key]
            else:
                batch[key] = value

    def delete_range(self, family: str, first: bytes, end: bytes, batch: WriteBatch) -> None:
        """Add to the batch the removal of a family's keys from `first` up to, not including, `end`."""
        batch.delete_range(first, end, self._handles[family])

    def delete(self, family: str, key: bytes, batch: WriteBatch) -> None:
        """Add to the batch the removal of a key, whatever family `into` has chosen."""
        batch.delete(key, self._handles[family])

    def flush(self) -> None:
        """Return once all earlier writes are on the disk."""
        with failures(self.directory):
            self._database.flush_wal(True)

    def copy_to(self, directory: Path) -> None:
        """Copy the database, with all earlier writes, to a new directory.

        Files that never change are hard-linked on the same file system, and copied to another.
        """
        with failures(directory):
            Checkpoint(self._database).create_checkpoint(str(directory))

    def compact(self) -> None:
        """Compact all files, so that overwritten values no longer use space."""
        with failures(self.directory):
            for family in self._families.values():
                family.flush()
                family.compact_range(None, None)

    def compact_range(self, family: str, first: bytes, end: bytes) -> None:
        """Free the disk space of a family's removed keys from `first` up to, not including, `end`."""
        with failures(self.directory):
            self._families[family].compact_range(first, end)

    def figure(self, family: str, name: str) -> int:
        """Return an integer property of RocksDB for a family; 0 where it has none."""
        return self._families[family].property_int_value(f"rocksdb.{name}") or 0

    def close(self) -> None:
        """Close the database and release its lock; a failure here loses nothing that is durable.

        After a failure of the disk, the client raises again for each part, which is closed nevertheless.
        """
        self._handles.clear()
        opened = [*self._families.values(), self._database] if self._families else []
        self._families.clear()
        for each in opened:
            with suppress(StateFailed, StateRefused), failures(self.directory):
                each.close()


def size_on_disk(directory: Path) -> int:
    """Return the bytes of all files in a directory."""
    total = 0
    for path in directory.iterdir():
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue  # RocksDB removed it meanwhile
    return total


# Keys on disk: numbers big-endian, so that they sort.


_NUMBER = Struct(">Q")

STATE_KEY: Final = b"state"
IDENTITY_KEY: Final = b"identity"
SECTION_PREFIX: Final = b"section/"
PUBLICATION_PREFIX: Final = b"publication/"


def number_key(number: int) -> bytes:
    """Encode a number as a key whose byte order is that of the numbers."""
    return _NUMBER.pack(number)


def key_number(key: bytes) -> int:
    """Decode a key that `number_key` made."""
    return int.from_bytes(key, "big")


# Manifest of a state, in the family `meta`.


SCHEMA = 13
"""Version of everything on disk, raised by any change of meaning. Until the first release, a state of an
older schema is refused."""


class StoreManifest(msgspec.Struct, frozen=True, array_like=True):
    """Manifest of a state as of its last commit."""

    commits: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoreManifest).decode


def encoded(manifest: StoreManifest) -> bytes:
    """Encode the manifest for the store."""
    return _encode(manifest)


def manifest_of(database: Database) -> StoreManifest | None:
    """Read the manifest of the last commit; None before the first; raises msgspec.DecodeError for another."""
    value = database.get("meta", STATE_KEY)
    return None if value is None else _decode(value)


def identity_of(database: Database) -> str | None:
    """Read the identity that the state got when it was made; None before that."""
    value = database.get("meta", IDENTITY_KEY)
    return None if value is None else value.decode()


def sections_of(database: Database) -> dict[str, bytes]:
    """Read the sections of the last commit, by name."""
    return {key.decode(): value for key, value in prefixed(database, SECTION_PREFIX)}


def publications_of(database: Database) -> dict[int, bytes]:
    """Read the publications to the topics of results that are not yet removed, by commit number."""
    return {key_number(key): value for key, value in prefixed(database, PUBLICATION_PREFIX)}


def prefixed(database: Database, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key without the prefix, value) of the keys in `meta` that begin with a prefix."""
    for key, value in database.items("meta", prefix):
        if not key.startswith(prefix):
            return
        yield key[len(prefix) :], value
