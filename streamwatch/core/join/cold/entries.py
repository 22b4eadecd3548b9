"""`ColdEntries`: the join's interface to cold entries; see the package's docstring for its use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.cold.block import MOST_SIDE_COLUMNS, entries_of
from streamwatch.core.join.cold.finding import FoundEntries, find_entries, mark_candidates, read_living
from streamwatch.core.join.cold.merging import Evicted, Eviction, Merge, PackedEntries, runs_to_merge
from streamwatch.core.join.cold.oldest import OldestSearch, TakenEntries
from streamwatch.core.join.cold.run import DEDUP_ENTRIES, Run, committed_runs
from streamwatch.core.join.cold.store import (
    KINDS,
    ColdChanges,
    ColdSpec,
    RunStore,
    range_of,
)
from streamwatch.core.join.layout import EARLY_LABELS, PREDICTIONS, RETAINED_LABELS, renamed
from streamwatch.core.specs import JoinSpec

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
