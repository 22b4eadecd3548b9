"""State of one bucket as Spark keeps it: a log of changes, begun anew with the whole now and then.

A bucket is an object of megabytes that changes by kilobytes a batch. Written whole with each batch it would
cost its size each time; so a batch adds one entry, and the object itself stays in a process between batches:
that of the worker (`KeptObjects`) or one of its own (`holders`). An entry names itself by a random token.
What is kept is used only if its token is that of the last entry: what took part in a failed attempt, or was
overtaken in another process, has another token, and the log is read.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from streamwatch.core.buckets.contract import Bucket

HEAD_SCHEMA: Final = "entry long, token binary, first long, base_bytes long, delta_bytes long"
"""Of the value state: number and token of the last entry, the entry that is a base, bytes of it and since."""
KEY_SCHEMA: Final = "entry long, part int"
VALUE_SCHEMA: Final = "token binary, ends boolean, body binary"
"""Of the map state: a part of an entry; `ends` where a delta does, of which a base has several."""
PART_BYTES: Final = 2_000_000
"""Bytes of one value: each crosses a socket and stands in memory several times."""
LEAST_REBASE_BYTES: Final = 4_000_000
"""Bytes of deltas up to which a log is left as it is, however small its base."""


class Head(Protocol):
    """A value state of `HEAD_SCHEMA`."""

    def exists(self) -> bool:
        """Return whether there is a value."""
        ...

    def get(self) -> tuple[int, bytes, int, int, int] | None:
        """The value."""
        ...

    def update(self, newValue: tuple[int, bytes, int, int, int]) -> None:  # noqa: N803 - Spark's name
        """Replace the value."""
        ...


class Entries(Protocol):
    """A map state of `KEY_SCHEMA` and `VALUE_SCHEMA`."""

    def getValue(self, key: tuple[int, int]) -> tuple[bytes, bool, bytes] | None:  # noqa: N802
        """The value of a key, or None."""
        ...

    def updateValue(self, key: tuple[int, int], value: tuple[bytes, bool, bytes]) -> None:  # noqa: N802
        """Set the value of a key."""
        ...

    def containsKey(self, key: tuple[int, int]) -> bool:  # noqa: N802
        """Return whether there is a value."""
        ...

    def removeKey(self, key: tuple[int, int]) -> None:  # noqa: N802
        """Drop a value."""
        ...


@dataclass(slots=True)
class CachedObject:
    """Object of a bucket, and the last entry of the log that it contains."""

    bucket: Bucket
    entry: int
    token: bytes


@dataclass(frozen=True, slots=True)
class KeptObjects:
    """Objects of this worker process by stage and bucket, handed out once: a failed batch keeps none."""

    objects: dict[tuple[str, int], CachedObject]

    def take(self, stage: str, bucket: int) -> CachedObject | None:
        """Hand over the object of a bucket."""
        return self.objects.pop((stage, bucket), None)

    def put(self, stage: str, bucket: int, kept: CachedObject) -> None:
        """Keep it for the next batch."""
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
    """The log of the bucket at hand.

    Parameters
    ----------
    head, entries
        States of Spark, of the schemas above.
    rebase_bytes
        Bytes of deltas up to which no new base is written; beyond it, once they are more than the base.
    """

    def __init__(self, head: Head, entries: Entries, rebase_bytes: int = LEAST_REBASE_BYTES) -> None:
        self._head = head
        self._entries = entries
        self._rebase_bytes = rebase_bytes

    def load(self, kept: CachedObject | None, new: Callable[[], Bucket]) -> CachedObject:
        """The object after the last entry: the one kept, brought up to it, or built from the log."""
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
        """Write what a batch changed, or everything where the log has outgrown its base."""
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
    """A bucket's log is not what was written."""
