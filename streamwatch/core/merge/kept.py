"""Records from their arrival to their release, as columns that grow; each is known by its place in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records import ROW, RecordBatch, rows_of, words_of
from streamwatch.core.texts import gather_texts
from streamwatch.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from streamwatch.core.events import Event

_FEWEST = 1_024
_MOST_EMPTY = 1 << 16


class Kept:
    """Rows of batches behind one another.

    What `take` gave stays as it was: it is a copy of rows, and texts and objects are only added to.
    """

    __slots__ = ("_objects", "_texts", "_used", "_vocabulary", "_words", "count")

    def __init__(self) -> None:
        self.count = 0
        """Records kept."""
        self._words = words_of(np.empty(0, ROW))
        self._texts: NDArray[np.uint8] | None = None
        self._used = 0
        self._objects: list[Event] = []
        self._vocabulary: Vocabulary | None = None

    def clear(self) -> None:
        """Let go of all records; the room for rows is used again, unless it is very large."""
        self.count = self._used = 0
        if len(self._words) > _MOST_EMPTY:
            self._words = words_of(np.empty(0, ROW))
        self._texts, self._objects, self._vocabulary = None, [], None

    def add(self, batches: Sequence[RecordBatch]) -> None:
        """Put the records of batches behind those that are kept.

        Raises
        ------
        ValueError
            Its rows number names by another vocabulary, or spell keys in another way, than those before it.
        """
        counts = [len(batch) for batch in batches]
        end = self.count + sum(counts)
        self._settle([batch for batch in batches if len(batch.objects) != len(batch)])
        self._words = _with_room(self._words, self.count, end)
        words = self._words[self.count : end]
        np.concatenate([words_of(batch.rows) for batch in batches], out=words)
        self.count = end
        rows, start = rows_of(words), 0
        for batch, count in zip(batches, counts, strict=True):
            if batch.objects or batch.texts is not None:
                self._move(rows[start : start + count], batch)
            start += count

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

    def take(self, places: NDArray[np.int64], clock_ms: NDArray[np.int64]) -> RecordBatch:
        """Give the records at these places, with the clock at each."""
        rows = rows_of(self._words.take(places, axis=0))
        rows["record_ms"] = clock_ms
        return RecordBatch(rows, self._texts, self._objects, self._vocabulary or Vocabulary())

    def keep(self, kept: Sequence[NDArray[np.int64]]) -> None:
        """Let go of all records but those at these places, which are changed to where they are now."""
        places = np.concatenate(kept) if kept else np.empty(0, np.int64)
        rows = rows_of(self._words.take(places, axis=0))
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
        self._words, self.count = words_of(rows), len(rows)
        first = 0
        for part in kept:
            part[:] = np.arange(first, first + len(part))
            first += len(part)

    def _settle(self, batches: Sequence[RecordBatch]) -> None:
        """Go by the vocabulary of the first batch that has rows; let the last of all go with its records."""
        if not batches:
            return
        first, has_texts = batches[0], self._texts is not None
        if self._vocabulary is None or self.count == len(self._objects):
            self._vocabulary, has_texts = first.vocabulary, first.texts is not None
            self._texts, self._used = None, 0
        if any(batch.vocabulary is not self._vocabulary for batch in batches):
            raise ValueError("records of one sequence must number names by one vocabulary, got two")
        if any((batch.texts is not None) != has_texts for batch in batches):
            raise ValueError("records of one sequence must all have texts of keys, or none")


def _with_room(column: NDArray[Any], used: int, wanted: int) -> NDArray[Any]:
    """Give the column, or a longer one with the same beginning."""
    if wanted <= len(column):
        return column
    longer = np.empty((max(2 * wanted, _FEWEST), *column.shape[1:]), column.dtype)
    longer[:used] = column[:used]
    return longer
