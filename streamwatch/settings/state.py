"""`state`: where state lives between batches, and how often it is made durable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from streamwatch.settings.durations import Duration, Lasting
from streamwatch.settings.sections import Bounded, Count, Section


class StateSection(Section):
    """Place of the state between batches."""

    kind: Literal["rocksdb", "memory"] = "rocksdb"
    """On disk (rocksdb), where it survives any crash, or in memory: a restart then reads the topics again."""
    directory: Path = Path("streamwatch-state")
    """Where rocksdb keeps its files; made if absent, never shared by two daemons."""
    commit_interval: Annotated[Duration, Lasting("1ms", "10m")] = 1_000
    """How often what was read is made durable and shown, at the latest."""
    commit_events: Count | None = None
    """Made durable sooner when so many events wait; by default 20,000 in columns, 5,000 row by row."""
    cache_entries: Count = 150_000
    """Ids whose predictions and labels are served from memory; further ones from disk."""
    journal_outcomes: Count = 200_000
    """Outcomes kept to be evaluated again at a start, before snapshots of models replace them."""
    min_free_megabytes: Count = 512
    """Reading pauses while the disk has less than this free."""
    join_memory_megabytes: Annotated[int, Bounded(least=0)] = 200
    """Room for what the join knows, 110 bytes each; the oldest of more lie on disk. 0: one value per id."""
