"""The arrays behind a table of models.

Each is asked for at its configured maximum at once, so it never moves: the system commits memory when it is touched.
Where that would be more than `RESERVED_BYTES` of address space, it starts smaller and doubles when full.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.kernel import fold as kernel
from streamwatch.core.kernel.adwin import FIRST_BLOCK_ROW
from streamwatch.core.kernel.records import LINE, Layout, Records
from streamwatch.core.kernel.room import HEADER, ROOM, SLOT

RESERVED_BYTES = 1 << 30


class Pools:
    """Records and rings by row; class rows and ADWIN blocks as handed out by `room`."""

    def __init__(self, layout: Layout, max_models: int) -> None:
        self._layout = layout
        self._max_models = max_models
        span = 1 << (layout.max_classes - 1).bit_length()
        self._block_words = _block_words(span)
        rows = _at_first(max_models, layout.model.itemsize + 4 * layout.ring_size)
        width = max(1, 3 * layout.columns)  # a free span keeps its successor in its first count
        self.models: Records = _zeros(rows, layout.model)
        self.rings: NDArray[np.uint32] = np.zeros((rows, layout.ring_size), np.uint32)
        self.cells: NDArray[np.float64] = _zeros(
            (_at_first(2 * span * max_models, 8 * width), width), np.dtype(np.float64)
        )
        self.cell_room: NDArray[np.int64] = np.zeros(ROOM, np.int64)
        self.blocks: NDArray[np.int32] = np.zeros(_at_first(RESERVED_BYTES, 4), np.int32)
        self.block_room: NDArray[np.int64] = np.zeros(ROOM, np.int64)

    def reserve_rows(self, rows: int) -> None:
        """Make room for records and rings of this many models."""
        if rows > len(self.models):
            more = min(2 * len(self.models), self._max_models)
            self.models = _enlarged(self.models, more)
            self.rings = _enlarged(self.rings, more)

    def reserve_batch(self, outcomes: int, models: int) -> None:
        """Make room for the blocks of buckets a batch may fill.

        A window makes at most one block from 2^FIRST_BLOCK_ROW outcomes, and those of every model may just be
        complete.
        """
        made = (outcomes >> FIRST_BLOCK_ROW) + min(outcomes, models)
        self.reserve_blocks(made * len(self._layout.windows))

    def enlarge_cells(self) -> None:
        """Make room for more class rows."""
        self.cells = _enlarged(self.cells, 2 * len(self.cells))

    def claim_span(self, row: int, classes: int) -> None:
        """Give a model class rows for so many classes."""
        rows, top = np.array([row], np.int32), np.array([classes - 1], np.int32)
        while kernel.make_room(self.models, self.cells, self.cell_room, rows, top, top, classes)[0]:
            self.enlarge_cells()

    def reserve_blocks(self, number: int) -> None:
        """Make room for this many more blocks of whatever size."""
        needed = int(self.block_room[0]) * SLOT + number * self._block_words
        while needed > len(self.blocks):
            self.blocks = _enlarged(self.blocks, 2 * len(self.blocks))

    def claim_block(self, classes: int) -> int:
        """Slot of an empty block."""
        self.reserve_blocks(1)
        return int(kernel.claim_block(self.blocks, self.block_room, classes))

    def release(self, row: int) -> None:
        """Empty a row and give back what it held."""
        kernel.release(self.models, self.cells, self.cell_room, self.blocks, self.block_room, row)
        self.models[row] = np.zeros((), self._layout.model)
        self.rings[row] = 0

    def footprint(self, row: int) -> int:
        """Bytes held by the model in a row."""
        model = self.models[row]
        words = 0
        for window in model["windows"]:
            for r in range(FIRST_BLOCK_ROW, int(window["rows"])):
                for k in range(int(window["buckets"][r])):
                    slot = int(window["blocks"][r - FIRST_BLOCK_ROW, k])
                    span = 1 << int(self.blocks[slot * SLOT + 1])
                    words += _block_words(span)
        cells = int(model["span"]) * self.cells.shape[1] * 8
        return self._layout.model.itemsize + self.rings.shape[1] * 4 + cells + words * 4


def _block_words(span: int) -> int:
    return SLOT * ((HEADER + 3 * span + SLOT - 1) // SLOT)


def _at_first(most: int, size: int) -> int:
    return max(1, min(most, RESERVED_BYTES // size))


def _zeros(shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros that start at a cache line."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size].view(dtype).reshape(shape)


def _enlarged(array: NDArray[Any], length: int) -> NDArray[Any]:
    larger = _zeros((length, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
