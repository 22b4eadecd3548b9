"""`RecordBatch`: records in columns. Decoders build them, the merge orders them and the join reads them.

A row has the size of one cache line. An event that does not fit into one (an invalid record, a null value, a
prediction with scores, a name beyond the vocabulary) is kept as an object in a list beside the rows, and the
row has its index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Decoded, Event, Label, Prediction
from streamwatch.core.segments import segments_of
from streamwatch.core.texts import gather_texts
from streamwatch.core.vocabulary import Vocabulary

PREDICTION: Final = 0
LABEL: Final = 1
OBJECT: Final = 2
"""Values of the column `side`: the kind of event, or 2 for an event kept as an object."""

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
it, then the clock at its place in the sequence. `id_at`, `id_bytes`: start and length of the key in
`RecordBatch.texts`. `model`, `class`: numbers in the vocabulary; the model is -1 on a label that names none.
`object`: index in `RecordBatch.objects`; -1 if there is no object. `topic`: number in `RecordBatch.topics`,
set by the merge. `segments`: 1 plus the number of its segments in the vocabulary; 0 without any.
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
        Topics by number, the first "" for an unknown one; empty if rows do not tell their topic.
    """

    rows: NDArray[np.void]
    texts: NDArray[np.uint8] | None
    objects: Sequence[Decoded]
    vocabulary: Vocabulary
    topics: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> RecordBatch:
        """Select the records from `start` up to `stop`, as views of the same rows."""
        return RecordBatch(self.rows[start:stop], self.texts, self.objects, self.vocabulary, self.topics)

    def given(self) -> list[Event]:
        """Return the event objects as they are, of a batch that has only objects and no `EventGroup`."""
        objects = cast("Sequence[Event]", self.objects)
        return [objects[place] for place in self.rows["object"].tolist()]

    def events(self) -> list[Event]:
        """Convert each record to an event object, in order; `record_ms` of existing objects is updated.

        The batch may have no `EventGroup`: `merge.elements.expanded` has given its events rows of their own.
        """
        sides = self.rows["side"]
        count = len(sides)
        numbers = np.bincount(sides, minlength=3) if count else np.zeros(3, np.int64)
        if numbers[OBJECT] == count:
            return self.placed(np.arange(count))
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
            events[chosen] = self.placed(chosen)
        return events.tolist()

    def object_places(self) -> NDArray[np.intp]:
        """Positions of the rows whose event is an object."""
        if not self.objects:
            return np.empty(0, np.intp)
        return np.flatnonzero(self.rows["side"] == OBJECT)

    def placed(self, places: NDArray[np.intp]) -> list[Event]:
        """Return the event objects of rows at these positions, `record_ms` and topic set from the rows."""
        events: list[Event] = []
        rows = self.rows
        for number, record_ms, topic in zip(
            rows["object"][places].tolist(),
            rows["record_ms"][places].tolist(),
            self._topics(rows["topic"][places]),
            strict=False,
        ):
            event = cast("Event", self.objects[number])
            event.record_ms = record_ms
            if type(event) is Prediction or type(event) is Label:
                event.topic = topic
            events.append(event)
        return events

    def _topics(self, column: NDArray[np.uint8]) -> Iterable[str]:
        return map(self.topics.__getitem__, column.tolist()) if self.topics else repeat("")

    def _predictions(self, rows: NDArray[np.void]) -> Iterable[Prediction]:
        return map(
            Prediction,
            self._keys(rows),
            map(self.vocabulary.models.names.__getitem__, rows["model"].tolist()),
            map(self.vocabulary.classes.names.__getitem__, rows["class"].tolist()),
            rows["record_ms"].tolist(),
            _present(rows["timestamp_ms"]),
            repeat(None),
            self._segments(rows["segments"]),
            self._topics(rows["topic"]),
        )

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
        """Return keys as events carry them: texts, or digests as 16 latin-1 characters, high part first."""
        if self.texts is None:
            digests = np.empty((len(rows), 2), ">u8")
            digests[:, 0], digests[:, 1] = rows["id_high"], rows["id_low"]
            spelt = digests.tobytes().decode("latin-1")
            return [spelt[at : at + 16] for at in range(0, len(spelt), 16)]
        sizes = rows["id_bytes"].astype(np.int64)
        gathered = np.empty(int(sizes.sum()) + len(rows), np.uint8)
        gather_texts(self.texts, rows["id_at"].astype(np.int64), sizes, gathered)
        return gathered.tobytes().decode().split(chr(SEPARATOR))[:-1]


def _present(column: NDArray[Any]) -> Iterable[int | None]:
    """Replace -1, which stands for an absent value, by None."""
    if not len(column) or column.min() >= 0:
        return column.tolist()
    if column.max() < 0:
        return repeat(None, len(column))
    return [None if each < 0 else each for each in column.tolist()]


def batch_of(
    events: Sequence[Decoded],
    offsets: NDArray[np.int64],
    record_ms: NDArray[np.int64] | int = -1,
    vocabulary: Vocabulary | None = None,
) -> RecordBatch:
    """Build a batch in which every event is an object, with the offsets and times of their records."""
    rows = np.zeros(len(events), ROW)
    rows["side"] = OBJECT
    rows["object"] = np.arange(len(events))
    rows["model"] = rows["class"] = -1
    rows["offset"] = offsets
    rows["record_ms"] = record_ms
    return RecordBatch(rows, None, events, vocabulary or Vocabulary())


def no_records() -> RecordBatch:
    """Build an empty batch."""
    return RecordBatch(np.empty(0, ROW), None, (), Vocabulary())
