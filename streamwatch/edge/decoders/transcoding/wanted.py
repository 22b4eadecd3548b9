"""Parts of a value that mappings read, and the protocol of compiled writers of them as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from streamwatch.edge.decoders.envelopes.kind import EnvelopeKind
from streamwatch.edge.decoders.mapping import (
    InArray,
    InFields,
    InValue,
    Named,
    Step,
    TopicMapping,
    all_paths,
    parse_paths,
    parts_of,
)


@dataclass(slots=True)
class Wanted:
    """A content that mappings read: all of it if `whole`, else only the parts named here."""

    whole: bool = False
    fields: dict[str, Wanted] = field(default_factory=dict[str, "Wanted"])
    """Wanted fields by name, if the content is an object."""
    elements: Wanted | None = None
    """Wanted parts of each element, if the content is an array."""

    def add(self, steps: Iterable[Step | None]) -> None:
        """Add the content at the end of a path; None, or an index, leads to each element of an array."""
        here = self
        for step in steps:
            if isinstance(step, Named):  # the element is found by another of its fields
                break
            if isinstance(step, str):
                here = here.fields.setdefault(step, Wanted())
            else:
                here.elements = here.elements or Wanted()
                here = here.elements
        here.whole = True

    def below(self, path: Iterable[str]) -> Wanted:
        """Return what is wanted of the content at a path; nothing of it if no path leads there."""
        here = self
        for name in path:
            if here.whole:
                break
            here = here.fields.get(name, Wanted())
        return here

    def merge(self, other: Wanted) -> None:
        """Add what another wants of the same content."""
        self.whole = self.whole or other.whole
        for name, inside in other.fields.items():
            self.fields.setdefault(name, Wanted()).merge(inside)
        if other.elements is not None:
            self.elements = self.elements or Wanted()
            self.elements.merge(other.elements)


EVERYTHING = Wanted(whole=True)


def in_envelope(wanted: Wanted, envelope: EnvelopeKind) -> Wanted:
    """Return what is wanted of values in an envelope with `contents`, to find `wanted` in their content."""
    found = Wanted()
    for path in envelope.reads:
        found.add(path)
    for at, of in envelope.contents:
        here = found
        for name in at:
            here = here.fields.setdefault(name, Wanted())
        here.merge(wanted.below(of))
    return found


def wanted_of(mappings: Iterable[TopicMapping]) -> Wanted:
    """Collect the paths into values that mappings name."""
    wanted = Wanted()
    for each in mappings:
        for named in all_paths(each):
            for part in parts_of(parse_paths(named)):
                match part:
                    case InValue(path) | InArray(path, None) | InFields(path):
                        wanted.add(path)
                    case InArray(path, each_of):
                        wanted.add((*path, None, *(each_of or ())))
                    case _:
                        pass  # the path is not in the value
    return wanted


class Texts(NamedTuple):
    """JSON texts of many values."""

    data: NDArray[np.uint8] | None
    """uint8: the bytes of all texts; None where the texts are slices of the values' own data."""
    starts: NDArray[np.int64]
    """int64, by value: position in `data` at which its text begins."""
    sizes: NDArray[np.int64]
    """int64, by value: bytes of its text; -1 for an unusual value."""


class Transcoder(Protocol):
    """Writes the wanted parts of values of one schema as JSON texts."""

    def texts(self, data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Texts:
        """Write the texts of values.

        Parameters
        ----------
        data
            uint8: bytes of records, followed by `PADDING` more.
        starts, stops
            int64: first position of each value's contents, after the schema's name, and the position after.
        """
        ...


class Bound(NamedTuple):
    """Limit on the bytes of JSON that a value may become: `free`, and `per_byte` for each of its bytes."""

    free: int
    per_byte: int

    def of(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> int:
        """Return the sum of the limits of values."""
        return self.free * len(starts) + self.per_byte * int((stops - starts).sum())


_FIRST_PER_BYTE, _FIRST_EACH = 2, 96
MARGIN = 64
"""Spare bytes after the room for texts: short tokens are written without a check for room."""


def with_room(
    scan: Any, data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64], bound: Bound
) -> Texts:
    """Run a compiled loop, again with more room for texts as long as it needs more, up to a bound.

    Parameters
    ----------
    scan
        Function of data, starts, stops and four arrays that it fills: uint8 room for texts, int64 start and
        size of each text, and int64 (2,) progress: the value to begin with, and the bytes written. It stops
        at a value for which there is no room.
    data, starts, stops
        Bytes of the values, and where each begins and ends, (n,).
    bound
        Most room for texts.
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
        if size >= most:  # a value whose text exceeds its bound is unusual
            progress[0] = first + 1
            continue
        size = min(2 * size + bound.free, most)
        larger = np.empty(size + MARGIN, np.uint8)
        larger[:used] = out[:used]
        out = larger
