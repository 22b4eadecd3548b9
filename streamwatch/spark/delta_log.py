"""State of one bucket in Spark: a log of changes, which is replaced by the whole state from time to time.

A bucket is an object of megabytes that changes by kilobytes per batch. Instead of writing all of it, each
batch adds one entry to the log, and the object stays in a process between batches: in the worker
(`KeptObjects`) or in a process of its own (`holders`). Each entry has a random token.
A kept object is used only if its token is that of the log's last entry. An object of a failed attempt, or one
that was overtaken in another process, has another token; then the object is rebuilt from the log.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from streamwatch.core.buckets.contract import Bucket

HEAD_SCHEMA: Final = "entry long, token binary, first long, base_bytes long, delta_bytes long"
"""Schema of the value state.

Number and token of the last entry, number of the entry with the base (1 if there is none), and bytes of the
base and of the deltas since.
"""
KEY_SCHEMA: Final = "entry long, part int"
VALUE_SCHEMA: Final = "token binary, ends boolean, body binary"
"""Schema of the values of the map state, each a part of an entry.

`ends` is true in the last part of a delta. An entry has one delta, or the several ones of a base.
"""
PART_BYTES: Final = 2_000_000
"""Most bytes of one value, as each is sent through a socket and copied in memory several times."""
LEAST_REBASE_BYTES: Final = 4_000_000
"""Least bytes of deltas from which a new base is written."""


class Head(Protocol):
    """A value state of `HEAD_SCHEMA`."""

    def exists(self) -> bool:
        """Return whether there is a value."""
        ...

    def get(self) -> tuple[int, bytes, int, int, int] | None:
        """Return the value; None without one."""
        ...

    def update(self, newValue: tuple[int, bytes, int, int, int]) -> None:  # noqa: N803 - Spark's name
        """Replace the value."""
        ...


class Entries(Protocol):
    """A map state of `KEY_SCHEMA` and `VALUE_SCHEMA`."""

    def getValue(self, key: tuple[int, int]) -> tuple[bytes, bool, bytes] | None:  # noqa: N802
        """Return the value of a key; None without one."""
        ...

    def updateValue(self, key: tuple[int, int], value: tuple[bytes, bool, bytes]) -> None:  # noqa: N802
        """Set the value of a key."""
        ...

    def containsKey(self, key: tuple[int, int]) -> bool:  # noqa: N802
        """Return whether there is a value."""
        ...

    def removeKey(self, key: tuple[int, int]) -> None:  # noqa: N802
        """Remove the value of a key."""
        ...


@dataclass(slots=True)
class CachedObject:
    """Object of a bucket, and the last entry of the log that it contains."""

    bucket: Bucket
    entry: int
    token: bytes


@dataclass(frozen=True, slots=True)
class KeptObjects:
    """Objects of this worker process by stage and bucket; a batch takes one and puts it back at its end."""

    objects: dict[tuple[str, int], CachedObject]

    def take(self, stage: str, bucket: int) -> CachedObject | None:
        """Remove and return the object of a bucket; None without one."""
        return self.objects.pop((stage, bucket), None)

    def put(self, stage: str, bucket: int, kept: CachedObject) -> None:
        """Keep the object of a bucket for the next batch."""
        self.objects[stage, bucket] = kept

    @contextmanager
    def open_slot(self, stage: str, bucket: int) -> Generator[KeptSlot]:
        """See `processors.ObjectSlots`."""
        yield KeptSlot(self, stage, bucket, self.take(stage, bucket))


@dataclass(frozen=True, slots=True)
class KeptSlot:
    """A `processors.ObjectSlot` in this process."""

    objects: KeptObjects
    stage: str
    bucket: int
    kept: CachedObject | None

    def new(self, make: Callable[[], Bucket]) -> Bucket:
        """See `processors.ObjectSlot`."""
        return make()

    def keep(self, kept: CachedObject) -> None:
        """See `processors.ObjectSlot`."""
        self.objects.put(self.stage, self.bucket, kept)


class DeltaLog:
    """Log of one bucket.

    Parameters
    ----------
    head, entries
        Spark's value state and map state, with the schemas above.
    rebase_bytes
        Least bytes of deltas from which a new base is written, if they are also more than the base.
    """

    def __init__(self, head: Head, entries: Entries, rebase_bytes: int = LEAST_REBASE_BYTES) -> None:
        self._head = head
        self._entries = entries
        self._rebase_bytes = rebase_bytes

    def load(self, kept: CachedObject | None, new: Callable[[], Bucket]) -> CachedObject:
        """Return the object after the last entry: the kept one, updated from the log, or a rebuilt one."""
        last, token, first, _, _ = self._read_head()
        if kept is not None and (kept.entry, kept.token) == (last, token):
            return kept
        start = first
        if kept is not None and first <= kept.entry < last and self._is_entry(kept):
            start = kept.entry + 1
        else:
            kept = CachedObject(new(), 0, b"")
        for entry in range(start, last + 1):
            for delta in self._deltas(entry):
                kept.bucket.take_in(delta)
        kept.entry, kept.token = last, token
        return kept

    def append(self, kept: CachedObject, delta: bytes) -> None:
        """Add the delta of a batch to the log, or a new base if the deltas have outgrown the last one."""
        last, _, first, base_bytes, delta_bytes = self._read_head()
        entry, token = last + 1, secrets.token_bytes(8)
        delta_bytes += len(delta)
        if delta_bytes > max(self._rebase_bytes, base_bytes):
            base = kept.bucket.base()
            self._write(entry, token, base)
            for old in range(first, entry):
                self._drop(old)
            first, base_bytes, delta_bytes = entry, sum(map(len, base)), 0
        else:
            self._write(entry, token, [delta])
        self._head.update((entry, token, first, base_bytes, delta_bytes))
        kept.entry, kept.token = entry, token

    def _read_head(self) -> tuple[int, bytes, int, int, int]:
        found = self._head.get() if self._head.exists() else None
        if found is None:
            return 0, b"", 1, 0, 0
        entry, token, first, base_bytes, delta_bytes = found
        return entry, bytes(token), first, base_bytes, delta_bytes

    def _is_entry(self, kept: CachedObject) -> bool:
        """Return whether the log has the last entry that a cached object contains, with its token."""
        found = self._entries.getValue((kept.entry, 0))
        return found is not None and bytes(found[0]) == kept.token

    def _deltas(self, entry: int) -> Iterator[bytes]:
        parts: list[bytes] = []
        for part in range(_MOST_PARTS):
            found = self._entries.getValue((entry, part))
            if found is None:
                break
            parts.append(bytes(found[2]))
            if found[1]:
                yield b"".join(parts)
                parts.clear()
        if parts:
            raise LogDamagedError(f"entry {entry} of a bucket's log ends within a delta")

    def _write(self, entry: int, token: bytes, deltas: Sequence[bytes]) -> None:
        part = 0
        for delta in deltas:
            for begin in range(0, max(len(delta), 1), PART_BYTES):
                end = begin + PART_BYTES
                self._entries.updateValue((entry, part), (token, end >= len(delta), delta[begin:end]))
                part += 1

    def _drop(self, entry: int) -> None:
        part = 0
        while self._entries.containsKey((entry, part)):
            self._entries.removeKey((entry, part))
            part += 1


_MOST_PARTS: Final = 1 << 31


class LogDamagedError(Exception):
    """Log of a bucket that does not have the form in which it is written."""
