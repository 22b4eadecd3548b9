"""`state`: where state lives between batches, and how often it is made durable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from streamwatch.settings.durations import Duration, Lasting
from streamwatch.settings.sections import Bounded, Count, Section


class StateSection(Section):
    """Place of the state, and how often it is committed."""

    kind: Literal["rocksdb", "memory"] = "rocksdb"
    """Where the state is kept: rocksdb (on disk, where it survives any crash) or memory (a restart reads the
    topics again)."""
    directory: Path = Path("streamwatch-state")
    """Directory of the RocksDB files. It is created if it does not exist, and is never shared by two
    daemons."""
    commit_interval: Annotated[Duration, Lasting("1ms", "10m")] = 1_000
    """Maximum time between commits. A commit makes what was read durable and visible."""
    commit_events: Count | None = None
    """Number of waiting events that trigger an earlier commit. If not set, 20,000 in columns and 5,000 row by
    row."""
    cache_entries: Count = 150_000
    """Number of ids whose predictions and labels are cached in memory. Others are read from disk."""
    journal_outcomes: Count = 200_000
    """Maximum number of outcomes to evaluate again at a start, before snapshots of the models replace
    them."""
    min_free_megabytes: Count = 512
    """Free disk space below which reading pauses."""
    join_memory_megabytes: Annotated[int, Bounded(least=0)] = 200
    """Memory for entries of the join, at 110 bytes each; beyond it, the oldest entries are kept on disk. 0
    stores one value per id instead."""
