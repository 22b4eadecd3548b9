"""State in this process only: nothing survives it."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Mapping, Sequence

from streamwatch.core.commit.batch import CommitBatch, RecoveredState
from streamwatch.core.join.entry import EARLY, PENDING, RETAINED, UNMATCHED, JoinEntry, forget
from streamwatch.core.join.expiry import Deadlines
from streamwatch.core.join.working_set import BatchResult, ReadSet, WorkingSet
from streamwatch.core.series import Family
from streamwatch.edge.stores.kind import StoreKind


def nothing_lent(by_id: dict[str, JoinEntry] | None = None) -> WorkingSet:
    """A working set of these entries, none by default, with empty indices."""
    return WorkingSet(
        {} if by_id is None else by_id,
        Deadlines(PENDING, PENDING),
        Deadlines(EARLY, EARLY),
        Deadlines(UNMATCHED, RETAINED),
    )


class MemoryStore:
    """Lends the core its own dictionary and indices, so that fetch and commit cost next to nothing.

    Dead dedup entries and settled index entries are removed a bounded number per commit, in proportion to
    what the batch brought in, so that no commit stalls and memory stays within a constant factor of what is
    alive.
    """

    def __init__(self) -> None:
        self._identity = str(uuid.uuid4())
        self._by_id: dict[str, JoinEntry] = {}
        self._found = nothing_lent(self._by_id)
        self._dedup: dict[int, list[JoinEntry]] = {}
        self._dead: deque[list[JoinEntry]] = deque()

    @property
    def durable(self) -> bool:
        """Nothing survives the process."""
        return False

    @property
    def identity(self) -> str:
        """Of this process."""
        return self._identity

    def load(self) -> RecoveredState:
        """There is no state yet."""
        return RecoveredState()

    def fetch(self, read_set: ReadSet) -> WorkingSet:
        """Everything; whatever is needed is in it."""
        del read_set
        return self._found

    def apply(self, result: BatchResult) -> None:
        """Remember dedup entries; the records were changed in place."""
        for generation, dedup_added in result.dedup_added:
            self._dedup.setdefault(generation, []).extend(dedup_added)
        for generation in result.dropped:
            if (dedup := self._dedup.pop(generation, None)) is not None:
                self._dead.append(dedup)
        effort = 4 * len(result.events) + 64
        self._remove(effort)
        for index in (self._found.pending, self._found.early, self._found.retained):
            index.sweep(effort)

    def commit(self, changes: CommitBatch) -> None:
        """Nothing is kept but the records, which are here already."""

    def flush(self) -> None:
        """Nothing to do."""

    def families(self) -> Sequence[Family]:
        """Nothing that the join does not tell."""
        return ()

    def close(self) -> None:
        """Nothing to do."""

    def _remove(self, effort: int) -> None:
        while self._dead and effort > 0:
            dedup = self._dead[0]
            for record in dedup[-effort:]:
                forget(self._by_id, record)
            removed = min(effort, len(dedup))
            del dedup[-effort:]
            effort -= removed
            if not dedup:
                self._dead.popleft()

    def records(self) -> Mapping[str, JoinEntry]:
        """First record of every id's chain; dead dedup entries that were not removed yet are among them."""
        return self._by_id

    @property
    def indices(self) -> tuple[Deadlines, Deadlines, Deadlines]:
        """Deadlines of predictions, of labels with a model, of labels without."""
        return self._found.pending, self._found.early, self._found.retained


def open_memory(spec: object) -> MemoryStore:
    """Begin an empty state; there is nothing to specify."""
    del spec
    return MemoryStore()


KIND = StoreKind[object]("memory", durable=False, open=open_memory)
