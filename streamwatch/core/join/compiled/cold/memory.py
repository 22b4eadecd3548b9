"""Runs in memory, for a join without a disk and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from streamwatch.core.join.compiled.cold.store import ColdChanges, KeyRange


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
        """First key not before `first`."""
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
