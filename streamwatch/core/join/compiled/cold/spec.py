"""Sizes of cold runs, blocks and filters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColdSpec:
    """Sizes of runs, blocks and filters, and rules for merging runs."""

    block_entries: int = 64
    """Number of entries of a block: about 1.6 kB."""
    chunk_blocks: int = 128
    """Number of blocks read, merged or written at a time, which takes a millisecond or two."""
    first_entries: int = 32_768
    """Base of the tiers: a run with fewer entries than this times the fan-out is of the lowest tier."""
    fanout: int = 8
    """Number of runs of one tier that are merged into one, and ratio of sizes between tiers.

    A tier costs about 0.4 µs per entry, a run about 0.02 µs per look-up.
    """
    most_entries: int = 2**22
    """Largest number of entries of a merged run."""
    filter_bits: int = 12
    """Bits of the filter per id: about 1 in 200 absent ids passes."""
    filter_bits_of_few: int = 16
    """Bits of the filter per id for small runs, of which there are many: about 1 in 1,000 passes."""
    many_entries: int = 2**19
    """Number of ids below which a run is small."""
