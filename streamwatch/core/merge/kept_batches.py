"""Texts and objects of records from their arrival to their release, beside the rows that point to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records import ROW, RecordBatch, rows_of
from streamwatch.core.texts import gather_texts
from streamwatch.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from streamwatch.core.events import Decoded

_FEWEST = 1_024
_WORDS = ROW.itemsize // 8
"""Of a row. Rows are joined as bytes: numpy copies records field by field, a hundred times slower, and
a view of each batch as words takes longer than its few rows where partitions are many."""


class KeptBatches:
    """Texts and objects of batches behind one another, and the vocabulary of their rows.

    What `batch` gave stays as it was: texts and objects are only added to.
    """

    __slots__ = ("_objects", "_texts", "_used", "_vocabulary", "count")

    def __init__(self) -> None:
        self.count = 0
        """Records whose texts and objects are kept."""
        self._texts: NDArray[np.uint8] | None = None
        self._used = 0
        self._objects: list[Decoded] = []
        self._vocabulary: Vocabulary | None = None

    def clear(self) -> None:
        """Drop all texts and objects."""
        self.count = self._used = 0
        self._texts, self._objects, self._vocabulary = None, [], None

    @property
    def is_bare(self) -> bool:
        """Tell whether neither texts nor objects are kept."""
        return self._texts is None and not self._objects

    def numbers_by(self, vocabulary: Vocabulary) -> bool:
        """Tell whether kept rows number names by this vocabulary."""
        return self._vocabulary is vocabulary

    def add(self, batches: Sequence[RecordBatch]) -> NDArray[np.int64]:
        """Take in batches; their rows behind one another, as words, which point to what is kept here.

        Raises
        ------
        ValueError
            Its rows number names by another vocabulary, or spell keys in another way, than those before it.
        """
        self._settle([batch for batch in batches if not (n := len(batch.objects)) or n != len(batch.rows)])
        joined = bytearray().join([batch.rows.tobytes() for batch in batches])
        words = np.frombuffer(joined, np.int64).reshape(-1, _WORDS)
        self.count += len(words)
        if [batch for batch in batches if batch.objects or batch.texts is not None]:
            rows, start = rows_of(words), 0
            for batch in batches:
                stop = start + len(batch.rows)
                self._move(rows[start:stop], batch)
                start = stop
        return words

    def _move(self, rows: NDArray[np.void], batch: RecordBatch) -> None:
        """Put objects and texts of a batch behind the others, and have its rows, kept here, point there."""
        if batch.objects:
            places = rows["object"]
            places[places >= 0] += len(self._objects)
            self._objects += batch.objects
        if batch.texts is not None and len(batch.objects) < len(rows):
            texts = batch.texts
            held = np.empty(0, np.uint8) if self._texts is None else self._texts
            self._texts = _with_room(held, self._used, self._used + len(texts))
            self._texts[self._used : self._used + len(texts)] = texts
            rows["id_at"] += self._used
            self._used += len(texts)

    def batch(
        self,
        rows: NDArray[np.void],
        clock_ms: NDArray[np.int64],
        topics: Sequence[str] = (),
        of: NDArray[np.uint8] | int = 0,
    ) -> RecordBatch:
        """Make a batch of rows, with the clock and the number of the topic at each."""
        rows["record_ms"] = clock_ms
        rows["topic"] = of
        return RecordBatch(rows, self._texts, self._objects, self._vocabulary or Vocabulary(), topics)

    def keep(self, rows: NDArray[np.void]) -> None:
        """Drop all texts and objects but those of `rows`, whose pointers are updated in place."""
        chosen = rows["object"] >= 0
        objects = self._objects
        self._objects = [objects[place] for place in rows["object"][chosen].tolist()]
        rows["object"][chosen] = np.arange(len(self._objects))
        if self._texts is not None:
            sizes = np.where(chosen, -1, rows["id_bytes"]).astype(np.int64)
            texts = np.empty(int((sizes + 1).sum()), np.uint8)
            gather_texts(self._texts, rows["id_at"].astype(np.int64), sizes, texts)
            rows["id_at"] = np.cumsum(sizes + 1) - sizes - 1
            self._texts, self._used = texts, len(texts)
        self.count = len(rows)

    def _settle(self, batches: Sequence[RecordBatch]) -> None:
        """Go by the vocabulary of the first batch that has rows; let the last of all go with its records."""
        if not batches:
            return
        first, has_texts = batches[0], self._texts is not None
        if self._vocabulary is None or self.count == len(self._objects):
            self._vocabulary, has_texts = first.vocabulary, first.texts is not None
            self._texts, self._used = None, 0
        found = {(batch.vocabulary, batch.texts is not None) for batch in batches}
        if {vocabulary for vocabulary, _ in found} != {self._vocabulary}:
            raise ValueError("records of one sequence must number names by one vocabulary, got two")
        if {texts for _, texts in found} != {has_texts}:
            raise ValueError("records of one sequence must all have texts of keys, or none")


def _with_room(column: NDArray[Any], used: int, wanted: int) -> NDArray[Any]:
    """Give the column, or a longer one with the same beginning."""
    if wanted <= len(column):
        return column
    longer = np.empty((max(2 * wanted, _FEWEST), *column.shape[1:]), column.dtype)
    longer[:used] = column[:used]
    return longer
