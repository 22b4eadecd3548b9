"""What a durable store is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RocksSpec:
    """Directory of the state, and how much memory it may take."""

    directory: Path
    horizon_ms: int
    early_horizon_ms: int
    cache_entries: int = 150_000
    """Ids whose records stay in memory after they were written, beside those that fall due next."""
    cache_bytes: int = 64 * 2**20
    """Blocks read from disk."""
    write_buffer_bytes: int = 48 * 2**20
    """What is written and not yet sorted into files."""
    due_records: int = 5_000
    """About so many records of one index fall due at a time, where more are due at once."""
    in_columns: bool = False
    """Whether the join is compiled, and commits are packed."""

    @property
    def expiry_cache_entries(self) -> int:
        """Most entries of one index of deadlines that stay in memory although nothing needs them yet."""
        return self.cache_entries // 16
