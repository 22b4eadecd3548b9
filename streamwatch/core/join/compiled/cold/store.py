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
        """First key not before `first`."""
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
