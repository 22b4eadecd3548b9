"""Everything outside the table of a compiled join: entries in runs, their scores, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.cold.block import MOST_SIDE_COLUMNS, PACKED_ENTRY, entries_of
from streamwatch.core.join.cold.finding import FoundEntries, find_entries, mark_candidates, read_living
from streamwatch.core.join.cold.merging import (
    Evicted,
    Eviction,
    Merge,
    OldestSearch,
    PackedEntries,
    TakenEntries,
    runs_to_merge,
)
from streamwatch.core.join.cold.moving import WAITING_QUEUES, Table
from streamwatch.core.join.cold.run import DEDUP_ENTRIES, Run, committed_runs
from streamwatch.core.join.cold.store import (
    KINDS,
    SCORES,
    ColdChanges,
    ColdDamaged,
    ColdSpec,
    RunStore,
    key_of,
    range_of,
)
from streamwatch.core.join.counters import PENDING, UNMATCHED
from streamwatch.core.join.layout import (
    EARLY_LABELS,
    NEVER_MS,
    PREDICTIONS,
    RETAINED_LABELS,
    Records,
    renamed,
)
from streamwatch.core.records.events import Name, segments_of
from streamwatch.core.records.outcomes import SEGMENTS_FROM
from streamwatch.core.records.scores import ScoreLists
from streamwatch.core.specs import JoinSpec

# All runs, with the state of their entries; see the package's docstring for their use.


QUEUES: Final = (PREDICTIONS, EARLY_LABELS, RETAINED_LABELS, DEDUP_ENTRIES)


class ColdEntries:
    """All runs, with the state of their entries.

    Handles in a `FoundEntries`, run and position, are valid until `plan_merge` or `finish_merge` drops runs.

    Parameters
    ----------
    store
        Store of the runs.
    spec
        Sizes of runs, blocks and filters.
    clean
        Whether to remove values that no commit refers to.

    Raises
    ------
    ColdDamaged
        If a run is not what was written.
    """

    def __init__(
        self,
        store: RunStore,
        spec: ColdSpec = ColdSpec(),  # noqa: B008 - it is frozen
        *,
        clean: bool = True,
    ) -> None:
        self._store = store
        self._spec = spec
        self._runs = {run.manifest.number: run for run in committed_runs(store, clean=clean)}
        self._next = max(self._runs, default=-1) + 1
        self._changes = ColdChanges()
        self._merge: Merge | None = None
        self._search: OldestSearch | None = None
        self._columns: tuple[str, ...] = ()
        self.floor = 0
        """Oldest generation of dedup entries that is not dropped; set by the caller, also after a start."""

    def keep_side(self, columns: tuple[str, ...], spec: JoinSpec) -> None:
        """Store predictions with these side columns, and rename those of existing runs (`layout.renamed`).

        To be called once, before any other method.

        Raises
        ------
        ValueError
            If there are more than `MOST_SIDE_COLUMNS`.
        """
        if len(columns) > MOST_SIDE_COLUMNS:
            raise ValueError(f"expected at most {MOST_SIDE_COLUMNS} side columns, got {len(columns)}")
        self._columns = columns
        for run in self._runs.values():
            run.rename_side(renamed(run.manifest.side, spec))
            run.read_into(columns)

    def _side_of(self, queue: int) -> tuple[str, ...]:
        """Names of the side columns of a queue's entries."""
        return self._columns if queue == PREDICTIONS else ()

    def alive(self, queue: int) -> int:
        """Count the living entries of a queue; those of dropped generations are included until a merge."""
        return sum(run.alive for run in self._runs.values() if run.manifest.queue == queue)

    @property
    def next_arrival(self) -> int:
        """Arrival larger than that of any entry in the runs."""
        return max((run.manifest.newest_arrival + 1 for run in self._runs.values()), default=0)

    def models(self) -> list[NDArray[np.int32]]:
        """Numbers of models that entries use, by run."""
        return [np.frombuffer(run.manifest.models, np.int32) for run in self._runs.values()]

    def classes(self) -> list[NDArray[np.int32]]:
        """Numbers of classes that entries use, by run."""
        return [np.frombuffer(run.manifest.classes, np.int32) for run in self._runs.values()]

    def segments(self) -> list[NDArray[np.int32]]:
        """Numbers of segments that entries without scores use, by run."""
        return [np.frombuffer(run.manifest.segments, np.int32) for run in self._runs.values()]

    @property
    def entries(self) -> int:
        """Number of entries in all runs, dead ones included."""
        return sum(run.manifest.count for run in self._runs.values())

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self._runs)

    @property
    def nbytes(self) -> int:
        """Number of bytes in memory."""
        return sum(run.nbytes for run in self._runs.values())

    def all_living(self) -> Iterator[tuple[int, NDArray[np.void]]]:
        """Iterate over queue and living entries, `PACKED_ENTRY` (n,), run by run, in parts.

        Raises
        ------
        ColdDamaged
            If a block is not what was written.
        """
        for run in self._runs.values():
            for part in read_living(self._store, run, run.dead, self.floor, self._spec.chunk_blocks):
                yield run.manifest.queue, entries_of(part.words).copy()

    def evict(self, queue: int, entries: NDArray[np.void], side: NDArray[np.int32] | None = None) -> None:
        """Store entries of a queue, `PACKED_ENTRY` (n,), in any order.

        `side`: side columns of predictions, (n, columns); without it they have no values.

        Within a queue, entries with larger `arrival` must not have earlier `record_ms`.
        """
        if len(entries):
            if side is None:
                side = np.zeros((len(entries), len(self._side_of(queue))), np.int32)
            eviction = self.plan_eviction(queue, PackedEntries(entries, side))
            eviction.run()
            self.finish_eviction(eviction)

    def plan_eviction(self, queue: int, entries: Evicted) -> Eviction:
        """Plan to store entries, at least one, as `evict` does; they count after `finish_eviction`.

        Predictions must have the side columns that `keep_side` named.

        Raises
        ------
        ValueError
            If there is no such queue.
        RuntimeError
            If the oldest entries of the queue are being searched.
        """
        if queue not in QUEUES:
            raise ValueError(f"queue must be one of {QUEUES}, got {queue}")
        if self._search is not None and self._search.queue == queue:
            raise RuntimeError(f"nothing may be evicted of queue {queue} while its oldest entries are sought")
        names, number = self._side_of(queue), self._number()
        return Eviction(self._store, self._spec, number, queue, entries, names, self.floor)

    def finish_eviction(self, eviction: Eviction) -> None:
        """Add the run that `eviction` has built; raises RuntimeError before its `run` has ended."""
        if eviction.run_made is None:
            raise RuntimeError("this eviction of cold entries has not run")
        self._add(eviction.run_made)

    def look_up(self, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> FoundEntries:
        """Find the living entries of distinct ids, given by the halves of their digests, (n,)."""
        columns = len(self._columns)
        return find_entries(self._store, self._runs.values(), low, high, self.floor, columns)

    def may_have(self, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which ids, given by the halves of their digests, (n,), may have entries; False is certain.

        Nothing is read from the store.
        """
        marks = np.zeros(len(low), np.bool_)
        for run in self._runs.values():
            if run.alive:
                mark_candidates(low, high, run.bloom, marks)
        return marks

    def mark_dead(self, runs: NDArray[np.int64], positions: NDArray[np.int64]) -> int:
        """Mark entries as dead by their handles in `FoundEntries`; return how many were alive."""
        return sum(
            self._runs[number].mark_dead(positions[runs == number].astype(np.uint32))
            for number in np.unique(runs).tolist()
        )

    def oldest_ms(self, queue: int) -> int | None:
        """Lower bound of the record times of a queue's living entries; None without any."""
        runs = [run for run in self._runs.values() if run.manifest.queue == queue and run.alive]
        return min((run.oldest_ms for run in runs), default=None)

    def plan_oldest_search(self, queue: int, count: int) -> OldestSearch:
        """Plan to take the `count` oldest entries of a queue.

        Nothing may be evicted from the queue until `finish_oldest_search` or `discard_plans`.

        Raises
        ------
        ValueError
            If nothing falls due in the queue, or there is no such queue.
        RuntimeError
            If another search has not ended.
        """
        if queue not in QUEUES or queue == DEDUP_ENTRIES:
            raise ValueError(f"the queue of what is to fall due must be one of {QUEUES[:-1]}, got {queue}")
        runs = [run for run in self._runs.values() if run.manifest.queue == queue and run.alive]
        if self._search is not None:
            raise RuntimeError("one search of cold entries at a time; the one before has not ended")
        self._search = OldestSearch(self._store, self._spec, queue, runs, count)
        return self._search

    def finish_oldest_search(self, search: OldestSearch) -> TakenEntries:
        """Take the entries found that are still alive, oldest first.

        After `search.run`.
        """
        if search is not self._search:
            raise RuntimeError("this search of cold entries is not the one that was planned last")
        self._search = None
        return search.take_found()

    def plan_merge(self) -> Merge | None:
        """Plan a merge; None if none is due or something else is planned. Also removes dead runs."""
        if self._merge is not None or self._search is not None:
            return None
        for run in list(self._runs.values()):
            if run.estimate(self.floor) == 0:
                self._drop(run)
        chosen = runs_to_merge(self._runs.values(), self._spec, self.floor)
        if not chosen:
            return None
        side = self._side_of(chosen[0].manifest.queue)
        self._merge = Merge(self._store, self._spec, self._number(), chosen, side, self.floor)
        return self._merge

    def finish_merge(self, merge: Merge) -> None:
        """Replace the merged runs by the new one; after its `run`, and while no search is planned."""
        if merge is not self._merge or self._search is not None:
            raise RuntimeError("this merge of cold entries is not the one that was planned last, alone")
        self._merge = None
        made = merge.run_made
        if made is not None:
            made.mark_dead(merge.died_since())
            self._add(made)
        for run in merge.runs:
            self._drop(run)

    def discard_plans(self) -> None:
        """Drop the planned merge and search; their `run` must have ended."""
        self._merge = self._search = None

    def changes(self) -> ColdChanges:
        """Return the changes since the last call; if they are not committed, open the entries anew."""
        changes, self._changes = self._changes, ColdChanges()
        for run in self._runs.values():
            run.add_changes(changes)
        return changes

    def _add(self, run: Run) -> None:
        run.read_into(self._columns)
        self._runs[run.manifest.number] = run

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _drop(self, run: Run) -> None:
        del self._runs[run.manifest.number]
        self._changes.removed_entries += run.manifest.count
        self._changes.removed += [
            range_of(kind, run.manifest.number, run.manifest.number + 1) for kind in KINDS
        ]


# Scores and segments of predictions outside the table: one value per prediction, by arrival.
#
# Classes are spelt out, so that their numbers may be released. If a prediction has segments but no scores,
# the number of its segments is in the run.


SCORED: Final = 0
"""Value of `true_or_scores` of a prediction outside the table that has scores."""
_HALF: Final = 32
_MOST_LISTS: Final = 4_096
"""Most lists of classes kept decoded; most predictions of a model have the same list."""
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(tuple[msgspec.Raw, bytes, str])
_NAMES: Final = msgspec.msgpack.Decoder(tuple[Name, ...])


class StoredScores(NamedTuple):
    """Scores of one prediction."""

    classes: tuple[str, ...]
    values: bytes
    """float64, one for each class."""
    segments: str
    """Text of the same prediction's segments; empty without any."""


class OutsideScores:
    """Scores of predictions outside the table, by arrival.

    Parameters
    ----------
    store
        Store of the scores of earlier commits.
    """

    __slots__ = ("_classes", "_fresh", "_gone", "_store")

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._fresh: dict[bytes, bytes] = {}
        self._gone: set[bytes] = set()
        self._classes: dict[bytes, tuple[str, ...]] = {}

    def put(self, packed: Records, table: Table) -> None:
        """Store the scores of predictions that are evicted, and set `true_or_scores` of these to `SCORED`."""
        scored = _scored(packed)
        if not len(scored):
            return
        lists = table.names.scores.take(packed["true_or_scores"][scored])
        packed["true_or_scores"][scored] = SCORED
        classes, segments = table.names.classes.names, table.names.segments.names
        numbers, values = lists.classes.tobytes(), lists.values.astype("<f8", copy=False).tobytes()
        spelt: dict[bytes, msgspec.Raw] = {}
        start = 0
        for arrival, stop, number in zip(
            packed["arrival"][scored].tolist(), lists.ends.tolist(), lists.beside.tolist(), strict=True
        ):
            listed = numbers[4 * start : 4 * stop]
            names = spelt.get(listed)
            if names is None:
                named = [classes[each] for each in lists.classes[start:stop].tolist()]
                names = spelt[listed] = msgspec.Raw(_ENCODER.encode(named))
            text = "" if number < 0 else segments[number]
            self._fresh[score_key(arrival)] = _ENCODER.encode((names, values[8 * start : 8 * stop], text))
            start = stop

    def replace(self, before: Records, packed: Records, table: Table) -> None:
        """Replace the scores of predictions by those of their present values, of the same arrivals."""
        self.drop(before)  # first: what has the same arrival has the same key
        self.put(packed, table)

    def read(self, packed: Records) -> list[StoredScores]:
        """Read the scores of the predictions that have some, in order; may run in a thread.

        Raises
        ------
        ColdDamaged
            If some are missing or cannot be read.
        """
        keys = [score_key(arrival) for arrival in packed["arrival"][_scored(packed)].tolist()]
        asked = [key for key in keys if key not in self._fresh]
        found = dict(zip(asked, self._store.get_all(asked), strict=True)) if asked else {}
        read: list[StoredScores] = []
        for key in keys:
            value = self._fresh.get(key) or found.get(key)
            if value is None:
                raise ColdDamaged(f"scores of a cold prediction are missing: there is no value {key.hex()}")
            try:
                names, values, text = _DECODER.decode(value)
                classes = self._classes_of(bytes(names))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ColdDamaged(f"scores under {key.hex()} are not readable: {error}") from error
            if len(values) != 8 * len(classes):
                raise ColdDamaged(
                    f"scores under {key.hex()}: expected {len(classes)} of them, got {len(values)} bytes"
                )
            read.append(StoredScores(classes, values, text))
        return read

    def _classes_of(self, names: bytes) -> tuple[str, ...]:
        classes = self._classes.get(names)
        if classes is None:
            if len(self._classes) >= _MOST_LISTS:
                self._classes.clear()
            classes = self._classes[names] = _NAMES.decode(names)
        return classes

    def drop(self, packed: Records) -> None:
        """Drop the scores of these predictions, which are in the table or no longer needed."""
        for arrival in packed["arrival"][_scored(packed)].tolist():
            key = score_key(arrival)
            if self._fresh.pop(key, None) is None:
                self._gone.add(key)

    def add_changes(self, changes: ColdChanges) -> None:
        """Add to the changes what a commit must write."""
        changes.put.update(dict.fromkeys(self._gone))
        changes.put.update(self._fresh)  # some replace what is gone
        self._fresh, self._gone = {}, set()


def with_numbers(packed: Records, stored: list[StoredScores], table: Table) -> None:
    """Add scores that were read to the table, and write their numbers to the entries `packed`, in place."""
    if not stored:
        return
    numbers = {
        classes: np.array([table.names.classes[name] for name in classes], np.int32)
        for classes in dict.fromkeys(each.classes for each in stored)
    }
    segments = table.names.segments
    lists = ScoreLists(
        np.cumsum([len(each.classes) for each in stored], dtype=np.int64),
        np.concatenate([numbers[each.classes] for each in stored]),
        np.frombuffer(b"".join(each.values for each in stored), "<f8").astype(np.float64),
        np.array([segments.number(segments_of(text)) if text else -1 for *_, text in stored], np.int32),
    )
    packed["true_or_scores"][_scored(packed)] = table.names.scores.add(lists)


def score_key(arrival: int) -> bytes:
    """Key of the scores of the prediction with this arrival."""
    return key_of(SCORES, arrival >> _HALF, arrival & (1 << _HALF) - 1)


def _scored(packed: Records) -> NDArray[np.intp]:
    carried = packed["true_or_scores"]
    return np.flatnonzero((packed["state"] == PENDING) & (carried >= 0) & (carried < SEGMENTS_FROM))


class OutsideContents:
    """Entries in runs, the scores of the predictions among them, and the number of dedup entries.

    Parameters
    ----------
    store
        Store of the runs.
    spec
        Sizes of the runs.
    clean
        Whether to remove values that no commit refers to.

    Raises
    ------
    ColdDamaged
        If the store's contents are not what was written.
    """

    __slots__ = ("cold", "scores", "settled")

    def __init__(self, store: RunStore, spec: ColdSpec, *, clean: bool) -> None:
        self.cold = ColdEntries(store, spec, clean=clean)
        self.scores = OutsideScores(store)
        self.settled: dict[int, int] = {}
        """Number of dedup entries by generation."""

    def changes(self) -> ColdChanges:
        """Changes of runs and scores for a commit."""
        changes = self.cold.changes()
        self.scores.add_changes(changes)
        return changes

    def drop_generations(self, floor: int) -> None:
        """Drop the dedup entries of generations before `floor`."""
        self.cold.floor = floor
        for generation in [generation for generation in self.settled if generation < floor]:
            del self.settled[generation]

    def update_oldest_ms(self, table: Table) -> None:
        """Set the table's times of the oldest entries outside, by queue."""
        cold_ms = table.arrays.totals["cold_ms"][0]
        for queue in WAITING_QUEUES:
            oldest_ms = self.cold.oldest_ms(queue)
            cold_ms[queue] = NEVER_MS if oldest_ms is None else oldest_ms


# Reading of all entries outside the table, for the inspection of a state.


def entries_outside(store: RunStore, floor: int) -> Iterator[tuple[int, Records]]:
    """Iterate over queue and living entries, `PACKED_ENTRY` (n,), run by run, some thousands at a time.

    Parameters
    ----------
    store
        Store of the runs; nothing is written to it.
    floor
        Oldest generation of dedup entries that is not dropped.

    Raises
    ------
    ColdDamaged
        If a run is not what was written.
    """
    cold = ColdEntries(store, clean=False)
    cold.floor = floor
    return cold.all_living()


@dataclass(slots=True)
class Examined:
    """Counts of the entries read, and the faults found."""

    by_queue: Counter[int] = field(default_factory=Counter[int])
    unmatched: int = 0
    settled: Counter[int] = field(default_factory=Counter[int])
    """Number of dedup entries by generation."""
    faults: list[str] = field(default_factory=list[str])


def examine(store: RunStore, floor: int) -> Examined:
    """Read every living entry, and check that its id finds it and that its scores exist.

    Raises
    ------
    ColdDamaged
        If a run is not what was written.
    """
    found = Examined()
    cold = ColdEntries(store, clean=False)
    cold.floor = floor
    scores = OutsideScores(store)
    for queue, entries in cold.all_living():
        found.by_queue[queue] += len(entries)
        if queue == RETAINED_LABELS:
            found.unmatched += int((entries["state"] == UNMATCHED).sum())
        elif queue == DEDUP_ENTRIES:
            generations, counts = np.unique(entries["generation"], return_counts=True)
            found.settled.update(dict(zip(generations.tolist(), counts.tolist(), strict=True)))
        elif queue == PREDICTIONS:
            scores.read(entries)
        ids = np.unique(entries[["low", "high"]])
        low, high = ids["low"].copy(), ids["high"].copy()
        looked_up = cold.look_up(low, high).entries
        missing = ~np.isin(_as_bytes(entries), _as_bytes(looked_up))
        for entry in entries[missing][:1]:
            digest = int(entry["high"]).to_bytes(8, "big") + int(entry["low"]).to_bytes(8, "big")
            found.faults.append(f"a look-up of id {digest.hex()} does not find its cold entry")
    return found


def _as_bytes(entries: Records) -> Records:
    return np.ascontiguousarray(entries).view(f"V{PACKED_ENTRY.itemsize}")
