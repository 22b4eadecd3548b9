"""`RecordBatch`: records in columns. Decoders build them, the merge orders them and the join reads them.

A row has the size of one cache line. Scores of predictions are in columns beside the rows. A record that
holds several events is one row until the merge releases it; its events are rows beside the others. An event
that does not fit into columns (an invalid record, a null value, a name beyond the vocabulary) is kept as an
object in a list, and the row has its index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.records.events import (
    CARRIED,
    SAMPLING,
    Decoded,
    Event,
    EventGroup,
    Invalid,
    Label,
    Prediction,
    Skipped,
    carried_values,
    segments_of,
)
from streamwatch.core.records.scores import NO_LISTS, ScoreLists
from streamwatch.core.records.vocabulary import Vocabulary

# Copying of keys' texts in another order, compiled.


@entry
def gather_texts(texts: Any, starts: Any, sizes: Any, gathered: Any) -> int:
    """Copy texts, each with the byte after it, to `gathered`; return the number of bytes written.

    Parameters
    ----------
    texts
        uint8.
    starts, sizes
        int64 (n,): index at which each text begins, and its length without the byte after it.
    gathered
        uint8 with room for all of them; written to.
    """
    end = 0
    for i in range(len(starts)):
        start = starts[i]
        for j in range(sizes[i] + 1):
            gathered[end + j] = texts[start + j]
        end += sizes[i] + 1
    return end


PREDICTION: Final = 0
LABEL: Final = 1
OBJECT: Final = 2
SEVERAL: Final = 3
"""Values of the column `side`: the kind of event, 2 for an event kept as an object, or 3 for a record that
holds several events, or none."""

ROW: Final = np.dtype(
    [
        ("id_low", np.uint64),
        ("id_high", np.uint64),
        ("timestamp_ms", np.int64),
        ("record_ms", np.int64),
        ("offset", np.int64),
        ("id_at", np.int32),
        ("id_bytes", np.int32),
        ("model", np.int32),
        ("class", np.int32),
        ("object", np.int32),
        ("side", np.uint8),
        ("topic", np.uint8),
        ("segments", np.uint16),
    ],
    align=True,
)
"""One record, 64 bytes.

`id_low`, `id_high`: the 128-bit digest (XXH3) of its key, which is its id within its namespace.
`timestamp_ms`: the event's own time; -1 without one. `record_ms`: the record's time until the merge releases
it, then the clock at its position in the sequence. `id_at`, `id_bytes`: start and length of the key in
`RecordBatch.texts`. `model`, `class`: numbers in the vocabulary; the model is -1 on a label that names none.
`object`: index in `RecordBatch.objects`, number of a prediction's scores in `RecordBatch.scores`, or of a
record in `RecordBatch.elements`; -1 without any. `topic`: number in `RecordBatch.topics`, set by the merge.
`segments`: 1 plus the number of its segments in the vocabulary; 0 without any.
"""

MOST_TOPICS: Final = 256
"""Number of topics that rows can name, counting "", which stands for all topics beyond them."""

_WORDS: Final = ROW.itemsize // 8

SEPARATOR: Final = 10
"""Byte behind each key's text. No key contains it: the only control character in keys follows a namespace."""


def words_of(rows: NDArray[np.void]) -> NDArray[np.int64]:
    """View rows as int64 words, shape (n, 8): numpy copies structured rows fifty times more slowly."""
    return rows.view(np.int64).reshape(-1, _WORDS)


def rows_of(words: NDArray[np.int64]) -> NDArray[np.void]:
    """View words, int64 (n, 8), as rows of dtype `ROW`."""
    return words.reshape(-1).view(ROW)


