"""`CommitBatch`, which a commit writes beside the join entries, and `RecoveredState`, read at a start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from streamwatch.core.join.compiled.cold.store import ColdChanges, RunStore


@dataclass(frozen=True, slots=True)
class CommitBatch:
    """Contents of one commit, written atomically with the join entries changed since the one before."""

    sections: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Each replaces what stood under its name."""
    models: Mapping[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    """Models whose entry is new; None removes it."""
    journal: bytes = b""
    """Outcomes since the last commit: kept under this commit's number. Empty: nothing to keep."""
    journal_floor: int = 0
    """Entries of the journal with a lower number are no longer needed."""
    held: Mapping[bytes, bytes | None] = field(default_factory=dict[bytes, "bytes | None"])
    """Outcomes that began to wait for their order, by key; None: waits no longer. Keys sort by order."""
    outbox: Mapping[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    """Notifications to deliver, by id; None: delivered, or given up."""
    columns: Mapping[bytes, bytes | None] = field(default_factory=dict[bytes, "bytes | None"])
    """Values of a compiled join that are new, by key (`column_keys`); None removes one."""
    runs: ColdChanges | None = None
    """Changes of its entries outside the table; None where none can be."""


@dataclass(frozen=True, slots=True)
class RecoveredState:
    """Contents of the last durable commit."""

    commits: int = 0
    """Number of the last commit, counted from the beginning of the state; 0: there is no state yet."""
    sections: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    models: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    journal: Sequence[tuple[int, bytes]] = ()
    """Entries by commit number, ascending."""
    held: Mapping[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    """In the order of keys."""
    outbox: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    columns: Iterable[tuple[bytes, bytes]] = ()
    """Values of a compiled join, in the order of keys; read while they are iterated, once."""
    runs: RunStore | None = None
    """What keeps its entries outside the table; None where none can be."""
