"""Series of the state and its commits."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

STATE: Final = (
    counter(
        "commits_total",
        "Commits made durable over the life of the state; since the start if it is in memory.",
    ),
    gauge("last_commit_seconds", "Time from the beginning of the last durable commit to its end on disk."),
    gauge("uncommitted_events", "Events evaluated in memory whose commit is yet to come."),
    gauge("state_bytes", "Bytes of state on disk by column family, without the write-ahead log.", "part"),
    gauge("state_buffered_bytes", "Bytes written and not yet sorted into files."),
    gauge("state_entries", "Ids with join entries on disk, as RocksDB estimates it."),
    gauge("state_cache_entries", "Ids whose join entries are in memory."),
)
