"""Functions that read batches, and the rows they write to."""

from __future__ import annotations

from collections.abc import Callable

from streamwatch.edge.sources.kafka.batches.plain_batches import PlainBatches
from streamwatch.edge.sources.kafka.batches.scan import Scanned, new_rows


class Scanner:
    """A scan function, one for several batches that are plain, where there is one, and rows they write to."""

    def __init__(self, scan: Callable[..., Scanned], room: int, plain: PlainBatches | None = None) -> None:
        self.scan = scan
        self.plain = plain
        self.rows = new_rows(room)
        self.room = room
