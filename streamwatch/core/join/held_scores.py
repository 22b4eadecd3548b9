"""`HeldScores`: scores of waiting predictions, in numbered blocks of one pool.

A block is a run of cells. Its first cell holds the number of the prediction's segments and the number of its
scores; each further cell holds one score. The number of a block is the index of its first cell. Blocks have
one of a few sizes (`room_for`); the free blocks of each size are in a list, and are used first.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot, prefetch
from streamwatch.core.join.layout import ROW, lazy_zeros
from streamwatch.core.records.batch import LABEL, Records, words_of_array
from streamwatch.core.records.batch import ROW as RECORD
from streamwatch.core.records.events import SAMPLING
from streamwatch.core.records.outcomes import SEGMENTS_FROM
from streamwatch.core.records.scores import NO_LISTS, ScoreLists

CELL: Final = np.dtype([("number", np.int32), ("size", np.int32), ("value", np.float64)])
"""Cell of the pool.

Of a score: `number` is that of its class, `value` the score. Of a block's first cell: `number` is that of the
segments, -1 without any, and `size` the number of scores. Of a free block's first cell: `number` is the next
free block, -1 for none, and `size` is -1 minus the number of cells after it.
"""
_SIZES: Final = 256
"""Lists of free blocks: enough for blocks of 2³⁰ scores."""
_FIRST_CELLS: Final = 1 << 12
_AHEAD: Final = 8

TOTALS: Final = np.dtype([("top", np.int64), ("held", np.int64), ("scores", np.int64)])
"""`top`: cells ever used. `held`: blocks in use; `scores`: scores in them."""


@hot
def room_for(size):
    """Return the cells after the first that a block of `size` scores has, and the number of its free list.

    From 16 scores on the number of cells is rounded up, by at most an eighth.
    """
    shift = 0
    while size >> shift >= 16:
        shift += 1
    steps = (size + (1 << shift) - 1) >> shift
    return steps << shift, 8 * shift + steps


@hot
def block_of(cells, free, totals, size, segments):
    """Claim a block for `size` scores, and return its number; the pool must have room."""
    room, kind = room_for(size)
    block = free[kind]
    if block >= 0:
        free[kind] = cells[block].number
    else:
        block = totals.top
        totals.top += room + 1
    cells[block].number = segments
    cells[block].size = size
    totals.held += 1
    totals.scores += size
    return block


@entry
def hold_lists(cells, free, totals, ends, classes, values, beside, numbers):
    """Hold n lists of scores, each with the number of its segments in `beside`.

    The numbers of their blocks are written to `numbers`, int32 (n,).
    """
    t = totals[0]
    start = 0
    for i in range(ends.shape[0]):
        block = block_of(cells, free, t, ends[i] - start, beside[i])
        for k in range(start, ends[i]):
            block += 1
            cells[block].number = classes[k]
            cells[block].value = values[k]
        numbers[i] = block - (ends[i] - start)
        start = ends[i]


@entry
def hold_rows(cells, free, totals, ends, classes, values, beside, of_classes, records, rows, start):
    """Hold the scores of decoded records from `start` on, up to the first with a class without a number.

    Returns the index of that record, or n.

    Parameters
    ----------
    cells, free, totals
        Arrays of `HeldScores`, with room for all.
    ends, classes, values, beside
        Attributes of the records' `ScoreLists`.
    of_classes
        int32: numbers of classes in the join by number in the records; -1 if not known yet.
    records, rows
        Records `core.records.batch.ROW` (n,), and their rows `join.layout.ROW` (n,). Of rows with scores,
        `carried` is written, and `scores`, which held the number of the segments, is set to the number of the
        block.
    start
        Record at which to start or continue.
    """
    t = totals[0]
    for r in range(start, records.shape[0]):
        number = records[r].object
        if records[r].side >= LABEL or number < 0:
            continue
        first, stop = (ends[number - 1] if number > 0 else 0), ends[number]
        for k in range(first, stop):
            if of_classes[classes[k]] < 0:
                return r
        row = rows[r]
        row.carried[SAMPLING] = beside[number]
        if stop == first:
            continue
        block = block_of(cells, free, t, stop - first, max(row.scores - SEGMENTS_FROM, -1))
        row.scores = block
        for k in range(first, stop):
            block += 1
            cells[block].number = of_classes[classes[k]]
            cells[block].value = values[k]
    return records.shape[0]


@entry
def count_scores(cells, numbers):
    """Count the scores of these blocks, int32 (n,)."""
    count = 0
    for i in range(numbers.shape[0]):
        if i + _AHEAD < numbers.shape[0]:
            prefetch(cells, cells.itemsize * np.int64(numbers[i + _AHEAD]))
        count += cells[numbers[i]].size
    return count


@entry
def read_lists(cells, numbers, ends, classes, values, beside):
    """Copy the scores of the blocks `numbers`, int32 (n,), to the arrays of a `ScoreLists`."""
    count = 0
    for i in range(numbers.shape[0]):
        if i + _AHEAD < numbers.shape[0]:
            prefetch(cells, cells.itemsize * np.int64(numbers[i + _AHEAD]))
        block = np.int64(numbers[i])
        beside[i] = cells[block].number
        for k in range(block + 1, block + 1 + cells[block].size):
            classes[count] = cells[k].number
            values[count] = cells[k].value
            count += 1
        ends[i] = count


@entry
def free_blocks(cells, free, totals, numbers):
    """Free these blocks."""
    t = totals[0]
    for i in range(numbers.shape[0]):
        block = np.int64(numbers[i])
        size = np.int64(cells[block].size)
        room, kind = room_for(size)
        cells[block].number = free[kind]
        cells[block].size = -1 - room
        free[kind] = block
        t.held -= 1
        t.scores -= size


@entry
def mark_used(cells, top, classes, segments):
    """Set `classes` and `segments`, bool by number, to True for the numbers that blocks in use have."""
    block = 0
    while block < top:
        size = np.int64(cells[block].size)
        if size < 0:
            block -= size
            continue
        if cells[block].number >= 0:
            segments[cells[block].number] = True
        for k in range(block + 1, block + 1 + size):
            classes[cells[k].number] = True
        block += room_for(size)[0] + 1


class Carried(NamedTuple):
    """Scores and segments of n predictions."""

    segments: NDArray[np.int64]
    """Number of the segments of each, -1 without any, shape (n,)."""
    scored: NDArray[np.int64]
    """Positions of the predictions with scores, ascending."""
    scores: ScoreLists
    """Scores of these predictions, in the same order."""


NOTHING_CARRIED: Final = Carried(np.zeros(0, np.int64), np.zeros(0, np.int64), NO_LISTS)
"""Scores and segments of no predictions."""


class HeldScores:
    """Scores of predictions that wait, by number."""

    __slots__ = ("_cells", "_free", "_totals")

    def __init__(self) -> None:
        self._cells = np.zeros(_FIRST_CELLS, CELL)
        self._free = np.full(_SIZES, -1, np.int64)
        self._totals = np.zeros(1, TOTALS)

    def __len__(self) -> int:
        return int(self._totals["held"][0])

    @property
    def scores(self) -> int:
        """Number of scores held."""
        return int(self._totals["scores"][0])

    def add(self, lists: ScoreLists) -> NDArray[np.int32]:
        """Hold lists of scores by the join's numbers of classes and segments; return the blocks' numbers."""
        numbers = np.empty(len(lists), np.int32)
        if len(lists):
            self._make_room(len(lists), len(lists.classes))
            columns = lists.ends, lists.classes, lists.values, lists.beside
            hold_lists(self._cells, self._free, self._totals, *columns, numbers)
        return numbers

    def add_rows(
        self,
        lists: ScoreLists,
        of_classes: NDArray[np.int32],
        records: Records,
        rows: Records,
        start: int,
    ) -> int:
        """Hold the scores of decoded records, as `hold_rows` does."""
        numbers = records["object"][(records["side"] < LABEL) & (records["object"] >= 0)]
        self._make_room(len(numbers), int(lists.sizes(numbers).sum()))
        columns = lists.ends, lists.classes, lists.values, lists.beside
        arrays = self._cells, self._free, self._totals
        return hold_rows(*arrays, *columns, of_classes, records, rows, start)

    def lists(self, numbers: NDArray[np.int32]) -> ScoreLists:
        """Copy the scores of the blocks with these numbers; `beside` has the numbers of the segments."""
        if not len(numbers):
            return NO_LISTS
        scores, count = count_scores(self._cells, numbers), len(numbers)
        lists = ScoreLists(
            np.empty(count, np.int64),
            np.empty(scores, np.int32),
            np.empty(scores, np.float64),
            np.empty(count, np.int32),
        )
        read_lists(self._cells, numbers, lists.ends, lists.classes, lists.values, lists.beside)
        return lists

    def free(self, numbers: NDArray[np.int32]) -> None:
        """Free the blocks with these numbers."""
        if len(numbers):
            free_blocks(self._cells, self._free, self._totals, numbers)

    def take(self, numbers: NDArray[np.int32]) -> ScoreLists:
        """Copy the scores of the blocks with these numbers, and free these."""
        lists = self.lists(numbers)
        self.free(numbers)
        return lists

    def carried(self, column: NDArray[np.int32]) -> Carried:
        """Return the scores and segments of entries (column `true_or_scores`) or outcomes (`scores`)."""
        scored = np.flatnonzero((column >= 0) & (column < SEGMENTS_FROM))
        segments = np.where(column >= SEGMENTS_FROM, column - SEGMENTS_FROM, -1).astype(np.int64)
        lists = self.lists(column[scored])
        segments[scored] = lists.beside
        return Carried(segments, scored, lists)

    def used(self, classes: int, segments: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the numbers of classes, below `classes`, and of segments, below `segments`, in use here."""
        marks = np.zeros(classes, np.bool_), np.zeros(segments, np.bool_)
        mark_used(self._cells, int(self._totals["top"][0]), *marks)
        of_classes, of_segments = (np.flatnonzero(each).astype(np.int32) for each in marks)
        return of_classes, of_segments

    def _make_room(self, blocks: int, scores: int) -> None:
        """Enlarge the pool so that these blocks and scores fit, even if no free block is of use.

        Raises
        ------
        MemoryError
            If the numbers of blocks would reach `SEGMENTS_FROM`.
        """
        top, cells = int(self._totals["top"][0]), len(self._cells)
        needed = top + blocks + scores + scores // 8
        if needed <= cells:
            return
        if needed > SEGMENTS_FROM:
            raise MemoryError(f"unable to hold more than {SEGMENTS_FROM:,} scores of waiting predictions")
        while cells < needed:
            cells *= 2
        larger = lazy_zeros(cells, CELL)
        words_of_array(larger)[:top] = words_of_array(self._cells)[:top]
        self._cells = larger


def taken_scores(records: Records, held: HeldScores) -> ScoreLists:
    """Take the scores of outcomes, `OUTCOME` (n,); their `scores` become positions in the lists returned."""
    if not len(held):
        return NO_LISTS
    carried = records["scores"]
    scored = np.flatnonzero((carried >= 0) & (carried < SEGMENTS_FROM))
    lists = held.take(carried[scored])
    carried[scored] = np.arange(len(scored))
    return lists


def warm_up_scores() -> None:
    """Hold, read, mark and free scores, so that every compiled function is called."""
    held, one = HeldScores(), np.ones(1, np.int64)
    lists = ScoreLists(one, np.zeros(1, np.int32), np.ones(1), np.full(1, -1, np.int32))
    held.add_rows(lists, np.zeros(1, np.int32), np.zeros(1, RECORD), np.zeros(1, ROW), 0)
    numbers = held.add(lists)
    held.used(1, 1)
    held.take(numbers)
