"""Records as columns: what a decoder gives, the merge brings into one sequence, and the join takes.

A row is one cache line. What a row cannot say (an invalid record, one with a null value, a prediction with
scores, a name beyond the vocabulary) is an event object beside it, and the row names its place.
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
"""Values of the column `side`: 2 where the event is an object."""

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
`timestamp_ms`: its own time; -1 without one. `record_ms`: its record's time, and the clock at its place once
it was released. `id_at`, `id_bytes`: where the text of its key lies. `model`, `class`: numbers in the
vocabulary; the model is -1 on a label that names none. `object`: index of its event object; -1 for a row that
says everything. `topic`: number of its topic in `RecordBatch.topics`; decoders leave it as it is.
`segments`: one more than the number of its segments in the vocabulary; 0 without any.
"""

MOST_TOPICS: Final = 256
"""Topics that a row can name, the empty one for all others among them."""

_WORDS: Final = ROW.itemsize // 8

SEPARATOR: Final = 10
"""Byte behind each key's text: no key contains a control character but the one after a namespace."""


def words_of(rows: NDArray[np.void]) -> NDArray[np.int64]:
    """The same rows as words, shape (n, 8): numpy copies records field by field, fifty times slower."""
    return rows.view(np.int64).reshape(-1, _WORDS)


def rows_of(words: NDArray[np.int64]) -> NDArray[np.void]:
    """The same words as rows."""
    return words.reshape(-1).view(ROW)


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records in the order of one partition, or of the merged sequence.

    Attributes
    ----------
    rows
        Shape (n,), of dtype `ROW`.
    texts
        uint8: texts of the keys, each followed by `SEPARATOR`; None where keys are their digests.
    objects
        Events of the rows that name one.
    vocabulary
        Names by number.
    topics
        Topics by number, the first "" for none; without any no row says its topic.
    """

    rows: NDArray[np.void]
    texts: NDArray[np.uint8] | None
    objects: Sequence[Decoded]
    vocabulary: Vocabulary
    topics: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> RecordBatch:
        """Take the records from `start` up to `stop`."""
        return RecordBatch(self.rows[start:stop], self.texts, self.objects, self.vocabulary, self.topics)

    def given(self) -> list[Event]:
        """Hand over the events of a batch that are all objects, as they are; none of them is `Several`."""
        objects = cast("Sequence[Event]", self.objects)
        return [objects[place] for place in self.rows["object"].tolist()]

    def events(self) -> list[Event]:
        """Make an event object of each record, in order; objects are given the clock at their place.

        None of them may be `Several`: `merge.elements.expanded` has made rows of those.
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
        """Places of the rows that are objects."""
        if not self.objects:
            return np.empty(0, np.intp)
        return np.flatnonzero(self.rows["side"] == OBJECT)

    def placed(self, places: NDArray[np.intp]) -> list[Event]:
        """Hand over the objects at these places, each with the clock at its place."""
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
        """Spell keys as events carry them: as text, or as the 16 bytes of the digest, high part first."""
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
    """Write None for what is absent (-1)."""
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
    """Put event objects into a batch as they are, with offset and time of their records."""
    rows = np.zeros(len(events), ROW)
    rows["side"] = OBJECT
    rows["object"] = np.arange(len(events))
    rows["model"] = rows["class"] = -1
    rows["offset"] = offsets
    rows["record_ms"] = record_ms
    return RecordBatch(rows, None, events, vocabulary or Vocabulary())


def no_records() -> RecordBatch:
    """Give a batch of nothing."""
    return RecordBatch(np.empty(0, ROW), None, (), Vocabulary())
