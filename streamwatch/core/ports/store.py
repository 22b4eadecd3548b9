"""Store of the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from streamwatch.core.commit.batch import CommitBatch, RecoveredState
from streamwatch.core.join.entry import JoinEntry
from streamwatch.core.join.working_set import BatchResult, ReadSet, WorkingSet
from streamwatch.core.series import Family


class Store(Protocol):
    """Store of the state. One task calls `fetch` and `apply` for every batch, and `commit` now and then.

    What `apply` took since the last commit is in memory only. `commit` writes it and its `CommitBatch` in one
    atomic step. `flush`, which may run in a thread beside the task, makes the commits made before it survive
    a power cut. If either raises, it is unknown what was written: close the store and open it again.
    """

    @property
    def durable(self) -> bool:
        """Tell whether commits survive the process."""
        ...

    @property
    def identity(self) -> str:
        """Unique name of this state, given when it began and kept for its life."""
        ...

    def load(self) -> RecoveredState:
        """Contents of the last commit, without the join entries."""
        ...

    def fetch(self, read_set: ReadSet) -> WorkingSet:
        """Lend the entries of the ids in `read_set` and those whose deadline may pass."""
        ...

    def apply(self, result: BatchResult) -> None:
        """Take over the changes of a batch, in memory."""
        ...

    def commit(self, changes: CommitBatch) -> None:
        """Write what `apply` took since the last commit together with `changes`, all or nothing."""
        ...

    def flush(self) -> None:
        """Make every commit made before this call survive a power cut."""
        ...

    def records(self) -> Mapping[str, JoinEntry]:
        """First entry of each id's chain (for inspection and tests)."""
        ...

    def families(self) -> Sequence[Family]:
        """Size and cost of the store, as metrics."""
        ...

    def close(self) -> None:
        """Close the store; what was not committed is lost."""
        ...
