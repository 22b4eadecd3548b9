"""A state read without changing it: what `streamwatch state` shows, verifies and exports.

Opened while a daemon has it open, it is the state of some commit before; only a closed one can be verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamwatch.core.join.entry import JoinEntry
from streamwatch.edge.stores.errors import StateDamaged, StateNewer, StateRefused
from streamwatch.edge.stores.rocksdb.directory.database import FAMILIES, size_on_disk
from streamwatch.edge.stores.rocksdb.directory.failures import undecodable
from streamwatch.edge.stores.rocksdb.directory.meta import (
    SCHEMA,
    StoreManifest,
    identity_of,
    manifest_of,
    names_of,
    sections_of,
)
from streamwatch.edge.stores.rocksdb.directory.migrations import no_way_forward
from streamwatch.edge.stores.rocksdb.directory.opening import FORMAT, Format, read_format
from streamwatch.edge.stores.rocksdb.directory.read_only import Reader
from streamwatch.edge.stores.rocksdb.keys import (
    dedup_parts,
    expiry_parts,
    key_number,
    split_digests,
)
from streamwatch.edge.stores.rocksdb.rows.codec import ChainCodec
from streamwatch.edge.stores.rocksdb.rows.names import Names

BYTES_PER_KEY: Final = {"entries": 25}
"""Of a record: 20 of a dedup entry to 30 of a prediction that waits."""


@dataclass(frozen=True, slots=True)
class DeadlineEntry:
    """One entry of the index of deadlines; its ids may have been settled since."""

    kind: int
    deadline_s: int
    number: int
    ids: tuple[str, ...]


class Inspection:
    """A directory opened for reading only.

    Parameters
    ----------
    directory
        Of the state.
    closed
        Refuse a state that a daemon writes to, and keep daemons from it until `close`.
    whole_log
        Refuse a write-ahead log that is damaged before its end.

    Raises
    ------
    StateRefused
        If there is no state, or one of another schema.
    """

    def __init__(self, directory: Path, *, closed: bool = False, whole_log: bool = False) -> None:
        written = format_of(directory)
        if written.schema > SCHEMA:
            raise StateNewer(
                f"the state in {directory} has schema {written.schema}, this program knows up to {SCHEMA}: "
                "use the version that wrote it, or a newer one"
            )
        if (reason := no_way_forward(directory, written.schema, SCHEMA)) is not None:
            raise StateRefused(reason)
        if written.schema < SCHEMA:
            raise StateRefused(
                f"the state in {directory} has schema {written.schema}, this program reads {SCHEMA}: "
                "bring it forward with `streamwatch state migrate` (a copy of it is kept beside)"
            )
        self.directory = directory
        self.schema = written.schema
        self._written = written
        self._reader = Reader(directory, closed=closed, whole_log=whole_log)
        self._database = self._reader.database
        try:
            self._look()
        except BaseException:
            self._reader.close()
            raise

    def _look(self) -> None:
        with self._reader.named():
            self.manifest = manifest_of(self._database) or StoreManifest()
            self.identity = identity_of(self._database) or ""
            self.sections: Mapping[str, bytes] = sections_of(self._database)
            self.names = names_of(self._database)
        self._codec = ChainCodec(
            Names(self.names),
            self.manifest.horizon_ms,
            self.manifest.early_horizon_ms,
            self.manifest.floor,
        )

        if self.identity != self._written.identity:
            raise StateDamaged(
                f"the state is damaged: {self.directory / FORMAT} names {self._written.identity}, "
                f"the database beside it {self.identity or 'nothing'}; restore both from the same backup"
            )

    @property
    def process(self) -> int | None:
        """Process that writes to the state meanwhile; None: none does."""
        return self._reader.process

    @property
    def created_s(self) -> float:
        """Time at which the directory was made, or copied to where it is."""
        path = self.directory / "IDENTITY"
        return (path if path.exists() else self.directory / FORMAT).stat().st_mtime

    def chain(self, key: bytes, value: bytes) -> list[JoinEntry]:
        """Decode a value of the family `entries`, without dead dedup entries; raises what decoding raises."""
        chain: list[JoinEntry] = []
        record = self._codec.unpack(key.decode("latin-1"), value)
        while record is not None:
            chain.append(record)
            record = record.next
        return chain

    def records(self) -> Iterator[tuple[str, list[JoinEntry]]]:
        """Every id with what is known of it, in chain order, without dead dedup entries.

        Raises
        ------
        StateDamaged
            If one cannot be decoded.
        """
        for key, value in self.items("entries"):
            try:
                chain = self.chain(key, value)
            except (ValueError, LookupError, TypeError) as error:
                raise undecodable(key, error) from error
            yield key.decode("latin-1"), chain

    def due(self) -> Iterator[DeadlineEntry]:
        """The index of deadlines, by kind and deadline."""
        for key, value in self.items("expiry"):
            yield DeadlineEntry(*expiry_parts(key), tuple(split_digests(value)))

    def dedup(self) -> Iterator[tuple[int, int, list[str]]]:
        """Generation, commit and ids of what was settled."""
        for key, value in self.items("dedup"):
            generation, commit = dedup_parts(key)
            yield generation, commit, split_digests(value)

    def journal(self) -> Iterator[tuple[int, bytes]]:
        """Entries by commit."""
        for key, value in self.items("journal"):
            yield key_number(key), value

    def items(self, family: str, since: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """A family as it is on disk, in the order of keys."""
        with self._reader.named():
            yield from self._database.items(family, since)

    def get_all(self, family: str, keys: list[bytes]) -> Sequence[bytes | None]:
        """Values of many keys of a family."""
        with self._reader.named():
            return self._database.get_all(family, keys)

    def estimate(self, family: str) -> int:
        """About how many keys it has, rather more than less.

        RocksDB's own estimate is 0 until its statistics are loaded, which would delay every start.
        """
        figure = self._database.figure
        files = figure(family, "live-sst-files-size") // BYTES_PER_KEY.get(family, 100)
        return files + figure(family, "num-entries-active-mem-table")

    def sizes(self) -> dict[str, int]:
        """Bytes on disk by family, of the write-ahead log, and of all files under `total`."""
        sizes = {family: self._database.figure(family, "live-sst-files-size") for family in FAMILIES}
        logs = sum(path.stat().st_size for path in self.directory.glob("*.log"))
        return {**sizes, "log": logs, "total": size_on_disk(self.directory)}

    def close(self) -> None:
        """Free what is held."""
        self._reader.close()


def format_of(directory: Path) -> Format:
    """Format that a directory states, before anything of it is opened.

    Raises
    ------
    StateRefused
        If it is none of ours.
    """
    if not directory.is_dir():
        raise StateRefused(f"there is no directory {directory}")
    try:
        written = read_format(directory)
    except OSError as error:
        raise StateRefused(f"the state in {directory} cannot be read: {error}") from error
    if written is None:
        raise StateRefused(f"there is no state in {directory}: it has no {FORMAT}")
    if not (directory / "CURRENT").exists():
        raise StateDamaged(
            f"the state is damaged: {directory / 'CURRENT'} is missing; restore a backup of the directory"
        )
    return written
