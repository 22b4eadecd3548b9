"""Port to a store of runs: values by key, some written before the commit that makes them effective.

Keys: one letter, the number of the run (4 bytes, big-endian), the number of the part (4 bytes). `m`: manifest
(`RunManifest`); `f`: fences and filter; `d`: dead bits, part 0 is the whole bit set, further parts are
positions added since; `e`: blocks of entries. `s` is separate: scores of one prediction, by its arrival (8
bytes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from threading import Lock
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

_KEY: Final = Struct(">cII")
_KEYS: Final = np.dtype([("kind", np.uint8), ("run", ">u4"), ("part", ">u4")])
MANIFEST, FILTER, DEAD, ENTRIES = b"m", b"f", b"d", b"e"
SCORES: Final = b"s"
KINDS: Final = (MANIFEST, FILTER, DEAD, ENTRIES)
MOST_RUNS: Final = 2**32 - 1

KeyRange = tuple[bytes, bytes]
"""Range from the first key to before the second."""


@dataclass(slots=True)
class ColdChanges:
    """Changes since the last commit, for its atomic batch."""

    put: dict[bytes, bytes | None] = field(default_factory=dict[bytes, "bytes | None"])
    """Values by key; None removes a key."""
    removed: list[KeyRange] = field(default_factory=list[KeyRange])
    """Ranges of keys to be removed before others are put."""
    removed_entries: int = 0
    """Number of entries in the runs removed, dead ones included."""


class RunStore(Protocol):
    """Sorted key-value store; called from the loop and from one thread at the same time."""

    def write(self, values: Sequence[tuple[bytes, bytes]]) -> None:
        """Write values at once; they survive a crash if a later commit does."""
        ...

    def get_all(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Values of many keys."""
        ...

    def keys(self, first: bytes, end: bytes) -> Sequence[bytes]:
        """Keys in a range, in order."""
        ...

    def next_key(self, first: bytes) -> bytes | None:
        """First key not before `first`; None if there is none."""
        ...

    def remove(self, ranges: Sequence[KeyRange]) -> None:
        """Remove the keys in these ranges at once, as `write` does with values."""
        ...

    def reclaimable(self, entries: int) -> list[KeyRange]:
        """Hand over key ranges that commits have removed, once it is worth freeing their room.

        Until then the list is empty.

        `entries` is the number of entries in all remaining runs.
        """
        ...

    def reclaim(self, ranges: Sequence[KeyRange]) -> None:
        """Free the room of removed keys; to be called in a thread."""
        ...


class ColdDamaged(ValueError):  # noqa: N818 - named by what happened, as those of stores are
    """Raised if a part of a run is not what was written."""


def key_of(kind: bytes, run: int, part: int = 0) -> bytes:
    """Key of a part of a run."""
    return _KEY.pack(kind, run, part)


def keys_of(kind: bytes, run: int, parts: NDArray[np.integer[Any]]) -> list[bytes]:
    """Keys of many parts of a run."""
    keys = np.empty(len(parts), _KEYS)
    keys["kind"] = ord(kind)
    keys["run"] = run
    keys["part"] = parts
    return keys.view(f"V{_KEYS.itemsize}").tolist()


def run_of(key: bytes) -> tuple[bytes, int, int]:
    """Kind, run and part of a key."""
    kind, run, part = _KEY.unpack(key)
    return kind, run, part


def range_of(kind: bytes, first: int, end: int) -> KeyRange:
    """Range of the keys of a kind, for runs from `first` to before `end`."""
    return key_of(kind, first), key_of(kind, end)


def required(store: RunStore, keys: Sequence[bytes]) -> list[bytes]:
    """Values of keys that must exist.

    Raises
    ------
    ColdDamaged
        If one does not exist.
    """
    values: list[bytes] = []
    for key, value in zip(keys, store.get_all(keys), strict=True):
        if value is None:
            kind, run, part = run_of(key)
            raise ColdDamaged(f"run {run} of cold entries lacks part {part} of kind {kind.decode()!r}")
        values.append(value)
    return values


# Runs in memory, for warming up and for tests.


class MemoryRuns:
    """`RunStore` in a dictionary; keys are sorted when asked for."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[bytes, bytes] = {}

    def write(self, values: Sequence[tuple[bytes, bytes]]) -> None:
        """Store values."""
        with self._lock:
            self._values.update(values)

    def get_all(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Values of many keys."""
        return [self._values.get(key) for key in keys]

    def keys(self, first: bytes, end: bytes) -> Sequence[bytes]:
        """Keys in a range, in order."""
        with self._lock:
            return sorted(key for key in self._values if first <= key < end)

    def next_key(self, first: bytes) -> bytes | None:
        """First key not before `first`; None if there is none."""
        with self._lock:
            return min((key for key in self._values if key >= first), default=None)

    def remove(self, ranges: Sequence[KeyRange]) -> None:
        """Remove the keys in these ranges."""
        with self._lock:
            for first, end in ranges:
                for key in [key for key in self._values if first <= key < end]:
                    del self._values[key]

    def reclaimable(self, entries: int) -> list[KeyRange]:
        """Return nothing, as removed values take no room."""
        del entries
        return []

    def reclaim(self, ranges: Sequence[KeyRange]) -> None:
        """Do nothing."""

    def commit(self, changes: ColdChanges) -> None:
        """Apply the changes of a commit."""
        self.remove(changes.removed)
        self.write([(key, value) for key, value in changes.put.items() if value is not None])
        with self._lock:
            for key in [key for key, value in changes.put.items() if value is None]:
                del self._values[key]

    @property
    def nbytes(self) -> int:
        """Number of bytes of all keys and values."""
        with self._lock:
            return sum(len(key) + len(value) for key, value in self._values.items())


# Sizes of cold runs, blocks and filters.


@dataclass(frozen=True, slots=True)
class ColdSpec:
    """Sizes of runs, blocks and filters, and rules for merging runs."""

    block_entries: int = 64
    """Number of entries of a block: about 1.6 kB."""
    chunk_blocks: int = 128
    """Number of blocks read, merged or written at a time, which takes a millisecond or two."""
    first_entries: int = 32_768
    """Base of the tiers: a run with fewer entries than this times the fan-out is of the lowest tier."""
    fanout: int = 8
    """Number of runs of one tier that are merged into one, and ratio of sizes between tiers.

    A tier costs about 0.4 µs per entry, a run about 0.02 µs per look-up.
    """
    most_entries: int = 2**22
    """Largest number of entries of a merged run."""
    filter_bits: int = 12
    """Bits of the filter per id: about 1 in 200 absent ids passes."""
    filter_bits_of_few: int = 32
    """Bits of the filter per id for small runs, of which there are many: about 1 in 16,000 passes.

    So most batches of new ids are joined without reading a block, and without waiting for a thread.
    """
    many_entries: int = 2**21
    """Number of ids below which a run is small: its filter has at most 8 MB."""
