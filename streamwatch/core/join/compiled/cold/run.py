"""`Run`: in-memory part of a run, and how it is read again after a start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.cold.bits import Bits, bits_of, set_bits
from streamwatch.core.join.compiled.cold.bloom import Filter
from streamwatch.core.join.compiled.cold.dropped import NEGATIVE_FROM
from streamwatch.core.join.compiled.cold.store import (
    DEAD,
    FILTER,
    MANIFEST,
    ColdChanges,
    ColdDamaged,
    RunStore,
    key_of,
    range_of,
    required,
    run_of,
)
from streamwatch.core.join.compiled.waiting import NUMBERS

Positions = NDArray[np.uint32]

FILTER_PART_BYTES: Final = 2**18
DEDUP_ENTRIES: Final = 3
"""Queue of dedup entries, after `PREDICTIONS` ….

Its entries do not fall due, but are dropped by generation.
"""
_POSITION_BYTES: Final = 4


class RunManifest(msgspec.Struct, frozen=True):
    """Description of a run as it was built."""

    number: int
    queue: int
    count: int
    block_entries: int
    fence_words: int
    filter_words: int
    oldest_arrival: int
    oldest_ms: int
    oldest_generation: int
    newest_generation: int
    newest_arrival: int
    models: bytes
    """Numbers of the models of its entries, int32."""
    classes: bytes
    """Numbers of the classes of its entries, int32."""
    segments: bytes = b""
    """Numbers of the segments of its predictions without scores, int32."""
    ids: int = 0
    """Number of distinct ids of its entries; 0 if unknown."""


@dataclass(slots=True)
class Run:
    """Entries sorted by `low`, in blocks of equal size."""

    manifest: RunManifest
    fences: NDArray[np.uint64]
    """Field `low` of each block's first entry, (blocks,)."""
    bloom: Filter
    dead: Bits
    """Bit set by position, (count / 64,)."""
    alive: int
    oldest_arrival: int
    """Lower bound of the living entries' arrivals."""
    oldest_ms: int
    """Lower bound of the living entries' record times."""
    saved: bool = False
    """Whether the manifest has been given to a commit."""
    _unsaved: list[Positions] = field(default_factory=list[Positions])
    _parts: int = 0
    _parts_bytes: int = 0

    @property
    def number(self) -> int:
        """Unique number of the run."""
        return self.manifest.number

    @property
    def nbytes(self) -> int:
        """Number of bytes in memory."""
        return self.fences.nbytes + self.bloom.nbytes + self.dead.nbytes

    @property
    def most_ids(self) -> int:
        """Upper bound of the number of ids of living entries."""
        return min(self.alive, self.manifest.ids or self.alive)

    def estimate(self, floor: int) -> int:
        """Estimate the number of living entries; for dedup entries from the share of dropped generations."""
        manifest = self.manifest
        if manifest.queue != DEDUP_ENTRIES:
            return self.alive
        dropped = (floor - manifest.oldest_generation) & NUMBERS
        if dropped >= NEGATIVE_FROM:
            return self.alive
        generations = ((manifest.newest_generation - manifest.oldest_generation) & NUMBERS) + 1
        return self.alive * max(0, generations - dropped) // generations

    def mark_dead(self, positions: Positions) -> int:
        """Mark entries as dead; return how many were alive."""
        fresh = np.empty(len(positions), np.uint32)
        count: int = set_bits(self.dead, positions, fresh)
        if count:
            self._unsaved.append(fresh[:count])
            self.alive -= count
        return count

    def add_changes(self, changes: ColdChanges) -> None:
        """Add what a commit must write: the manifest of a new run, and the entries that have died since.

        Once the positions written in parts are larger than the bit set, the whole bit set is written instead.
        """
        if not self.saved:
            changes.put[key_of(MANIFEST, self.number)] = msgspec.msgpack.encode(self.manifest)
            self.saved = True
        if not self._unsaved:
            return
        died = np.concatenate(self._unsaved)
        self._unsaved.clear()
        self._parts_bytes += _POSITION_BYTES * len(died)
        if self._parts_bytes > self.dead.nbytes:
            changes.removed.append(range_of(DEAD, self.number, self.number + 1))
            changes.put[key_of(DEAD, self.number)] = self.dead.tobytes()
            self._parts = self._parts_bytes = 0
        else:
            self._parts += 1
            changes.put[key_of(DEAD, self.number, self._parts)] = died.tobytes()

    def filter_values(self) -> list[tuple[bytes, bytes]]:
        """Fences and filter as values, which must be written before the manifest."""
        data = self.fences.tobytes() + self.bloom.tobytes()
        return [
            (key_of(FILTER, self.number, part), data[start : start + FILTER_PART_BYTES])
            for part, start in enumerate(range(0, len(data), FILTER_PART_BYTES))
        ]


def new_run(manifest: RunManifest, fences: NDArray[np.uint64], bloom: Filter) -> Run:
    """Build a run with all entries alive."""
    return Run(
        manifest,
        fences,
        bloom,
        bits_of(manifest.count),
        manifest.count,
        manifest.oldest_arrival,
        manifest.oldest_ms,
    )


def read_run(store: RunStore, manifest: RunManifest) -> Run:
    """Read fences, filter and dead bits of a run, without its entries.

    Raises
    ------
    ColdDamaged
        If a part is missing, or its length differs from the manifest.
    """
    number = manifest.number
    size = 8 * (manifest.fence_words + manifest.filter_words)
    parts = range(-(-size // FILTER_PART_BYTES))
    data = bytearray().join(required(store, [key_of(FILTER, number, part) for part in parts]))
    if len(data) != size:
        raise ColdDamaged(f"fences and filter of run {number} must have {size} bytes, got {len(data)}")
    words = np.frombuffer(data, np.uint64)
    run = new_run(manifest, words[: manifest.fence_words], words[manifest.fence_words :])
    run.saved = True
    _read_dead(store, run)
    return run


def _read_dead(store: RunStore, run: Run) -> None:
    number, count = run.number, run.manifest.count
    keys = store.keys(*range_of(DEAD, number, number + 1))
    for key, value in zip(keys, required(store, keys), strict=True):
        part = run_of(key)[2]
        if part == 0:
            if len(value) != run.dead.nbytes:
                raise ColdDamaged(
                    f"dead bits of run {number} must have {run.dead.nbytes} bytes, got {len(value)}"
                )
            run.dead = np.frombuffer(bytearray(value), np.uint64)
            run.alive = count - int(np.bitwise_count(run.dead).sum())
            continue
        died = np.frombuffer(value, np.uint32)
        if len(value) % _POSITION_BYTES or (len(died) and int(died.max()) >= count):
            raise ColdDamaged(f"what died in part {part} of run {number} is none of its {count} entries")
        run.alive -= set_bits(run.dead, died.copy(), np.empty(len(died), np.uint32))
        run._parts = part  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - its own module
        run._parts_bytes += len(value)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
