"""Dedup entries as commits write them: values of one generation each, removed together with it.

Small values are merged: sixteen of one size, written in succession, become one of the next size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.durable.keys import DEDUP, key_of
from streamwatch.core.join.compiled.durable.packed import DedupRows, pack_columns, pack_dedup, unpack_dedup
from streamwatch.core.join.compiled.durable.waiting_log import Changes
from streamwatch.core.join.compiled.layout import Arrays
from streamwatch.core.join.compiled.unwritten import DedupMark, unwritten_dedup
from streamwatch.core.words import taken

SIZES: Final = (256, 4_096)
"""Bounds of the sizes: values with fewer entries than a bound are merged."""
MERGED: Final = 16
"""Number of values of one size that are merged into one."""


@dataclass(slots=True)
class DedupValue:
    """Dedup entries of one value in the store."""

    number: int
    count: int
    value: bytes | None
    """The value, as long as it may still be merged."""


class DedupLog:
    """Values of dedup entries in the store, by generation.

    Parameters
    ----------
    values
        Values in the store by generation, in the order of their numbers.
    mark
        The dedup entry written last.
    """

    __slots__ = ("_mark", "_next", "_values")

    def __init__(
        self, values: Mapping[int, Sequence[DedupValue]] | None = None, mark: DedupMark | None = None
    ) -> None:
        self._values = {generation: list(each) for generation, each in (values or {}).items()}
        numbers = [each.number for of_generation in self._values.values() for each in of_generation]
        self._next = max(numbers, default=-1) + 1
        self._mark = mark or DedupMark()

    def write(self, arrays: Arrays, changes: Changes) -> None:
        """Add to the changes the dedup entries made since the last commit, and remove dropped generations."""
        floor = int(arrays.totals["floor"][0])
        for generation in [generation for generation in self._values if generation < floor]:
            for each in self._values.pop(generation):
                changes[key_of(DEDUP, generation, each.number)] = None
        runs, self._mark = unwritten_dedup(arrays, self._mark)
        for generation, chosen in runs:
            self._write_run(generation, arrays, chosen, changes)

    def remove_all(self, changes: Changes) -> None:
        """Remove all values in the changes, as all dedup entries left the table."""
        for generation, values in self._values.items():
            for each in values:
                changes[key_of(DEDUP, generation, each.number)] = None
        self._values.clear()
        self._mark = DedupMark()

    def _write_run(
        self, generation: int, arrays: Arrays, chosen: NDArray[np.int32], changes: Changes
    ) -> None:
        value = pack_dedup(taken(arrays.entries, chosen))
        values = self._values.setdefault(generation, [])
        values.append(DedupValue(self._next, len(chosen), value))
        changes[key_of(DEDUP, generation, self._next)] = value
        self._next += 1
        for size in SIZES:
            self._merge(generation, size, changes)
        if values[-1].count >= SIZES[-1]:
            values[-1].value = None

    def _merge(self, generation: int, size: int, changes: Changes) -> None:
        """Merge the last values if at least `MERGED` of them are smaller than `size`."""
        values = self._values[generation]
        count = 0
        while count < len(values) and values[-1 - count].count < size:
            count += 1
        if count < MERGED:
            return
        merged = values[-count:]
        del values[-count:]
        rows = [unpack_dedup(each.value) for each in merged if each.value is not None]
        value = pack_columns([np.concatenate(column) for column in zip(*rows, strict=True)])
        values.append(DedupValue(merged[0].number, sum(each.count for each in merged), value))
        changes[key_of(DEDUP, generation, merged[0].number)] = value
        for each in merged[1:]:
            key = key_of(DEDUP, generation, each.number)
            if each.number == self._next - 1:  # not in the store yet
                changes.pop(key, None)
            else:
                changes[key] = None


def dedup_value(number: int, value: bytes, rows: DedupRows) -> DedupValue:
    """Describe a value that is in the store."""
    count = len(rows.low)
    return DedupValue(number, count, value if count < SIZES[-1] else None)
