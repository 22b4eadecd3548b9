"""A run: what of it is in memory, and how it is read again after a start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.cold.bits import Bits, bits_of, set_bits
from streamwatch.core.join.compiled.cold.bloom import Filter
from streamwatch.core.join.compiled.cold.dropped import GONE_ROUND
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
"""Queue of what has settled, behind `PREDICTIONS` …; it dies by generations, and nothing falls due."""
_POSITION_BYTES: Final = 4


class RunManifest(msgspec.Struct, frozen=True):
    """A run as it was built."""

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
    """Numbers of the classes of its entries, likewise."""
    segments: bytes = b""
    """Numbers of the segments of its predictions without scores, likewise."""
    ids: int = 0
    """Ids that its entries have; 0 where nobody counted them."""


@dataclass(slots=True)
class Run:
    """Entries sorted by `low`, in blocks of equally many."""

    manifest: RunManifest
    fences: NDArray[np.uint64]
    """`low` of each block's first entry, (blocks,)."""
    bloom: Filter
    dead: Bits
    """By position, (count / 64,)."""
    alive: int
    oldest_arrival: int
    """No living entry has a smaller one."""
    oldest_ms: int
    """No living entry has an earlier record time."""
    saved: bool = False
    """The manifest has been given to a commit."""
    _unsaved: list[Positions] = field(default_factory=list[Positions])
    _parts: int = 0
    _parts_bytes: int = 0

    @property
    def number(self) -> int:
        """The run's number, which no other has."""
        return self.manifest.number

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.fences.nbytes + self.bloom.nbytes + self.dead.nbytes

    @property
    def most_ids(self) -> int:
        """Ids of living entries, at most."""
        return min(self.alive, self.manifest.ids or self.alive)

    def estimate(self, floor: int) -> int:
        """Estimate the entries that live; of dedup entries by how many of their generations are dropped."""
        manifest = self.manifest
        if manifest.queue != DEDUP_ENTRIES:
            return self.alive
        dropped = (floor - manifest.oldest_generation) & NUMBERS
        if dropped >= GONE_ROUND:
            return self.alive
        generations = ((manifest.newest_generation - manifest.oldest_generation) & NUMBERS) + 1
        return self.alive * max(0, generations - dropped) // generations

    def kill(self, positions: Positions) -> int:
        """Let entries count no more; how many did until now."""
        fresh = np.empty(len(positions), np.uint32)
        count: int = set_bits(self.dead, positions, fresh)
        if count:
            self._unsaved.append(fresh[:count])
            self.alive -= count
        return count

    def add_changes(self, changes: ColdChanges) -> None:
        """Add what a commit is to write: the manifest of a new run, and what has died since the last commit.

        Once the positions written one by one outgrow all bits of the run, these are written instead.
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
        """Fences and filter, to be written before the manifest is."""
        data = self.fences.tobytes() + self.bloom.tobytes()
        return [
            (key_of(FILTER, self.number, part), data[start : start + FILTER_PART_BYTES])
            for part, start in enumerate(range(0, len(data), FILTER_PART_BYTES))
        ]


def new_run(manifest: RunManifest, fences: NDArray[np.uint64], bloom: Filter) -> Run:
    """Make a run all of whose entries live."""
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
    """Read fences, filter and dead bits of a run; no block of entries.

    Raises
    ------
    ColdDamaged
        If a part is missing, or is not as long as the manifest says.
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
