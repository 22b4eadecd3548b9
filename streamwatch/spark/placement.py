"""Keys of buckets that Spark's hash distributes evenly over its shuffle partitions.

With keys 0, 1, 2 … some partitions get two buckets and others none, so that cores stay idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_SEED: Final = 42
_MASK: Final = 0xFFFFFFFF


def dealt_keys(buckets: int, partitions: int) -> Sequence[int]:
    """Find the smallest different keys that put bucket i into partition i modulo `partitions`.

    Raises
    ------
    ValueError
        If a number is below 1.
    """
    if buckets < 1 or partitions < 1:
        raise ValueError(f"buckets and partitions must be at least 1, got {buckets} and {partitions}")
    free: dict[int, list[int]] = {partition: [] for partition in range(partitions)}
    keys: list[int] = []
    candidate = 0
    for bucket in range(buckets):
        waiting = free[bucket % partitions]
        while not waiting:
            free[partition_of(candidate, partitions)].append(candidate)
            candidate += 1
        keys.append(waiting.pop(0))
    return tuple(keys)


def partition_of(key: int, partitions: int) -> int:
    """Partition into which Spark's hash partitioning puts a row with this integer key."""
    return _signed(_murmur3(key & _MASK)) % partitions


def _murmur3(word: int) -> int:
    """Murmur3 (x86, 32 bit) of one 32-bit word with Spark's seed (Appleby 2011)."""
    word = word * 0xCC9E2D51 & _MASK
    word = _rotated(word, 15) * 0x1B873593 & _MASK
    mixed = _rotated(_SEED ^ word, 13) * 5 + 0xE6546B64 & _MASK
    mixed ^= 4  # length in bytes
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _MASK
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _MASK
    return mixed ^ mixed >> 16


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word
