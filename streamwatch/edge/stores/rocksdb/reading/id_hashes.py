"""Ids that are compared as sets, each with a number that says what about it is meant.

A 64-bit hash stands for each pair; ids are taken by ranges of their first two bytes.
"""

from __future__ import annotations

from array import array
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.edge.stores.rocksdb.keys import DIGEST_BYTES

Words: TypeAlias = NDArray[np.uint64]

PREFIXES: Final = 2**16
"""First two bytes there are."""


class IdHashes:
    """Ids, each with a number that says what about it is meant."""

    def __init__(self) -> None:
        self._ids = bytearray()
        self._marks = array("Q")

    def add(self, key: bytes, mark: int) -> None:
        """One more."""
        self._ids += key
        self._marks.append(mark)

    def hashes(self) -> Words:
        """One for each, in the order in which they were added."""
        return hashes(bytes(self._ids), np.array(self._marks, np.uint64))

    def at(self, position: int) -> tuple[str, int]:
        """Id in hexadecimal, and its number."""
        start = position * DIGEST_BYTES
        return self._ids[start : start + DIGEST_BYTES].hex(), self._marks[position]


def within(ids: bytes, between: tuple[int, int]) -> bytes:
    """Of concatenated ids, those from one prefix to another."""
    since, until = between
    if until - since == PREFIXES:
        return ids
    rows = np.frombuffer(ids, ">u2").reshape(-1, DIGEST_BYTES // 2)
    return rows[(rows[:, 0] >= since) & (rows[:, 0] < until)].tobytes()


def hashes(ids: bytes, marks: Words) -> Words:
    """One number for each pair: ids are random already, marks are spread (SplitMix64, Steele 2014)."""
    words = np.frombuffer(ids, "<u8").reshape(-1, 2)
    mixed = (marks + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(29)
    return words[:, 0] ^ (words[:, 1] * np.uint64(0x9E3779B97F4A7C15)) ^ mixed


def joined(parts: list[Words]) -> Words:
    """All of them, one after the other."""
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def repeated(values: Words, among: Words) -> list[int]:
    """Places in `among` of what is more than once in `values`."""
    each, counts = np.unique(values, return_counts=True)
    first, places = np.unique(among, return_index=True)
    return places[np.isin(first, each[counts > 1])].tolist()
