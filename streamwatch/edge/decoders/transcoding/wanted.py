"""What a topic's mappings look at in a value, and the texts that are made of many values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from streamwatch.edge.decoders.mapping import (
    InArray,
    InFields,
    InValue,
    Named,
    SidedMapping,
    Step,
    TopicMapping,
    all_paths,
    parse_paths,
    parts_of,
)


@dataclass(slots=True)
class Wanted:
    """A content that somebody looks at; of one that is not whole, nothing but the parts named here."""

    whole: bool = False
    fields: dict[str, Wanted] = field(default_factory=dict[str, "Wanted"])
    """By name, if it is an object."""
    elements: Wanted | None = None
    """Of each element, if it is an array."""

    def add(self, steps: Iterable[Step | None]) -> None:
        """Want what is at the end of a path; None leads to each element of an array."""
        here = self
        for step in steps:
            if isinstance(step, Named):  # its other fields show which element is meant
                break
            if isinstance(step, str):
                here = here.fields.setdefault(step, Wanted())
            else:
                here.elements = here.elements or Wanted()
                here = here.elements
        here.whole = True


EVERYTHING = Wanted(whole=True)


def wanted_of(mapping: TopicMapping, mappings: Iterable[SidedMapping] = ()) -> Wanted:
    """Gather what one mapping looks at, or several: every path in values that they name."""
    wanted = Wanted()
    for each in [several.mapping for several in mappings] or [mapping]:
        for named in all_paths(each):
            for part in parts_of(parse_paths(named)):
                match part:
                    case InValue(path) | InArray(path, None) | InFields(path):
                        wanted.add(path)
                    case InArray(path, each_of):
                        wanted.add((*path, None, *(each_of or ())))
                    case _:
                        pass  # it is not in the value
    return wanted


class Texts(NamedTuple):
    """JSON texts of many values."""

    data: NDArray[np.uint8] | None
    """Bytes of all of them; None where they stand in the data that they were made of."""
    starts: NDArray[np.int64]
    """By value, where its text begins in `data`, …"""
    sizes: NDArray[np.int64]
    """… and its bytes; -1 where the value is left to others."""


class Transcoder(Protocol):
    """Writes what is wanted of values of one schema as JSON text."""

    def texts(self, data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Texts:
        """Write the texts of values.

        Parameters
        ----------
        data
            uint8: bytes of records, with `PADDING` others behind.
        starts, stops
            Where each value's contents begin, behind the schema's name, and end.
        """
        ...


class Bound(NamedTuple):
    """Bytes of JSON that a value may become."""

    free: int
    per_byte: int

    def of(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> int:
        """The most that values become together."""
        return self.free * len(starts) + self.per_byte * int((stops - starts).sum())


_FIRST_PER_BYTE, _FIRST_EACH = 2, 96
MARGIN = 64
"""Bytes beyond the room for texts: a number, a literal or a sign is written without asking for room."""


def with_room(
    scan: Any, data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64], bound: Bound
) -> Texts:
    """Run a compiled loop with more room for texts as long as it needs more, up to a bound.

    Parameters
    ----------
    scan
        Called with room for texts, where each begins, its size, and progress: the value to begin with and the
        bytes written. It stops at a value for which there is no room.
    """
    count, most = len(starts), bound.of(starts, stops)
    size = min(_FIRST_PER_BYTE * int((stops - starts).sum()) + _FIRST_EACH * count, most)
    out = np.empty(size + MARGIN, np.uint8)
    begins, sizes, progress = np.zeros(count, np.int64), np.full(count, -1), np.zeros(2, np.int64)
    while True:
        scan(data, starts, stops, out, begins, sizes, progress)
        first, used = progress.tolist()
        if first == count:
            return Texts(out[:used], begins, sizes)
        if size >= most:  # a value that becomes more than it may: others say so
            progress[0] = first + 1
            continue
        size = min(2 * size + bound.free, most)
        larger = np.empty(size + MARGIN, np.uint8)
        larger[:used] = out[:used]
        out = larger
