"""Loading of the oldest entries back into the table, before they fall due."""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.core.join.compiled.layout import PREDICTIONS
from streamwatch.core.join.compiled.outside.contents import OutsideContents
from streamwatch.core.join.compiled.outside.moving import bring_to_front
from streamwatch.core.join.compiled.outside.scores import StoredScores, with_numbers
from streamwatch.core.join.compiled.outside.table import Table
from streamwatch.core.join.compiled.outside.work import Work
from streamwatch.core.join.entry import UNMATCHED


def load_oldest(contents: OutsideContents, table: Table, queue: int, most: int) -> Iterator[Work]:
    """Load the oldest entries of a queue, at most `most`, into a table without guests."""
    search = contents.cold.plan_oldest_search(queue, most)
    yield search.run
    packed = contents.cold.finish_oldest_search(search)
    if queue == PREDICTIONS and packed["true_or_scores"].max(initial=-1) >= 0:
        scores: list[StoredScores] = []
        yield lambda: scores.extend(contents.scores.read(packed))
        contents.scores.drop(packed)
        with_numbers(packed, scores, table.scores, table.segments)
    totals = table.arrays.totals
    totals["cold_unmatched"] -= int((packed["state"] == UNMATCHED).sum())
    start = 0
    while start < len(packed):
        arrays = table.arrays
        start = bring_to_front(
            arrays.slots,
            arrays.entries,
            totals,
            arrays.places,
            packed,
            start,
            queue,
            table.shift,
        )
        if start < len(packed):
            table.grow()
    contents.update_oldest_ms(table)
