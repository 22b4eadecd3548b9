"""Rows that go between the stages of the job, and their order.

Spark delivers the rows of a key in any order. Pieces say where they are from, so that a bucket is fed the
same sequence at every attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

SCHEMA: Final = (
    "bucket int, batch long, end_ms long, origin int, part int, kind string, name string, body binary"
)
"""Of the rows into each stage. With a `kind` a row is a result on its way to the sink, else it is a piece."""
RESULT_SCHEMA: Final = "batch long, kind string, name string, body binary"
"""Of the rows into the sink."""


class Row(NamedTuple):
    """A row of `SCHEMA`."""

    bucket: int
    batch: int
    end_ms: int
    origin: int
    """Number of the source partition, or of the bucket of ids, that it is from."""
    part: int
    """Number among the rows of one origin to one bucket."""
    kind: str | None
    name: str | None
    body: bytes


class ResultRow(NamedTuple):
    """A row of `RESULT_SCHEMA`."""

    batch: int
    kind: str
    name: str
    body: bytes


@dataclass(slots=True)
class Arrived:
    """Rows of one bucket in one batch."""

    batch: int = -1
    end_ms: int = -1
    pieces: Sequence[bytes] = ()
    """In the order of their origins."""
    results: Sequence[ResultRow] = field(default_factory=list[ResultRow])
    """Those of the stage before."""


def arrived(rows: Iterable[Any]) -> Arrived:
    """Put the rows of a bucket in order; they are Spark's.

    Raises
    ------
    ValueError
        They are of several batches: each batch of Spark is one of ours.
    """
    found = Arrived()
    pieces: list[tuple[int, int, bytes]] = []
    results: list[tuple[int, int, ResultRow]] = []
    for came in rows:
        row = Row(*(came[name] for name in Row._fields))
        if found.batch not in {-1, row.batch}:
            raise ValueError(f"rows of a bucket must be of one batch, got {found.batch} and {row.batch}")
        found.batch = row.batch
        found.end_ms = row.end_ms
        body = bytes(row.body)
        if row.kind is None or row.name is None:
            pieces.append((row.origin, row.part, body))
        else:
            results.append((row.origin, row.part, ResultRow(row.batch, row.kind, row.name, body)))
    found.pieces = [body for _, _, body in sorted(pieces)]
    found.results = [result for _, _, result in sorted(results, key=lambda each: each[:2])]
    return found
