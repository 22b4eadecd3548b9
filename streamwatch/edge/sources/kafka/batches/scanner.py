"""Functions that read batches, and the rows they write to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from streamwatch.edge.sources.kafka.batches.scan import Scanned, new_rows

# Several batches in one pass, where all is as it mostly is; what is not is left to the reader's own steps.
#
# A batch of a hundred records is little more than its header to the interpreter: its steps cost more than
# all of the records. Whoever calls this goes on batch by batch where it stops, so nothing is decided twice.


Passed: TypeAlias = tuple[int, int, int]
"""Rows found; where the next batch begins; offset that it begins with."""

PlainBatches: TypeAlias = Callable[..., Passed]
"""(data, at, room, least, most, largest, rows): see `whole_batches`."""


@cache
def compiled_plain_batches() -> PlainBatches | None:
    """`whole_batches`, compiled or from the cache of compiled functions; None without the instruction.

    On processors other than x86-64 with SSE 4.2 the client's library computes checksums, batch by batch.
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
    """A scan function, one for several batches that are plain, where there is one, and rows they write to."""

    def __init__(self, scan: Callable[..., Scanned], room: int, plain: PlainBatches | None = None) -> None:
        self.scan = scan
        self.plain = plain
        self.rows = new_rows(room)
        self.room = room
