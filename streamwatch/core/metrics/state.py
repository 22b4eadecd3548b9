"""Series of the state and its commits."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

STATE: Final = (
    counter(
        "commits_total",
        "Commits over the life of the state; since the start if the state is in memory.",
    ),
    gauge("last_commit_seconds", "Duration of the last commit, until it was durable."),
    gauge("uncommitted_events", "Events that are evaluated but not committed yet."),
    gauge("state_bytes", "Size of the state on disk by column family, without the write-ahead log.", "part"),
    gauge("state_buffered_bytes", "Bytes that are written but not yet sorted into files."),
    gauge("state_entries", "Ids with join entries on disk, as estimated by RocksDB."),
    gauge("state_cache_entries", "Ids whose join entries are cached in memory."),
)
