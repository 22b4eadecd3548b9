"""Compiled functions that read batches, and the rows that they write to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from streamwatch.edge.sources.kafka.batches.scan import Scanned, new_rows

# Several plain batches are read in one pass; the others are left to the reader, batch by batch.
#
# For a batch of a hundred records, the interpreter's steps per batch cost more than scanning its records. The
# pass stops at the first batch that is not plain, and the reader continues there.


Passed: TypeAlias = tuple[int, int, int]
"""(rows written; position of the next batch; its expected offset)."""

PlainBatches: TypeAlias = Callable[..., Passed]
"""Function of (data, at, room, least, most, largest, rows): see `whole_batches`."""


@cache
def compiled_plain_batches() -> PlainBatches | None:
    """Compile `whole_batches`, or load it from the cache; None without a CRC-32C instruction.

    On processors other than x86-64 with SSE 4.2, batches are read one by one, and the client's library
    computes their checksums.
    """
    from streamwatch.edge.sources.kafka.batches import whole_batches as checksum  # noqa: PLC0415 - nobody else waits for numba

    if not checksum.has_instruction():
        return None
    import numpy as np  # noqa: PLC0415

    from streamwatch.edge.sources.kafka.batches.whole_batches import whole_batches  # noqa: PLC0415

    nothing: Any = np.frombuffer(b"\0\0", np.uint8)
    whole_batches(nothing, 0, 0, 0, -1, 0, new_rows(1))
    return whole_batches


class Scanner:
    """A scan function for one batch, one for several plain batches (or None), and the rows they write to."""

    def __init__(self, scan: Callable[..., Scanned], room: int, plain: PlainBatches | None = None) -> None:
        self.scan = scan
        self.plain = plain
        self.rows = new_rows(room)
        self.room = room
