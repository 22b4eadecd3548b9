"""Arrays behind the table of models.

Each array is allocated at its configured maximum at once, so that it never moves; the operating system
commits memory when it is first used. If that would be more than `RESERVED_BYTES` of address space, the array
starts smaller and doubles when full.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.forgetting.adwin import FIRST_BLOCK_ROW
from streamwatch.core.estimators.kernel import admission
from streamwatch.core.estimators.kernel.layout import LINE, Layout, Records
from streamwatch.core.estimators.kernel.shadow import MAX_CLASSES, NO_MORE, SHADOW_ROOM, shadow_words
from streamwatch.core.estimators.memory import HEADER, ROOM, SLOT
from streamwatch.core.estimators.verdicts.leads import EXTRA_COLUMNS

RESERVED_BYTES = 1 << 30


class Arrays(NamedTuple):
    """Arrays of `Pools` as compiled functions take them, with the settings that go with them."""

    models: Records
    spans: NDArray[np.int32]
    next_fold: NDArray[np.int32]
    class_counts: NDArray[np.float64]
    class_counts_allocator: NDArray[np.int64]
    rings: NDArray[Any]
    blocks: NDArray[np.int32]
    block_allocator: NDArray[np.int64]
    shadow_spans: NDArray[np.int32]
    shadows: NDArray[np.float64]
    shadow_allocator: NDArray[np.int64]
    parameters: Records
    utilities: NDArray[np.float64]
    max_classes: int
    """The last three are those of the `Layout`."""


class Pools:
    """Records and rings by row, and the pools of class rows, ADWIN blocks and shadow counts."""

    def __init__(self, layout: Layout, max_models: int) -> None:
        self._layout = layout
        self._max_models = max_models
        span = 1 << (layout.max_classes - 1).bit_length()
        self._block_words = block_words(span)
        rows = _at_first(max_models, layout.model.itemsize + layout.ring.itemsize * layout.ring_size)
        width = 3 * layout.columns + EXTRA_COLUMNS  # a free span stores its successor in its first count
        self.models: Records = _zeros(rows, layout.model)
        self.spans: NDArray[np.int32] = np.full(rows, -1, np.int32)
        """Number of class rows each model owns; -1 for a row without a model."""
        self.next_fold: NDArray[np.int32] = np.full(rows, -1, np.int32)
        """Row of the fold with the next number, of the first fold after the last; -1 without folds."""
        self.rings: NDArray[Any] = np.zeros((rows, layout.ring_size), layout.ring)
        self.class_counts: NDArray[np.float64] = _zeros(
            (_at_first(2 * span * max_models, 8 * width), width), np.dtype(np.float64)
        )
        self.class_counts_allocator: NDArray[np.int64] = np.zeros(ROOM, np.int64)
        self.blocks: NDArray[np.int32] = np.zeros(_at_first(RESERVED_BYTES, 4), np.int32)
        self.block_allocator: NDArray[np.int64] = np.zeros(ROOM, np.int64)
        self.shadow_spans: NDArray[np.int32] = np.full(rows, NO_MORE, np.int32)
        """Number of classes each model's shadow counts have room for; `NO_MORE` if none are kept."""
        self.shadows: NDArray[np.float64] = np.zeros(
            _at_first(2 * max_models * shadow_words(layout.shadow_classes), 8), np.float64
        )
        self.shadow_allocator: NDArray[np.int64] = np.zeros(SHADOW_ROOM, np.int64)

    @property
    def arrays(self) -> Arrays:
        """All arrays as they are now: a pool that is enlarged gets another array."""
        return Arrays(
            self.models,
            self.spans,
            self.next_fold,
            self.class_counts,
            self.class_counts_allocator,
            self.rings,
            self.blocks,
            self.block_allocator,
            self.shadow_spans,
            self.shadows,
            self.shadow_allocator,
            self._layout.parameters,
            self._layout.utilities,
            self._layout.max_classes,
        )

    def reserve_rows(self, rows: int) -> None:
        """Make room for the records and rings of this many models."""
        if rows > len(self.models):
            more = min(2 * len(self.models), self._max_models)
            self.models = _enlarged(self.models, more)
            self.rings = _enlarged(self.rings, more)
            added = more - len(self.spans)
            self.spans = np.concatenate([self.spans, np.full(added, -1, np.int32)])
            self.next_fold = np.concatenate([self.next_fold, np.full(added, -1, np.int32)])
            self.shadow_spans = np.concatenate([self.shadow_spans, np.full(added, NO_MORE, np.int32)])

    def reserve_batch(self, outcomes: int, models: int) -> None:
        """Make room for the blocks of the ADWIN buckets that a batch may fill.

        A window needs at most one block per 2^FIRST_BLOCK_ROW outcomes, plus one for a bucket about to be
        complete.
        """
        made = (outcomes >> FIRST_BLOCK_ROW) + min(outcomes, models)
        self.reserve_blocks(made * len(self._layout.windows))

    def enlarge(self, verdict: int) -> None:
        """Enlarge the pool that `admission` reported as full."""
        if verdict == admission.FULL:
            self.class_counts = _enlarged(self.class_counts, 2 * len(self.class_counts))
        else:
            self.shadows = _enlarged(self.shadows, 2 * len(self.shadows) + shadow_words(MAX_CLASSES))

    def return_shadows(self) -> None:
        """Give the memory of shadow counts back once no model has any: all have shown too many classes."""
        if self.shadow_allocator[0] == 0 or self.shadow_spans.min() < NO_MORE:
            return
        if not self.models["shadow"]["span"].any():
            self.shadows = np.zeros(len(self.shadows))  # takes no memory until it is used
            self.shadow_allocator[:] = 0

    def claim_rows(self, row: int, classes: int) -> None:
        """Give a model class rows for this many classes."""
        while not admission.claim_rows(self.arrays, row, classes):
            self.enlarge(admission.FULL)

    def claim_span(self, row: int, classes: int) -> None:
        """Give a model class rows and shadow counts for this many classes."""
        self.claim_rows(row, classes)
        rows, top = np.array([row], np.int32), np.array([classes - 1], np.int32)
        batch = admission.batch_of(rows, top, top)
        while (verdict := admission.make_room(self.arrays, batch)[0]) != admission.ADMITTED:
            self.enlarge(verdict)

    def reserve_blocks(self, number: int) -> None:
        """Make room for this many more blocks of the largest size."""
        needed = int(self.block_allocator[0]) * SLOT + number * self._block_words
        while needed > len(self.blocks):
            self.blocks = _enlarged(self.blocks, 2 * len(self.blocks))

    def claim_block(self, classes: int) -> int:
        """Allocate an empty block for this many classes, and return its slot."""
        self.reserve_blocks(1)
        return int(admission.claim_block(self.arrays, classes))

    def release(self, row: int) -> None:
        """Clear a row and free what it owned."""
        admission.release(self.arrays, row)
        self.models[row] = np.zeros((), self._layout.model)
        self.rings[row] = 0


def block_words(span: int) -> int:
    """Number of words of a block of an ADWIN bucket with room for this many classes."""
    return SLOT * ((HEADER + 3 * span + SLOT - 1) // SLOT)


def opaque(records: NDArray[Any]) -> NDArray[Any]:
    """View records as runs of bytes, which numpy copies at once, and not field by field."""
    return records.view(np.dtype((np.void, records.dtype.itemsize)))


def taken(records: NDArray[Any], rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """Copy the records in some rows."""
    return opaque(records)[rows].view(records.dtype)


def _at_first(most: int, size: int) -> int:
    return max(1, min(most, RESERVED_BYTES // size))


def _zeros(shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Allocate zeros aligned to a cache line."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size].view(dtype).reshape(shape)


def _enlarged(array: NDArray[Any], length: int) -> NDArray[Any]:
    larger = _zeros((length, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
