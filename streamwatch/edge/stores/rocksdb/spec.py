"""Specification of a durable store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RocksSpec:
    """Directory of the state, and the memory that RocksDB may use for it."""

    directory: Path
    cache_bytes: int = 64 * 2**20
    """Memory for blocks read from disk."""
    write_buffer_bytes: int = 48 * 2**20
    """Memory for writes that are not yet sorted into files."""