@dataclass(frozen=True, slots=True)
class RecordElements:
    """Events of n records that hold several, or none; a record's number is its position here.

    Attributes
    ----------
    ends
        int64, shape (n,): index in `rows` at which each record's events end, and those of the next begin.
    rows
        One row for each event, in the order of the record: dtype `ROW`, none of them `SEVERAL`. Offset,
        time and topic are in the record's row only.
    tied
        int64, shape (n,): number of each record's predictions whose class shared the largest score.
    """

    ends: NDArray[np.int64]
    rows: NDArray[np.void]
    tied: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    def sizes(self, numbers: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of events of each of the records with these numbers."""
        return self.ends[numbers] - np.where(numbers > 0, self.ends[numbers - 1], 0)

    def only(self, numbers: NDArray[np.integer]) -> Self:
        """Copy the events of the records with these numbers; in the copy, numbers are in this order."""
        sizes = self.sizes(numbers)
        ends = np.cumsum(sizes)
        at = np.arange(int(sizes.sum())) + np.repeat(self.ends[numbers] - ends, sizes)
        return type(self)(ends, rows_of(words_of(self.rows).take(at, axis=0)), self.tied[numbers])

    def followed_by(self, others: RecordElements) -> RecordElements:
        """Concatenate these and others, to whose numbers the number of these records is added."""
        if not len(self):
            return others
        return RecordElements(
            np.concatenate([self.ends, others.ends + len(self.rows)]),
            rows_of(np.concatenate([words_of(self.rows), words_of(others.rows)])),
            np.concatenate([self.tied, others.tied]),
        )


NO_ELEMENTS = RecordElements(np.empty(0, np.int64), np.empty(0, ROW), np.empty(0, np.int64))


class Beside(NamedTuple):
    """Sizes of a batch's data beside its rows: bytes of texts; numbers of objects, scores and elements."""

    texts: int
    objects: int
    scores: int
    elements: int


def point_behind(rows: NDArray[np.void], before: Beside) -> None:
    """Add to the rows' pointers to texts, objects, scores and events the sizes of those `before` them."""
    sides, numbers = rows["side"], rows["object"]
    if before.objects:
        numbers[sides == OBJECT] += before.objects
    if before.elements:
        numbers[sides == SEVERAL] += before.elements
    if before.scores:
        numbers[(sides == PREDICTION) & (numbers >= 0)] += before.scores
    if before.texts:
        rows["id_at"] += before.texts


class SpreadRecords(NamedTuple):
    """Events of records, each in a row of its own."""

    batch: RecordBatch
    """Rows of events; a record without events has one row, a `Skipped`."""
    of: NDArray[np.int64]
    """int64, one for each row: position of its record, not decreasing."""
    events: NDArray[np.int64]
    """int64, one for each record: number of its events."""
    tied: NDArray[np.int64]
    """int64, one for each record: see `RecordElements`."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records in the order of one partition, or of the merged sequence.

    Attributes
    ----------
    rows
        One row for each record: dtype `ROW`, shape (n,).
    texts
        Texts of the keys, uint8, each followed by `SEPARATOR`; None if only digests of keys are kept.
    objects
        Events of the rows whose `side` is `OBJECT`.
    vocabulary
        Numbers of the names in the rows.
    topics
        Topics by number, the first "" for an unknown one; empty if rows have no topic.
    scores
        Scores of the rows whose `side` is `PREDICTION` and that have scores, or a probability with which
        their label is requested; `beside` has the numbers of `core.records.events.sampling_of`.
    elements
        Events of the rows whose `side` is `SEVERAL`; their rows point at objects and scores, too.
    """

    rows: NDArray[np.void]
    texts: NDArray[np.uint8] | None
    objects: Sequence[Event]
    vocabulary: Vocabulary
    topics: Sequence[str] = ()
    scores: ScoreLists = NO_LISTS
    elements: RecordElements = NO_ELEMENTS

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def beside(self) -> Beside:
        """Sizes of the data beside the rows."""
        texts = 0 if self.texts is None else len(self.texts)
        return Beside(texts, len(self.objects), len(self.scores), len(self.elements))

    @property
    def only_objects(self) -> bool:
        """Return whether every event of a whole batch is an object."""
        return len(self.objects) == len(self.rows) - len(self.elements) + len(self.elements.rows)

    def part(self, start: int, stop: int) -> RecordBatch:
        """Select the records from `start` up to `stop`, as views of the same rows."""
        return RecordBatch(
            self.rows[start:stop],
            self.texts,
            self.objects,
            self.vocabulary,
            self.topics,
            self.scores,
            self.elements,
        )

    def with_rows(self, indices: NDArray[np.integer], others: RecordBatch) -> RecordBatch:
        """Replace the rows with these indices by another batch's, and append its texts, scores and events.

        Both must number names by one vocabulary, or the other must have objects only.
        """
        before, moved, elements = self.beside, rows_of(words_of(others.rows).copy()), others.elements
        point_behind(moved, before)
        if len(elements):
            elements = replace(elements, rows=rows_of(words_of(elements.rows).copy()))
            point_behind(elements.rows, before)
        words = words_of(self.rows).copy()
        words[indices] = words_of(moved)
        texts = [texts for texts in (self.texts, others.texts) if texts is not None]
        return RecordBatch(
            rows_of(words),
            np.concatenate(texts) if texts else None,
            [*self.objects, *others.objects],
            self.vocabulary,
            self.topics,
            self.scores.followed_by(others.scores),
            self.elements.followed_by(elements) if len(elements) else self.elements,
        )

    def spread(self) -> SpreadRecords:
        """Give each event a row of its own, with the offset, time and topic of its record."""
        rows, count = self.rows, len(self.rows)
        at = np.flatnonzero(rows["side"] == SEVERAL) if len(self.elements) else np.empty(0, np.intp)
        events, tied = np.ones(count, np.int64), np.zeros(count, np.int64)
        if not len(at):
            return SpreadRecords(self, np.arange(count), events, tied)
        chosen = self.elements.only(rows["object"][at])
        events[at], tied[at] = np.diff(chosen.ends, prepend=0), chosen.tied
        of = np.repeat(np.arange(count), np.maximum(events, 1))
        words, records = words_of(rows).take(of, axis=0), rows["side"][of]
        found, inner = rows_of(words), np.flatnonzero((records == SEVERAL) & (events[of] > 0))
        words[inner] = words_of(chosen.rows)
        for column in ("offset", "record_ms", "topic"):
            found[column][inner] = rows[column][of[inner]]
        batch = replace(self, rows=found, elements=NO_ELEMENTS)
        empty = np.flatnonzero(events[of] == 0)
        return SpreadRecords(_with_skipped(batch, empty) if len(empty) else batch, of, events, tied)

    def records_of_objects(self) -> NDArray[np.intp]:
        """Return the position of each object's record, of a whole batch, in the order of the objects."""
        rows, of = self.rows, np.empty(len(self.objects), np.intp)
        for at, some in ((np.arange(len(rows)), rows), (self._records_of_elements(), self.elements.rows)):
            chosen = np.flatnonzero(some["side"] == OBJECT)
            of[some["object"][chosen]] = at[chosen]
        return of

    def _records_of_elements(self) -> NDArray[np.intp]:
        """Return the position of the record of each of `elements`, in a whole batch."""
        at = np.empty(len(self.elements), np.intp)
        several = np.flatnonzero(self.rows["side"] == SEVERAL)
        at[self.rows["object"][several]] = several
        return np.repeat(at, np.diff(self.elements.ends, prepend=0))

    def decodable(self) -> NDArray[np.bool_]:
        """Return which records of a whole batch could be read: not all of their events are invalid."""
        found = np.ones(len(self.rows), np.bool_)
        invalid = [number for number, event in enumerate(self.objects) if type(event) is Invalid]
        if invalid:
            events = np.ones(len(found), np.int64)
            several = np.flatnonzero(self.rows["side"] == SEVERAL)
            events[several] = self.elements.sizes(self.rows["object"][several])
            count = np.bincount(self.records_of_objects()[invalid], minlength=len(found))
            found = (count < events) | (events == 0)
        return found

    def given(self) -> list[Event]:
        """Return the event objects, unchanged, of a batch in which every row is one object."""
        return [self.objects[number] for number in self.rows["object"].tolist()]

    def events(self) -> list[Event]:
        """Convert each record to an event object, in order; `record_ms` of existing objects is updated.

        No record may hold `SEVERAL` events: `spread` gives them rows of their own.
        """
        sides = self.rows["side"]
        count = len(sides)
        numbers = np.bincount(sides, minlength=3) if count else np.zeros(3, np.int64)
        if numbers[OBJECT] == count:
            return self.objects_at(np.arange(count))
        if numbers[PREDICTION] == count:
            return list(self._predictions(self.rows))
        if numbers[LABEL] == count:
            return list(self._labels(self.rows))
        events = np.empty(count, object)
        for side, made in ((PREDICTION, self._predictions), (LABEL, self._labels)):
            if numbers[side]:
                chosen = np.flatnonzero(sides == side)
                events[chosen] = list(made(self.rows.take(chosen)))
        if numbers[OBJECT]:
            chosen = np.flatnonzero(sides == OBJECT)
            events[chosen] = self.objects_at(chosen)
        return events.tolist()

    def object_rows(self) -> NDArray[np.intp]:
        """Indices of the rows whose event is an object."""
        if not self.objects:
            return np.empty(0, np.intp)
        return np.flatnonzero(self.rows["side"] == OBJECT)

    def scored_rows(self) -> NDArray[np.intp]:
        """Indices of the rows of predictions that have scores, or a sampled label, in columns."""
        if not len(self.scores):
            return np.empty(0, np.intp)
        return np.flatnonzero((self.rows["side"] == PREDICTION) & (self.rows["object"] >= 0))

    def objects_at(self, indices: NDArray[np.intp]) -> list[Event]:
        """Return the event objects of rows with these indices, `record_ms` and topic set from the rows."""
        events: list[Event] = []
        rows = self.rows
        for number, record_ms, topic in zip(
            rows["object"][indices].tolist(),
            rows["record_ms"][indices].tolist(),
            self._topics(rows["topic"][indices]),
            strict=False,
        ):
            event = self.objects[number]
            event.record_ms = record_ms
            if type(event) is Prediction or type(event) is Label:
                event.topic = topic
            events.append(event)
        return events

    def _topics(self, column: NDArray[np.uint8]) -> Iterable[str]:
        return map(self.topics.__getitem__, column.tolist()) if self.topics else repeat("")

    def _predictions(self, rows: NDArray[np.void]) -> Iterable[Prediction]:
        scores, carried = self._scores(rows["object"])
        return map(
            Prediction,
            self._keys(rows),
            map(self.vocabulary.models.names.__getitem__, rows["model"].tolist()),
            map(self.vocabulary.classes.names.__getitem__, rows["class"].tolist()),
            rows["record_ms"].tolist(),
            _present(rows["timestamp_ms"]),
            scores,
            self._segments(rows["segments"]),
            self._topics(rows["topic"]),
            *carried_values(carried),
        )

    def _scores(
        self, column: NDArray[np.int32]
    ) -> tuple[Iterable[dict[str, float] | None], NDArray[np.int32]]:
        """Return the scores of predictions, and their carried numbers."""
        carried = np.zeros((len(column), len(CARRIED)), np.int32)
        scored = np.flatnonzero(column >= 0) if len(self.scores) else ()
        if not len(scored):
            return repeat(None, len(column)), carried
        found = np.full(len(column), None)
        numbers = column[scored]
        found[scored] = [
            each or None for each in self.scores.by_class(numbers, self.vocabulary.classes.names)
        ]
        carried[scored, SAMPLING] = self.scores.beside[numbers]
        return found.tolist(), carried

    def _segments(self, column: NDArray[np.uint16]) -> Iterable[dict[str, str] | None]:
        if not column.any():
            return repeat(None, len(column))
        texts = self.vocabulary.segments.names
        return [segments_of(texts[number - 1]) if number else None for number in column.tolist()]

    def _labels(self, rows: NDArray[np.void]) -> Iterable[Label]:
        names = self.vocabulary.models.names
        return map(
            Label,
            self._keys(rows),
            map(self.vocabulary.classes.names.__getitem__, rows["class"].tolist()),
            rows["record_ms"].tolist(),
            (None if number is None else names[number] for number in _present(rows["model"])),
            _present(rows["timestamp_ms"]),
            self._topics(rows["topic"]),
        )

    def _keys(self, rows: NDArray[np.void]) -> Sequence[str]:
        """Return keys as events have them: texts, or digests as 16 latin-1 characters, high part first."""
        if self.texts is None:
            digests = np.empty((len(rows), 2), ">u8")
            digests[:, 0], digests[:, 1] = rows["id_high"], rows["id_low"]
            spelt = digests.tobytes().decode("latin-1")
            return [spelt[at : at + 16] for at in range(0, len(spelt), 16)]
        sizes = rows["id_bytes"].astype(np.int64)
        gathered = np.empty(int(sizes.sum()) + len(rows), np.uint8)
        gather_texts(self.texts, rows["id_at"].astype(np.int64), sizes, gathered)
        return gathered.tobytes().decode().split(chr(SEPARATOR))[:-1]


def _with_skipped(batch: RecordBatch, empty: NDArray[np.intp]) -> RecordBatch:
    """Make the event of each of the rows `empty`, whose records hold none, a `Skipped` object.

    Objects that no row refers to are dropped.
    """
    rows, skipped = batch.rows, dict.fromkeys(empty.tolist())
    rows["side"][empty] = OBJECT
    chosen = np.flatnonzero(rows["side"] == OBJECT)
    objects = [
        Skipped(record_ms) if row in skipped else batch.objects[number]
        for row, number, record_ms in zip(
            chosen.tolist(),
            rows["object"][chosen].tolist(),
            rows["record_ms"][chosen].tolist(),
            strict=True,
        )
    ]
    rows["object"][chosen] = np.arange(len(objects))
    return replace(batch, objects=objects)


def _present(column: NDArray[Any]) -> Iterable[int | None]:
    """Replace -1, which stands for an absent value, by None."""
    if not len(column) or column.min() >= 0:
        return column.tolist()
    if column.max() < 0:
        return repeat(None, len(column))
    return [None if each < 0 else each for each in column.tolist()]


def batch_of(
    found: Sequence[Decoded],
    offsets: NDArray[np.int64],
    record_ms: NDArray[np.int64] | int = -1,
    vocabulary: Vocabulary | None = None,
) -> RecordBatch:
    """Build a batch in which every event is an object, with the offsets and times of their records."""
    rows = np.zeros(len(found), ROW)
    rows["side"] = OBJECT
    rows["model"] = rows["class"] = -1
    rows["offset"] = offsets
    rows["record_ms"] = record_ms
    groups = {row: each for row, each in enumerate(found) if isinstance(each, EventGroup)}
    objects: Sequence[Event] = [each for each in found if not isinstance(each, EventGroup)]
    elements = NO_ELEMENTS
    if groups:
        at = list(groups)
        rows["side"][at] = SEVERAL
        rows["object"][at] = np.arange(len(at))
        elements = _elements_of(list(groups.values()), len(objects))
        objects += [event for group in groups.values() for event in group.events]
    single = rows["side"] == OBJECT
    rows["object"][single] = np.arange(np.count_nonzero(single))
    return RecordBatch(rows, None, objects, vocabulary or Vocabulary(), elements=elements)


def _elements_of(groups: Sequence[EventGroup], first: int) -> RecordElements:
    """Build rows for the events of groups as objects with the numbers from `first` on."""
    ends = np.cumsum([len(group.events) for group in groups])
    rows = np.zeros(int(ends[-1]), ROW)
    rows["side"] = OBJECT
    rows["object"] = first + np.arange(len(rows))
    rows["model"] = rows["class"] = -1
    return RecordElements(ends, rows, np.array([group.tied for group in groups], np.int64))


def no_records() -> RecordBatch:
    """Build an empty batch."""
    return RecordBatch(np.empty(0, ROW), None, (), Vocabulary())


# Copying of structured arrays as the words that they consist of.
#
# numpy copies a structured array field by field, at ten to thirty times the cost of its bytes. All layouts
# here are whole words of 8 bytes, without gaps.


Records = NDArray[np.void]


def taken(records: Records, chosen: NDArray[np.bool_ | np.integer[Any]]) -> Records:
    """Copy some of the records, shape (n,), by mask or by positions, which may repeat."""
    at = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
    return words_of_array(records).take(at, axis=0).reshape(-1).view(records.dtype)


def copied(records: Records) -> Records:
    """Copy records, shape (n,)."""
    return words_of_array(records).copy().reshape(-1).view(records.dtype)


def joined(parts: Sequence[Records]) -> Records:
    """Copy records one after another; all of one layout, at least one part."""
    return np.concatenate([words_of_array(part) for part in parts]).reshape(-1).view(parts[0].dtype)


def words_of_array(records: Records) -> NDArray[np.int64]:
    """View records as rows of words, int64 (n, words); a copy if they are not contiguous."""
    return np.ascontiguousarray(records).view(np.int64).reshape(len(records), records.itemsize // 8)
