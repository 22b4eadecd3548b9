"""Runs of cold entries: the part in memory (`Run`), building (`RunWriter`), and reading after a start."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import detached, high_product, hot, prefetch
from streamwatch.core.join.cold.block import (
    ARRIVAL,
    NEGATIVE_FROM,
    RECORD_MS,
    REPLACING,
    SKIPPED,
    STATE_AND_GENERATION,
    WORDS,
    Bits,
    NamesUsed,
    Words,
    bits_of,
    most_bytes,
    pack_entries,
    set_bits,
)
from streamwatch.core.join.cold.store import (
    DEAD,
    ENTRIES,
    FILTER,
    KINDS,
    MANIFEST,
    MOST_RUNS,
    ColdChanges,
    ColdDamaged,
    ColdSpec,
    KeyRange,
    RunStore,
    key_of,
    range_of,
    required,
    run_of,
)
from streamwatch.core.join.layout import PREDICTIONS, REPLACES_CLASS
from streamwatch.core.join.table import NUMBERS

# Blocked Bloom filters with blocks of 64 bytes, so that a look-up accesses one cache line.
#
# Putze, Sanders & Singler, "Cache-, hash- and space-efficient Bloom filters", 2009. The upper bits of `low`
# select an id's block, so that a run built in order fills its filter from start to end; `high` selects the
# bits within it.


Filter = NDArray[np.uint64]

PROBES: Final = 6
_LINE_BITS: Final = 512
_LINE_WORDS: Final = 8
_BIT: Final = np.uint64(_LINE_BITS - 1)
_ONE: Final = np.uint64(1)


def filter_of(count: int, bits: int) -> Filter:
    """Allocate an empty filter with `bits` bits for each of `count` entries."""
    return np.zeros(_LINE_WORDS * max(1, -(-count * bits // _LINE_BITS)), np.uint64)


@hot
def line_of(bloom, low):
    """Index of the first word of an id's block."""
    return _LINE_WORDS * np.int64(high_product(low, np.uint64(bloom.shape[0] // _LINE_WORDS)))


@hot
def add_id(bloom, low, high):
    """Add an id."""
    line = line_of(bloom, low)
    for k in range(PROBES):
        bit = (high >> np.uint64(9 * k)) & _BIT
        bloom[line + np.int64(bit >> np.uint64(6))] |= _ONE << (bit & np.uint64(63))


@hot
def may_have(bloom, low, high):
    """Return whether an id may have been added; False is certain."""
    line = line_of(bloom, low)
    for k in range(PROBES):
        bit = (high >> np.uint64(9 * k)) & _BIT
        if (bloom[line + np.int64(bit >> np.uint64(6))] >> (bit & np.uint64(63))) & _ONE == 0:
            return False
    return True


Positions = NDArray[np.uint32]

FILTER_PART_BYTES: Final = 2**18
DEDUP_ENTRIES: Final = 3
"""Number of the queue of dedup entries, after those of waiting entries (`layout.PREDICTIONS` and so on).

Its entries do not fall due, but are dropped by generation.
"""
_POSITION_BYTES: Final = 4
MOST_BLOCK_ENTRIES: Final = 65_536
"""Bound of the number of entries of a block, far above `ColdSpec`: it bounds the memory for a run."""


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
    side: tuple[str, ...] = ()
    """Names of its side columns (`layout.side_columns`)."""


@dataclass(slots=True)
class Run:
    """Entries sorted by `low`, in blocks of equal size."""

    manifest: RunManifest
    fences: NDArray[np.uint64]
    """Field `low` of each block's first entry, (blocks,)."""
    bloom: Filter
    dead: Bits
    """Bits by position, set for dead entries, uint64 (count / 64 rounded up,)."""
    alive: int
    oldest_arrival: int
    """Lower bound of the living entries' arrivals."""
    oldest_ms: int
    """Lower bound of the living entries' record times."""
    columns: int = 0
    """Number of side columns into which its own are read."""
    into: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Columns into which its own are read; see `block.unpack_entries`."""
    saved: bool = False
    """Whether the manifest has been given to a commit."""
    _unsaved: list[Positions] = field(default_factory=list[Positions])
    _parts: int = 0
    _parts_bytes: int = 0

    @property
    def nbytes(self) -> int:
        """Number of bytes in memory."""
        return self.fences.nbytes + self.bloom.nbytes + self.dead.nbytes

    @property
    def most_ids(self) -> int:
        """Upper bound of the number of ids of living entries."""
        return min(self.alive, self.manifest.ids or self.alive)

    def read_into(self, columns: tuple[str, ...]) -> None:
        """Set the names of the side columns into which those of the run are read."""
        self.columns = len(columns) if self.manifest.queue == PREDICTIONS else 0
        indices = {name: index for index, name in enumerate(columns)} | {REPLACES_CLASS: REPLACING}
        self.into = np.array([indices.get(name, SKIPPED) for name in self.manifest.side], np.int64)

    def rename_side(self, side: tuple[str, ...]) -> None:
        """Rename the run's side columns; the next commit writes the names."""
        if side != self.manifest.side:
            self.manifest = msgspec.structs.replace(self.manifest, side=side)
            self.saved = False

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
            changes.put[key_of(MANIFEST, self.manifest.number)] = msgspec.msgpack.encode(self.manifest)
            self.saved = True
        if not self._unsaved:
            return
        died = np.concatenate(self._unsaved)
        self._unsaved.clear()
        self._parts_bytes += _POSITION_BYTES * len(died)
        if self._parts_bytes > self.dead.nbytes:
            changes.removed.append(range_of(DEAD, self.manifest.number, self.manifest.number + 1))
            changes.put[key_of(DEAD, self.manifest.number)] = self.dead.tobytes()
            self._parts = self._parts_bytes = 0
        else:
            self._parts += 1
            changes.put[key_of(DEAD, self.manifest.number, self._parts)] = died.tobytes()

    def filter_values(self) -> list[tuple[bytes, bytes]]:
        """Fences and filter as values, which must be written before the manifest."""
        data = self.fences.tobytes() + self.bloom.tobytes()
        return [
            (key_of(FILTER, self.manifest.number, part), data[start : start + FILTER_PART_BYTES])
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
    _check_sizes(manifest)
    size = 8 * (manifest.fence_words + manifest.filter_words)
    stored = len(store.keys(*range_of(FILTER, number, number + 1)))
    parts = range(min(-(-size // FILTER_PART_BYTES), stored + 1))  # the first that is missing is named
    data = bytearray().join(required(store, [key_of(FILTER, number, part) for part in parts]))
    if len(data) != size:
        raise ColdDamaged(f"fences and filter of run {number} must have {size} bytes, got {len(data)}")
    words = np.frombuffer(data, np.uint64)
    run = new_run(manifest, words[: manifest.fence_words], words[manifest.fence_words :])
    run.read_into(())
    run.saved = True
    _read_dead(store, run)
    return run


def _check_sizes(manifest: RunManifest) -> None:
    """Raise ColdDamaged if the numbers of a manifest do not fit to each other; memory depends on them."""
    m = manifest
    blocks = -(-m.count // m.block_entries) if 0 < m.block_entries <= MOST_BLOCK_ENTRIES else -1
    lines, rest = divmod(m.filter_words, _LINE_WORDS)
    times = (m.oldest_arrival, m.oldest_ms, m.newest_arrival)
    if not (
        0 < m.count < 2**32
        and m.fence_words == blocks
        and lines > 0 == rest
        and PREDICTIONS <= m.queue <= DEDUP_ENTRIES
        and all(-(2**63) <= each < 2**63 for each in times)
        and not any(len(each) % 4 for each in (m.models, m.classes, m.segments))
    ):
        raise ColdDamaged(
            f"the manifest of run {m.number} must fit to its blocks, filter and names, got {m.count} entries "
            f"of queue {m.queue} in {m.fence_words} blocks of {m.block_entries}, and {m.filter_words} words "
            "of filter"
        )


def _read_dead(store: RunStore, run: Run) -> None:
    number, count = run.manifest.number, run.manifest.count
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
        whole = len(value) % _POSITION_BYTES == 0
        died = np.frombuffer(value if whole else b"", np.uint32)
        if not whole or (len(died) and int(died.max()) >= count):
            raise ColdDamaged(f"what died in part {part} of run {number} is none of its {count} entries")
        run.alive -= set_bits(run.dead, died.copy(), np.empty(len(died), np.uint32))
        run._parts = part  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - its own module
        run._parts_bytes += len(value)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


# Building of a run: blocks, fences and a filter from sorted entries.


BOUNDS: Final = (2**63 - 1, 2**63 - 1, 2**31, -1, -(2**63))
"""Initial bounds: smallest arrival, record time and age of a generation, largest age and arrival."""
NO_ID: Final = (np.uint64(2**64 - 1), np.uint64(2**64 - 1))
"""Halves of a digest that no id has."""
_AHEAD: Final = 16


@detached
def pack_blocks(words, block_entries, data, ends, bloom, floor, bounds):
    """Pack entries into consecutive blocks, and add their ids to the filter.

    `ends` receives the end of each block; `bounds` are updated, see `BOUNDS`.
    """
    at = 0
    count = words.shape[0]
    for b in range(ends.shape[0]):
        start = b * block_entries
        at = pack_entries(words, start, min(block_entries, count - start), data, at)
        ends[b] = at
    for i in range(count):
        if i == 0 or words[i, 0] != words[i - 1, 0] or words[i, 1] != words[i - 1, 1]:
            add_id(bloom, words[i, 0], words[i, 1])
        bounds[0] = min(bounds[0], np.int64(words[i, ARRIVAL]))
        bounds[1] = min(bounds[1], np.int64(words[i, RECORD_MS]))
        age = (np.int64(words[i, STATE_AND_GENERATION] >> np.uint64(32)) - floor) & NUMBERS
        bounds[2] = min(bounds[2], age)
        bounds[3] = max(bounds[3], age)
        bounds[4] = max(bounds[4], np.int64(words[i, ARRIVAL]))


@detached
def copy_in_order(words, order, out):
    """Copy entries in the order `order`."""
    for i in range(order.shape[0]):
        if i + _AHEAD < order.shape[0]:
            prefetch(words, 8 * words.shape[1] * order[i + _AHEAD])
        for w in range(words.shape[1]):
            out[i, w] = words[order[i], w]


@detached
def count_ids(words, low, high):
    """Count the distinct ids of sorted entries, without (low, high), the id of the entry before them."""
    count = 0
    for i in range(words.shape[0]):
        if words[i, 0] != low or words[i, 1] != high:
            low, high = words[i, 0], words[i, 1]
            count += 1
    return count


def sorted_by_low(low: NDArray[np.uint64]) -> tuple[NDArray[np.int32], int]:
    """Return the order of digests, given by their lower halves, (n,), and the number of distinct ones."""
    order = np.argsort(low).astype(np.int32)
    in_order = low[order]
    return order, min(len(low), 1) + int(np.count_nonzero(in_order[1:] != in_order[:-1]))


class RunWriter:
    """Writes the blocks of a run as sorted entries are added.

    Parameters
    ----------
    store
        Store for blocks, fences and filter; they are written before anything refers to them.
    spec
        Sizes of blocks and filter.
    number
        Number of the run.
    queue
        Queue of all its entries.
    ids
        Upper bound of the number of ids, for the size of the filter.
    floor
        Oldest generation of dedup entries that is not dropped.
    side
        Names of the side columns of its entries.
    """

    def __init__(
        self,
        store: RunStore,
        spec: ColdSpec,
        number: int,
        queue: int,
        ids: int,
        floor: int,
        side: tuple[str, ...],
    ) -> None:
        self._store = store
        self._spec = spec
        self._number = number
        self._queue = queue
        self._floor = floor
        few = ids < spec.many_entries
        self._bloom = filter_of(ids, spec.filter_bits_of_few if few else spec.filter_bits)
        self._side = side
        self._rest = np.empty((0, WORDS + len(side)), np.uint64)
        self._fences: list[NDArray[np.uint64]] = []
        self._blocks = 0
        self._count = 0
        self._ids = 0
        self._last = NO_ID
        self._bounds = np.array(BOUNDS)
        self._names = NamesUsed(side)

    def add(self, words: Words) -> None:
        """Add entries, which must be sorted after those added before."""
        self._count += len(words)
        self._names.add(words)
        self._ids += int(count_ids(words, *self._last))
        if len(words):
            self._last = words[-1, 0], words[-1, 1]
        if len(self._rest):
            words = np.concatenate([self._rest, words])
        whole = len(words) // self._spec.block_entries * self._spec.block_entries
        self._write(words[:whole])
        self._rest = words[whole:].copy()

    def finish(self) -> Run | None:
        """Write the remaining entries, and return the run; None if no entry was added."""
        self._write(self._rest)
        if not self._count:
            return None
        fences = np.concatenate(self._fences)
        oldest_arrival, oldest_ms, smallest_age, largest_age, newest_arrival = self._bounds.tolist()
        run = new_run(
            RunManifest(
                self._number,
                self._queue,
                self._count,
                self._spec.block_entries,
                len(fences),
                len(self._bloom),
                oldest_arrival,
                oldest_ms,
                (self._floor + smallest_age) & NUMBERS,
                (self._floor + largest_age) & NUMBERS,
                newest_arrival,
                *self._names.used(),
                self._ids,
                self._side,
            ),
            fences,
            self._bloom,
        )
        self._store.write(run.filter_values())
        return run

    def _write(self, words: Words) -> None:
        each = self._spec.block_entries
        step = each * self._spec.chunk_blocks
        for start in range(0, len(words), step):
            part = words[start : start + step]
            ends = np.empty(-(-len(part) // each), np.int64)
            data = np.empty(most_bytes(0, len(self._side)) * len(ends) + part.nbytes, np.uint8)
            pack_blocks(part, each, data, ends, self._bloom, self._floor, self._bounds)
            self._fences.append(part[::each, 0].copy())
            packed, began = data[: int(ends[-1])].tobytes(), 0
            values: list[tuple[bytes, bytes]] = []
            for end in ends.tolist():
                values.append((key_of(ENTRIES, self._number, self._blocks), packed[began:end]))
                self._blocks += 1
                began = end
            self._store.write(values)


# Opening of the committed runs at a start.


def committed_runs(store: RunStore, *, clean: bool = True) -> list[Run]:
    """Read the committed runs; with `clean`, remove everything that belongs to none of them.

    Raises
    ------
    ColdDamaged
        If a run is not what was written.
    """
    keys = store.keys(*range_of(MANIFEST, 0, MOST_RUNS))
    manifests: list[RunManifest] = []
    for key, value in zip(keys, required(store, keys), strict=True):
        try:
            manifest = msgspec.msgpack.decode(value, type=RunManifest)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ColdDamaged(f"the manifest of run {run_of(key)[1]} is not readable: {error}") from error
        if manifest.number != run_of(key)[1]:
            raise ColdDamaged(
                f"the manifest of run {run_of(key)[1]} must have its number, got {manifest.number}"
            )
        manifests.append(manifest)
    if clean:
        _remove_uncommitted(store, manifests)
    return [read_run(store, manifest) for manifest in manifests]


def _remove_uncommitted(store: RunStore, manifests: list[RunManifest]) -> None:
    numbers = [-1, *(manifest.number for manifest in manifests), MOST_RUNS]
    uncommitted: list[KeyRange] = []
    for kind in KINDS:
        for before, after in itertools.pairwise(numbers):
            first, end = range_of(kind, before + 1, after)
            found = store.next_key(first)
            if found is not None and found < end:
                uncommitted.append((first, end))
    if uncommitted:
        store.remove(uncommitted)
