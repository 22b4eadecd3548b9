"""RocksDB as the state uses it: ten column families in one directory, one write-ahead log for all.

A commit is one write batch over all families, so a crash leaves all of it or nothing. Recovery stops at the
first record of the log that is not whole (`point_in_time`): a power cut may leave pages of what was never
flushed in any order, and what was flushed lies before them. A stricter mode would refuse to open after an
ordinary power cut. If a hole lies before what other files already contain, RocksDB refuses by itself.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from rocksdict import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    WriteBatch,
)

from streamwatch.edge.stores.errors import StateFailed, StateRefused
from streamwatch.edge.stores.rocksdb.directory.failures import failures
from streamwatch.edge.stores.rocksdb.directory.manifest_tail import require_whole_manifest

COLD_RUNS: Final = "runs"
"""Family of cold entries."""
FAMILIES: Final = (
    "entries",
    "expiry",
    "dedup",
    "columns",
    COLD_RUNS,
    "journal",
    "models",
    "held",
    "outbox",
    "meta",
)
MEBIBYTE: Final = 2**20
BLOCK_BYTES: Final = 4096
OPEN_FILES: Final = 400
"""Files RocksDB keeps open; -1: all of them."""


def options_of(family: str | None, cache: Cache, write_buffer_bytes: int) -> Options:
    """Bounded in memory, in open files and in logs; checks what it reads."""
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
    options.set_compression_type(DBCompressionType.lz4())
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_target_file_size_base(32 * MEBIBYTE)
    options.set_block_based_table_factory(table_of(family, cache))
    if family == "entries":
        options.set_memtable_whole_key_filtering(True)
        options.set_memtable_prefix_bloom_ratio(0.05)
    elif family in ("expiry", "dedup", COLD_RUNS):
        options.set_compression_type(DBCompressionType.none())  # digests do not compress
    return options


def table_of(family: str | None, cache: Cache) -> BlockBasedOptions:
    """Options of a family: its layout in files, and what of it is kept in memory."""
    table = BlockBasedOptions()
    table.set_format_version(5)
    if family == COLD_RUNS:
        # Nothing is read twice in a while, so a cache would only be filled and emptied: what is in memory are
        # the keys of every sixteenth value, 7 MB beside a hundred million entries.
        table.disable_cache()
        table.set_cache_index_and_filter_blocks(False)
        table.set_index_block_restart_interval(16)
        table.set_block_size(BLOCK_BYTES // 4)  # below a value, so that each is read alone
        return table
    table.set_block_cache(cache)
    table.set_cache_index_and_filter_blocks(True)
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)  # whole, a file's filter is larger than a shard of the cache
    table.set_metadata_block_size(BLOCK_BYTES)
    table.set_pin_top_level_index_and_filter(True)
    if family == "entries":
        table.set_bloom_filter(10, False)
    return table


class Database:
    """An open directory."""

    def __init__(
        self,
        directory: Path,
        cache_bytes: int,
        write_buffer_bytes: int,
        *,
        read_only: bool = False,
        open_files: int = OPEN_FILES,
        recovery: DBRecoveryMode | None = None,
        families: Sequence[str] = FAMILIES,
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
                {family: options_of(family, cache, write_buffer_bytes) for family in families},
                access,
            )
            self._families = {family: self._database.get_column_family(family) for family in families}
            self._handles = {family: self._database.get_column_family_handle(family) for family in families}

    @property
    def raw(self) -> Rdict:
        """RocksDB itself."""
        return self._database

    def get(self, family: str, key: bytes) -> bytes | None:
        """One value."""
        with failures(self.directory):
            return self._families[family].get(key)

    def get_all(self, family: str, keys: list[bytes]) -> Sequence[bytes | None]:
        """Values of many keys at once."""
        with failures(self.directory):
            asked: Any = keys
            values: Any = self._families[family].get(asked)
            return values

    def items(self, family: str, since: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """In the order of keys; raises where the end is not the end."""
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
                del found  # one that lives on in a traceback would keep the directory locked

    @contextmanager
    def batch(self) -> Generator[WriteBatch]:
        """Written when the block ends: all of it, or nothing. The operating system has it, not yet the disk.

        `into` says which family it is about next.
        """
        batch = WriteBatch(raw_mode=True)
        with failures(self.directory):
            try:
                yield batch
                self._database.write(batch)
            finally:
                batch.set_default_column_family(None)  # as with an iterator

    def into(self, family: str, batch: WriteBatch) -> None:
        """Write what follows in the batch to this family."""
        batch.set_default_column_family(self._handles[family])

    def delete_range(self, family: str, first: bytes, end: bytes, batch: WriteBatch) -> None:
        """In the batch, remove the keys of a family from `first` to before `end`."""
        batch.delete_range(first, end, self._handles[family])

    def delete(self, family: str, key: bytes, batch: WriteBatch) -> None:
        """In the batch, remove a key of another family than the one it is about."""
        batch.delete(key, self._handles[family])

    def flush(self) -> None:
        """Return once what was written before is on the disk."""
        with failures(self.directory):
            self._database.flush_wal(True)

    def compact(self) -> None:
        """Merge everything, so that nothing overwritten takes room."""
        with failures(self.directory):
            for family in self._families.values():
                family.flush()
                family.compact_range(None, None)

    def compact_range(self, family: str, first: bytes, end: bytes) -> None:
        """Free the disk of keys of a family, from `first` to before `end`, that were removed."""
        with failures(self.directory):
            self._families[family].compact_range(first, end)

    def figure(self, family: str, name: str) -> int:
        """One of RocksDB's own figures; 0 where there is none."""
        return self._families[family].property_int_value(f"rocksdb.{name}") or 0

    def close(self) -> None:
        """Free the directory for others; what fails now takes nothing that was promised.

        After a failure of the disk each of these raises once more, and is closed all the same.
        """
        self._handles.clear()
        opened = [*self._families.values(), self._database] if self._families else []
        self._families.clear()
        for each in opened:
            with suppress(StateFailed, StateRefused), failures(self.directory):
                each.close()


def size_on_disk(directory: Path) -> int:
    """Bytes of all files of a state."""
    total = 0
    for path in directory.iterdir():
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue  # RocksDB removed it meanwhile
    return total
