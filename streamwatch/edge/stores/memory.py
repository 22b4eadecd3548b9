"""State in this process only: nothing survives it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import CommitBatch, RecoveredState
from streamwatch.edge.stores.kind import StateRefused, StoreKind


class MemoryStore:
    """Keeps nothing: the join and the estimators have everything in memory already."""

    def __init__(self) -> None:
        self._identity = str(uuid.uuid4())

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

    def commit(self, changes: CommitBatch) -> None:
        """Nothing is kept."""

    def flush(self) -> None:
        """Nothing to do."""

    def copy_to(self, directory: Path) -> None:
        """Refuse: there is nothing on disk."""
        raise StateRefused(f"a state in memory cannot be copied to {directory}")

    def families(self) -> Sequence[Family]:
        """Return nothing: all metrics of entries are those of the join."""
        return ()

    def close(self) -> None:
        """Nothing to do."""


def open_memory(spec: object) -> MemoryStore:
    """Begin an empty state; there is nothing to specify."""
    del spec
    return MemoryStore()


KIND = StoreKind[object]("memory", durable=False, open=open_memory)
