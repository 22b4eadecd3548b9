"""Sizes of cold runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColdSpec:
    """Sizes of runs, blocks and filters, and when runs are merged."""

    block_entries: int = 64
    """Entries a block: about 1.6 kB."""
    chunk_blocks: int = 128
    """Blocks read, merged or written at a time, in a millisecond or two."""
    first_entries: int = 32_768
    """A run of less than the fan-out times as many is of the lowest tier."""
    fanout: int = 8
    """So many runs of one tier become one; each tier is so many times larger than the one below. A tier costs
    an entry about 0.4 µs, a run whoever looks an id up about 0.02."""
    most_entries: int = 2**22
    """Runs are not merged beyond this."""
    filter_bits: int = 12
    """Bits of the filter an id: about 1 in 200 foreign ones passes."""
    filter_bits_of_few: int = 16
    """The same of runs that are small, of which there are many: about 1 in 1,000."""
    many_entries: int = 2**19
    """A run of fewer ids is small."""
