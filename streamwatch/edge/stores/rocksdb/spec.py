"""Specification of a durable store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RocksSpec:
    """Directory of the state, and how much memory it may take."""

    directory: Path
    cache_bytes: int = 64 * 2**20
    """Blocks read from disk."""
    write_buffer_bytes: int = 48 * 2**20
    """What is written and not yet sorted into files."""
