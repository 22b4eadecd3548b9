"""What a daemon writes down of every batch that the core took, and which of it a later life remembers.

One file per opening of state. It begins with what was restored; then comes a frame per batch, tagged with the
number of the commit that the batch will belong to. A life that is killed leaves frames of commits that never
became state, and perhaps a torn one at the end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from streamwatch.core.metrics.series import Family
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import Event, Invalid, Label, NullRecord, Prediction, WrongFold

KINDS = (Prediction, Label, NullRecord, Invalid, WrongFold)
Series = tuple[str, frozenset[tuple[str, str]]]
"""Name without prefix, and labels."""


class Head(msgspec.Struct, array_like=True):
    """What an opening found."""

    life: int
    commits: int
    unaccounted: list[str]
    """Identities that do not hold."""
    counters: list[tuple[str, list[tuple[str, str]], float]]

    def counted(self) -> dict[Series, float]:
        return {(name, frozenset(labels)): value for name, labels, value in self.counters}


class Frame(msgspec.Struct, array_like=True):
    """One batch."""

    tag: int
    events: list[tuple[int, msgspec.Raw]]

    def decoded(self) -> list[Event]:
        return [_DECODERS[kind].decode(event) for kind, event in self.events]


_ENCODER = msgspec.msgpack.Encoder()
_DECODERS = [msgspec.msgpack.Decoder(kind) for kind in KINDS]
_HEAD, _FRAME = msgspec.msgpack.Decoder(Head), msgspec.msgpack.Decoder(Frame)
_NUMBER = {kind: number for number, kind in enumerate(KINDS)}
_LENGTH = struct.Struct(">I")


class Audit:
    """Writes one file; every frame is in the hands of the operating system when `batch` returns."""

    def __init__(self, path: Path, life: int, commits: int, pipeline: Pipeline) -> None:
        self._file = path.open("xb", buffering=0)
        self._write(Head(life, commits, pipeline.identities(), counters_of(pipeline.families())))

    def batch(self, tag: int, events: Sequence[Event]) -> None:
        written = [(_NUMBER[type(event)], msgspec.Raw(_ENCODER.encode(event))) for event in events]
        self._write(Frame(tag, written))

    def _write(self, what: Head | Frame) -> None:
        body = _ENCODER.encode(what)
        self._file.write(_LENGTH.pack(len(body)) + body)


class Opening:
    """One audit file, read back."""

    def __init__(self, path: Path) -> None:
        bodies = list(_whole(path.read_bytes()))
        self.head: Head | None = _HEAD.decode(bodies[0]) if bodies else None
        self.frames = [_FRAME.decode(body) for body in bodies[1:]]


def openings(folder: Path) -> list[Opening]:
    """Every opening that restored state, in order."""
    read = [Opening(path) for path in sorted(folder.glob("*.audit"))]
    return [opening for opening in read if opening.head is not None]


def surviving(read: Sequence[Opening], commits: int) -> Iterator[Frame]:
    """Every frame that `commits`, the last commit there is, has in it: each exactly once."""
    ends = [opening.head.commits for opening in read[1:]] + [commits]
    for opening, end in zip(read, ends, strict=True):
        yield from (frame for frame in opening.frames if opening.head.commits < frame.tag <= end)


def counters_of(families: Sequence[Family]) -> list[tuple[str, list[tuple[str, str]], float]]:
    """Everything that may only grow; of a histogram its number of observations."""
    found = []
    for family in families:
        for labels, value in family.samples:
            pairs = list(zip(family.labels, labels, strict=True))
            if family.kind == "counter":
                found.append((family.name, pairs, float(value)))
            elif family.kind == "histogram":
                found.append((f"{family.name}_count", pairs, float(value.counts[-1])))
    return found


def _whole(content: bytes) -> Iterator[bytes]:
    start = 0
    while start + _LENGTH.size <= len(content):
        (length,) = _LENGTH.unpack_from(content, start)
        start += _LENGTH.size
        if start + length > len(content):
            return
        yield content[start : start + length]
        start += length
