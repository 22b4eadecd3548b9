"""State in this process only: nothing survives it."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Mapping, Sequence

from streamwatch.core.expiry import Deadlines
from streamwatch.core.known import EARLY, PENDING, RETAINED, UNMET, Known, forget
from streamwatch.core.saving import Changes, Saved
from streamwatch.core.series import Family
from streamwatch.core.step import Found, Needs, Step


class MemoryStore:
    """Lends the core its own dictionary and indices, so that fetch and commit cost next to nothing.

    Dead tombstones and settled index entries are removed a bounded number per commit, in proportion to what
    the batch brought in, so that no commit stalls and memory stays within a constant factor of what is
    alive.
    """

    def __init__(self) -> None:
        self._identity = str(uuid.uuid4())
        self._known: dict[str, Known] = {}
        self._found = Found(
            self._known, Deadlines(PENDING, PENDING), Deadlines(EARLY, EARLY), Deadlines(UNMET, RETAINED)
        )
        self._graves: dict[int, list[Known]] = {}
        self._dead: deque[list[Known]] = deque()

    @property
    def durable(self) -> bool:
        """Nothing survives the process."""
        return False

    @property
    def identity(self) -> str:
        """Of this process."""
        return self._identity

    def load(self) -> Saved:
        """There is no state yet."""
        return Saved()

    def fetch(self, needs: Needs) -> Found:
        """Everything; whatever is needed is in it."""
        del needs
        return self._found

    def keep(self, step: Step) -> None:
        """Remember tombstones; the records were changed in place."""
        for generation, buried in step.buried:
            self._graves.setdefault(generation, []).extend(buried)
        for generation in step.dropped:
            if (graves := self._graves.pop(generation, None)) is not None:
                self._dead.append(graves)
        effort = 4 * len(step.events) + 64
        self._remove(effort)
        for index in (self._found.pending, self._found.early, self._found.retained):
            index.sweep(effort)

    def commit(self, changes: Changes) -> None:
        """Nothing is kept but the records, which are here already."""

    def flush(self) -> None:
        """Nothing to do."""

    def families(self) -> Sequence[Family]:
        """It has nothing to tell that the join does not."""
        return ()

    def close(self) -> None:
        """Nothing to do."""

    def _remove(self, effort: int) -> None:
        while self._dead and effort > 0:
            graves = self._dead[0]
            for record in graves[-effort:]:
                forget(self._known, record)
            removed = min(effort, len(graves))
            del graves[-effort:]
            effort -= removed
            if not graves:
                self._dead.popleft()

    def records(self) -> Mapping[str, Known]:
        """First record of every id's chain; dead tombstones that were not removed yet are among them."""
        return self._known

    @property
    def indices(self) -> tuple[Deadlines, Deadlines, Deadlines]:
        """Deadlines of predictions, of labels with a model, of labels without."""
        return self._found.pending, self._found.early, self._found.retained
