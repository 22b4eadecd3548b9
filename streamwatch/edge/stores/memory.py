"""The store without a disk: nothing survives the process."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import CommitBatch, RecoveredState
from streamwatch.edge.stores.kind import StateRefused, StoreKind


class MemoryStore:
    """A `Store` that keeps nothing: the join and the estimators have all state in memory already."""

    def __init__(self) -> None:
        self._identity = str(uuid.uuid4())

    @property
    def durable(self) -> bool:
        """False: nothing survives the process."""
        return False

    @property
    def identity(self) -> str:
        """Random identity of this process's state."""
        return self._identity

    def load(self) -> RecoveredState:
        """Return the state of a first start."""
        return RecoveredState()

    def commit(self, changes: CommitBatch) -> None:
        """Discard the changes."""

    def flush(self) -> None:
        """Do nothing."""

    def copy_to(self, directory: Path) -> None:
        """Refuse to copy, as nothing is on disk; raises StateRefused."""
        raise StateRefused(f"a state in memory cannot be copied to {directory}")

    def families(self) -> Sequence[Family]:
        """Return no metrics: the join reports the numbers of entries."""
        return ()

    def close(self) -> None:
        """Do nothing."""


def open_memory(spec: object) -> MemoryStore:
    """Make an empty store; `spec` is ignored."""
    del spec
    return MemoryStore()


KIND = StoreKind[object]("memory", durable=False, open=open_memory)
