"""`Inbox`: delivered records that have no time yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.partitions import Partitions
from streamwatch.core.merge.queues import HeldRecords
from streamwatch.core.merge.timestamps import LOOK_AHEAD, ClockView, judge
from streamwatch.core.records.batch import (
    NO_ELEMENTS,
    OBJECT,
    ROW,
    SEVERAL,
    Beside,
    RecordBatch,
    RecordElements,
    gather_texts,
    point_behind,
    rows_of,
    words_of,
)
from streamwatch.core.records.fetched import APPENDED, FetchedRecords
from streamwatch.core.records.scores import NO_LISTS, ScoreLists
from streamwatch.core.records.vocabulary import Vocabulary

if TYPE_CHECKING:
    from streamwatch.core.ports import Record
    from streamwatch.core.records.events import Event

HostIsBehind: TypeAlias = Callable[[int, int], bool | None]
"""Function that returns whether the host's clock is behind, None if that is not known yet; arguments are the
index of a partition and the arrival time of its record."""


class Inbox:
    """Gives records their times: nearly all of a poll together, doubtful timestamps one by one.

    Parameters
    ----------
    partitions
        Columns of the partitions; running maxima and numbers of queued records are updated.
    held
        Pool that holds the records before they have a time and after.
    max_future_ms
        How far a timestamp may be ahead of its partition without being doubted.
    """

    def __init__(self, partitions: Partitions, held: HeldRecords, max_future_ms: int) -> None:
        self._partitions = partitions
        self._held = held
        self._max_future_ms = max_future_ms
        self._fresh: set[int] = set()  # indices of the partitions of `_fresh_ids`
        self._fresh_ms = 0  # arrival of the first of `_fresh_ids`
        self._fresh_ids: list[NDArray[np.int64]] = []
        self._doubtful: dict[int, NDArray[np.int64]] = {}  # by partition: ids that wait for later records
        self._appended: dict[int, bool] = {}

    def __len__(self) -> int:
        return sum(map(len, self._fresh_ids)) + sum(map(len, self._doubtful.values()))

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Return for each partition whether `judge` left records without a time, bool (partitions,)."""
        waiting = np.zeros(len(self._partitions.names), np.bool_)
        if self._doubtful:
            waiting[list(self._doubtful)] = True
        return waiting

    def waits(self, index: int) -> bool:
        """Return whether records of one partition wait for their time."""
        return index in self._doubtful or index in self._fresh

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Return whether a record without a time arrived at or before the given time."""
        if self._fresh and self._fresh_ms <= arrived_ms:
            return True
        return any(int(self._held.arrived_ms(ids[:1])[0]) <= arrived_ms for ids in self._doubtful.values())

    def ids(self) -> list[NDArray[np.int64]]:
        """Return the ids of the records that have no time yet."""
        return [*self._fresh_ids, *self._doubtful.values()]

    def reorder(self, indices: NDArray[np.int64]) -> None:
        """Replace partition indices by new ones, given by the old; no record of a removed one may be held."""
        for ids in self._fresh_ids:
            self._held.put_elsewhere(ids, indices)
        self._fresh = {int(indices[index]) for index in self._fresh}
        self._doubtful = {int(indices[index]): ids for index, ids in self._doubtful.items()}
        self._appended = {int(indices[index]): stamped for index, stamped in self._appended.items()}

    def add(
        self, ids: NDArray[np.int64], now_ms: int, indices: Sequence[int], appended: Sequence[bool]
    ) -> None:
        """Add delivered records: ids, indices of the partitions, and whether brokers set their timestamps."""
        if not self._fresh:
            self._fresh_ms = now_ms
        self._fresh_ids.append(ids)
        before = {index: self._appended[index] for index in (*self._doubtful, *self._fresh)}
        self._fresh.update(indices)
        self._appended.update(zip(indices, appended, strict=True))
        # If a topic's configuration changed in between, waiting timestamps are judged as those of producers.
        for index, stamped in before.items():
            self._appended[index] &= stamped

    def crowded(self, most: int) -> NDArray[np.bool_]:
        """Return for each partition whether more than `most` records wait, and enough to judge a jump."""
        crowded = np.zeros(len(self._partitions.names), np.bool_)
        for index, ids in self._doubtful.items():
            crowded[index] = len(ids) > max(most, LOOK_AHEAD + 1)
        return crowded

    def judge(self, host_ms: int, ended: Collection[int], host_is_behind: HostIsBehind) -> None:
        """Give times to the waiting records for which that is possible by now, and queue these.

        Parameters
        ----------
        host_ms
            The host's clock.
        ended
            Indices of partitions of which no further record will come.
        host_is_behind
            Called with a partition's index and the arrival time of its first record that may be from the
            future. True: the host's clock is behind, and the record is judged without it; None: not known
            yet.
        """
        doubtful, self._doubtful = self._doubtful, {}
        if self._fresh:
            self._queue_plain(doubtful)
        for index in sorted(doubtful):
            self._one_by_one(index, doubtful[index], host_ms, ended, host_is_behind)

    def _queue_plain(self, doubtful: dict[int, NDArray[np.int64]]) -> None:
        """Queue the fresh records of partitions without doubtful ones; mark the others doubtful."""
        partitions, held = self._partitions, self._held
        odd = np.zeros(len(partitions.names), np.bool_)
        if doubtful:
            odd[list(doubtful)] = True
        fresh = self._fresh_ids[0] if len(self._fresh_ids) == 1 else np.concatenate(self._fresh_ids)
        self._fresh_ids, self._fresh = [], set()
        if held.queue_plain(fresh, partitions.running_ms, odd, partitions.held, self._max_future_ms):
            for index in np.flatnonzero(odd).tolist():
                own = held.ids_of(fresh, index)
                if len(own):
                    doubtful[index] = np.concatenate((doubtful[index], own)) if index in doubtful else own

    def _one_by_one(
        self,
        index: int,
        ids: NDArray[np.int64],
        host_ms: int,
        ended: Collection[int],
        host_is_behind: HostIsBehind,
    ) -> None:
        partitions = self._partitions
        moving_ms, decodable = self._held.moving_ms(ids)
        behind: bool | None = False
        suspects = np.flatnonzero(moving_ms > host_ms + self._max_future_ms)
        if suspects.size:
            behind = host_is_behind(index, int(self._held.arrived_ms(ids[suspects[:1]])[0]))
            if behind is None and index in ended:
                behind = False
        found = judge(
            moving_ms,
            decodable,
            int(partitions.running_ms[index]),
            ClockView(host_ms, int(partitions.running_ms.max()), behind),
            self._max_future_ms,
            appended=self._appended.get(index, False),
            at_end=index in ended or bool(partitions.at_end_ms[index] >= 0),
        )
        count = len(found)
        if count:
            self._held.queue_judged(ids[:count], found.times_ms, found.reasons, index)
            partitions.held[index] += count
            partitions.running_ms[index] = found.times_ms[-1]
        if count < len(ids):
            self._doubtful[index] = ids[count:]


# Records as polls deliver them, before they have a time and a position in the sequence.


_ROW_BYTES: Final = 250
"""Approximate bytes in memory of a decoded record as a row, besides its key and value."""
_OBJECT_BYTES: Final = 500
"""Approximate bytes in memory of an event as an object."""
_ELEMENT_BYTES: Final = 150
"""Approximate bytes in memory of each event of a record with several."""
_SCORE_BYTES: Final = 12
"""Bytes in memory of a score in columns."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Records of one partition as one poll delivered them, in offset order; columns of one length.

    Attributes
    ----------
    offsets, stamps_ms
        int64; `stamps_ms` as the records carry them, in milliseconds since the epoch.
    decodable
        bool: whether the record could be decoded.
    records
        Decoded records, one for each.
    appended
        Whether the broker set the timestamps (LogAppendTime).
    size_bytes
        Approximate memory of the records.
    """

    offsets: NDArray[np.int64]
    stamps_ms: NDArray[np.int64]
    decodable: NDArray[np.bool_]
    records: RecordBatch
    appended: bool = False
    size_bytes: int = 0

    def __len__(self) -> int:
        return len(self.offsets)


def arrivals_of(records: Sequence[Record], batch: RecordBatch) -> Arrivals:
    """Build `Arrivals` from the records of one partition and the batch they were decoded to."""
    if isinstance(records, FetchedRecords):
        appended = bool(records.rows[:, APPENDED].all())
        size_bytes = records.size_bytes + _ROW_BYTES * len(batch)
    else:
        appended = all(record.timestamp_type == 1 for record in records)
        size_bytes = sum(len(record.value or b"") + len(record.key or b"") for record in records)
    return Arrivals(
        batch.rows["offset"],
        batch.rows["record_ms"],
        batch.decodable(),
        batch,
        appended=appended,
        size_bytes=size_bytes
        + _OBJECT_BYTES * len(batch.objects)
        + _ELEMENT_BYTES * len(batch.elements.rows)
        + _SCORE_BYTES * len(batch.scores.values),
    )


# Texts, scores, objects and elements that rows point at, from the arrival of a record to its release.


_FEWEST = 1_024
_WORDS = ROW.itemsize // 8
"""Words of a row. Rows are joined as bytes: numpy copies records field by field, a hundred times slower, and
to view each batch as words takes longer than to copy its few rows if partitions are many."""


class KeptBatches:
    """Concatenated texts, scores, objects and elements of batches, and the vocabulary of their rows.

    Batches that `batch` returned do not change when others are added.
    """

    __slots__ = ("_elements", "_is_plain", "_objects", "_scores", "_texts", "_vocabulary", "count")

    def __init__(self) -> None:
        self.count = 0
        """Number of records added since `clear`, or left by `keep`."""
        self.clear()

    def clear(self) -> None:
        """Drop everything."""
        self.count = 0
        self._is_plain = False  # whether some rows are no event objects
        self._scores, self._elements = _KeptScores(), _KeptElements()
        self._texts: _Kept | None = None
        self._objects: list[Event] = []
        self._vocabulary: Vocabulary | None = None

    @property
    def is_bare(self) -> bool:
        """Return whether nothing is kept but the vocabulary."""
        return self._texts is None and not (self._objects or len(self._scores) or len(self._elements))

    def numbers_by(self, vocabulary: Vocabulary) -> bool:
        """Return whether kept rows number names by this vocabulary."""
        return self._vocabulary is vocabulary

    def add(self, batches: Sequence[RecordBatch]) -> NDArray[np.int64]:
        """Append batches; return their rows, concatenated, as words; they point at the copies kept here.

        Raises
        ------
        ValueError
            If rows number names by another vocabulary than those before, or spell keys in another way.
        """
        self._settle([batch for batch in batches if not batch.only_objects])
        joined = bytearray().join([batch.rows.tobytes() for batch in batches])
        words = np.frombuffer(joined, np.int64).reshape(-1, _WORDS)
        self.count += len(words)
        if [batch for batch in batches if batch.texts is not None or any(batch.beside)]:
            rows, start = rows_of(words), 0
            for batch in batches:
                stop = start + len(batch.rows)
                self._move(rows[start:stop], batch)
                start = stop
        return words

    def _move(self, rows: NDArray[np.void], batch: RecordBatch) -> None:
        """Append a batch's texts, scores, objects and events, and point its kept rows at them."""
        texts = 0 if self._texts is None else self._texts.size
        before = Beside(texts, len(self._objects), len(self._scores), len(self._elements))
        if any(before):
            point_behind(rows, before)
        if len(batch.elements):
            point_behind(self._elements.add(batch.elements), before)
        self._objects += batch.objects
        self._scores.add(batch.scores)
        if batch.texts is not None and not batch.only_objects:
            if self._texts is None:
                self._texts = _Kept(np.empty(0, np.uint8))
            self._texts.add(batch.texts)

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
        vocabulary, scores = self._vocabulary or Vocabulary(), self._scores.view()
        texts = None if self._texts is None else self._texts.values
        return RecordBatch(rows, texts, self._objects, vocabulary, topics, scores, self._elements.view())

    def rows_of_elements(self) -> NDArray[np.void]:
        """Rows of all events kept of records that hold several."""
        return self._elements.view().rows

    def classes_of_scores(self) -> NDArray[np.int32]:
        """Numbers of the classes of all scores kept."""
        return self._scores.view().classes

    def keep(self, rows: NDArray[np.void]) -> None:
        """Drop everything that `rows` do not point at, and update their pointers in place."""
        several = rows["side"] == SEVERAL
        elements = self._elements.view().only(rows["object"][several])
        rows["object"][several] = np.arange(len(elements))
        if len(elements):
            words = np.concatenate([words_of(rows), words_of(elements.rows)])
            self._keep_beside(rows_of(words))
            words_of(rows)[:] = words[: len(rows)]
            words_of(elements.rows)[:] = words[len(rows) :]
        else:
            self._keep_beside(rows)
        self._is_plain = bool((rows["side"] < OBJECT).any() or (elements.rows["side"] < OBJECT).any())
        self._elements = _KeptElements()
        self._elements.add(elements)
        self.count = len(rows)

    def _keep_beside(self, rows: NDArray[np.void]) -> None:
        """Drop the texts, scores and objects that these rows, of records and of events, do not point at."""
        chosen = rows["side"] == OBJECT
        scored = (rows["side"] < OBJECT) & (rows["object"] >= 0)
        if len(self._scores):
            left = self._scores.view().only(rows["object"][scored])
            rows["object"][scored] = np.arange(len(left))
            self._scores = _KeptScores()
            self._scores.add(left)
        objects = self._objects
        self._objects = [objects[index] for index in rows["object"][chosen].tolist()]
        rows["object"][chosen] = np.arange(len(self._objects))
        if self._texts is not None:
            sizes = np.where(rows["side"] < OBJECT, rows["id_bytes"], -1).astype(np.int64)
            texts = np.empty(int((sizes + 1).sum()), np.uint8)
            gather_texts(self._texts.values, rows["id_at"].astype(np.int64), sizes, texts)
            rows["id_at"] = np.cumsum(sizes + 1) - sizes - 1
            self._texts = _Kept(texts)

    def _settle(self, batches: Sequence[RecordBatch]) -> None:
        """Use the vocabulary of these batches; raises ValueError if it is not that of the rows kept."""
        if not batches:
            return
        first, has_texts = batches[0], self._texts is not None
        if self._vocabulary is None or not self._is_plain:
            self._vocabulary, has_texts = first.vocabulary, first.texts is not None
            self._texts = None
        self._is_plain = True
        found = {(batch.vocabulary, batch.texts is not None) for batch in batches}
        if {vocabulary for vocabulary, _ in found} != {self._vocabulary}:
            raise ValueError("records of one sequence must number names by one vocabulary, got two")
        if {texts for _, texts in found} != {has_texts}:
            raise ValueError("records of one sequence must all have texts of keys, or none")


class _Kept:
    """Column that grows at its end; what is kept does not change when more is added."""

    __slots__ = ("_all", "size")

    def __init__(self, values: NDArray[Any]) -> None:
        self._all = values
        self.size = len(values)

    def add(self, values: NDArray[Any]) -> NDArray[Any]:
        """Append values; return them as kept here."""
        size = self.size + len(values)
        self._all = _with_room(self._all, self.size, size)
        added = self._all[self.size : size]
        added[:] = values
        self.size = size
        return added

    @property
    def values(self) -> NDArray[Any]:
        """Values kept so far."""
        return self._all[: self.size]


class _KeptScores:
    """Concatenated scores, with room for more."""

    __slots__ = ("_beside", "_classes", "_ends", "_values")

    def __init__(self) -> None:
        none = NO_LISTS
        self._ends, self._classes = _Kept(none.ends), _Kept(none.classes)
        self._values, self._beside = _Kept(none.values), _Kept(none.beside)

    def __len__(self) -> int:
        return self._ends.size

    def add(self, scores: ScoreLists) -> None:
        """Append the scores of further predictions."""
        if len(scores):
            self._ends.add(scores.ends + self._values.size)
            self._classes.add(scores.classes)
            self._values.add(scores.values)
            self._beside.add(scores.beside)

    def view(self) -> ScoreLists:
        """Return the scores kept so far."""
        return ScoreLists(self._ends.values, self._classes.values, self._values.values, self._beside.values)


class _KeptElements:
    """Concatenated events of records that hold several, with room for more."""

    __slots__ = ("_ends", "_tied", "_words")

    def __init__(self) -> None:
        none = NO_ELEMENTS
        self._ends, self._words, self._tied = _Kept(none.ends), _Kept(words_of(none.rows)), _Kept(none.tied)

    def __len__(self) -> int:
        return self._ends.size

    def add(self, elements: RecordElements) -> NDArray[np.void]:
        """Append the events of further records; return their rows as kept here."""
        self._ends.add(elements.ends + self._words.size)
        self._tied.add(elements.tied)
        return rows_of(self._words.add(words_of(elements.rows)))

    def view(self) -> RecordElements:
        """Return the events kept so far."""
        return RecordElements(self._ends.values, rows_of(self._words.values), self._tied.values)


def _with_room(column: NDArray[Any], used: int, wanted: int) -> NDArray[Any]:
    """Return the column, or a longer one that begins with it."""
    if wanted <= len(column):
        return column
    longer = np.empty((max(2 * wanted, _FEWEST), *column.shape[1:]), column.dtype)
    longer[:used] = column[:used]
    return longer
