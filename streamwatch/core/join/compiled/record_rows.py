"""Conversion of records in columns to rows of the compiled join, from one numbering of names to the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.join.compiled.layout import NO_TIME, NOTHING, ROW, Records
from streamwatch.core.join.compiled.names import JoinNames
from streamwatch.core.outcomes import SEGMENTS_FROM
from streamwatch.core.records import LABEL, MOST_TOPICS
from streamwatch.core.segments import segments_of
from streamwatch.core.vocabulary import Vocabulary

_UNKNOWN = -1


@entry
def number_rows(
    records: Any, models: Any, classes: Any, segments: Any, topics: Any, rows: Any, start: int
) -> int:
    """Write rows of records from `start` on, up to the first with an unknown name; return its position.

    Parameters
    ----------
    records
        Records `core.records.ROW`; of event objects only the time is used.
    models, classes, segments
        int32, numbers in the join by number in the vocabulary; -1 if not known yet.
    topics
        int16, (256,): number in the join by number in the records; all are known.
    rows
        Records `ROW` of the join, (n,), output.
    start
        Record at which to start or continue.
    """
    for r in range(start, records.shape[0]):
        record, row = records[r], rows[r]
        row.record_ms = record.record_ms
        row.side = NOTHING
        row.topic = 0
        if record.side > LABEL:
            continue
        model = record.model
        if model >= 0:
            model = models[model]
            if model < 0:
                return r
        named = classes[record["class"]]
        if named < 0:
            return r
        carried = -1
        if record.segments > 0:
            carried = segments[np.int64(record.segments) - 1]
            if carried < 0:
                return r
            carried += SEGMENTS_FROM
        row.low = record.id_low
        row.high = record.id_high
        row.timestamp_ms = NO_TIME if record.timestamp_ms < 0 else record.timestamp_ms
        row.model = model
        row["class"] = named
        row.scores = carried
        row.side = record.side
        row.topic = topics[record.topic]
    return records.shape[0]


class RecordNumbering:
    """Caches the join's numbers of the names in the records' vocabulary.

    The cache is cleared when the join or the vocabulary releases names, and when records come with another
    vocabulary.

    Parameters
    ----------
    names
        Names of the join.
    """

    __slots__ = (
        "_class_numbers",
        "_classes",
        "_model_numbers",
        "_models",
        "_of",
        "_refused",
        "_segment_numbers",
        "_segments",
        "_topic_numbers",
        "_topics",
        "_topics_of",
        "_version_of",
        "_versions",
    )

    def __init__(self, names: JoinNames) -> None:
        self._models = names.models
        self._classes = names.classes
        self._segments = names.segments
        self._topics = names.topics
        self._topics_of: Sequence[str] = ()
        self._topic_numbers = np.zeros(MOST_TOPICS, np.int16)
        self._of: Vocabulary | None = None
        self._version_of = 0
        self._versions = self._current
        self._model_numbers = np.empty(0, np.int32)
        self._class_numbers = np.empty(0, np.int32)
        self._segment_numbers = np.empty(0, np.int32)
        self._refused: list[int] = []

    @property
    def _current(self) -> tuple[int, ...]:
        named = self._models, self._classes, self._segments, self._topics
        return tuple(each.version for each in named)

    def rows(self, records: NDArray[np.void], vocabulary: Vocabulary, topics: Sequence[str] = ()) -> Records:
        """Build a row for each record; rows of event objects contain only the time.

        Parameters
        ----------
        records
            Records `core.records.ROW`, shape (n,).
        vocabulary
            Vocabulary of the records' numbers.
        topics
            Topic names as in `RecordBatch`.
        """
        rows = np.empty(len(records), ROW)
        if self._topics_of is not topics or self._versions != self._current:
            self._topics_of = topics
            self._topic_numbers[:] = 0
            self._topic_numbers[: len(topics)] = [self._topics[topic] for topic in topics]
        self._renew(vocabulary)
        at = 0
        while True:
            at = number_rows(
                records,
                self._model_numbers,
                self._class_numbers,
                self._segment_numbers,
                self._topic_numbers,
                rows,
                at,
            )
            if at == len(records):
                self._count_refused(records)
                return rows
            self._learn(records[at], vocabulary)

    def _renew(self, vocabulary: Vocabulary) -> None:
        """Extend the cache to all names in the vocabulary, or clear it if it is outdated."""
        versions = self._current
        if (self._of, self._version_of, self._versions) != (vocabulary, vocabulary.version, versions):
            self._of, self._version_of, self._versions = vocabulary, vocabulary.version, versions
            self._model_numbers = self._class_numbers = self._segment_numbers = np.empty(0, np.int32)
        self._model_numbers = _with_room(self._model_numbers, vocabulary.models.names)
        self._class_numbers = _with_room(self._class_numbers, vocabulary.classes.names)
        self._segment_numbers = _with_room(self._segment_numbers, vocabulary.segments.names)

    def _learn(self, record: np.void, vocabulary: Vocabulary) -> None:
        """Look up the numbers of one record's names."""
        model, named = int(record["model"]), int(record["class"])
        if model >= 0:
            self._model_numbers[model] = self._models[vocabulary.models.names[model]]
        self._class_numbers[named] = self._classes[vocabulary.classes.names[named]]
        values = int(record["segments"]) - 1
        if values >= 0 and self._segment_numbers[values] < 0:
            before = self._segments.over_limit
            number = self._segments.number(segments_of(vocabulary.segments.names[values]))
            self._segment_numbers[values] = number
            if self._segments.over_limit > before:
                self._segments.over_limit = before
                self._refused.append(values)

    def _count_refused(self, records: NDArray[np.void]) -> None:
        """Count the predictions whose segment values got no number, and clear these from the cache."""
        if self._refused:
            found = np.isin(records["segments"], np.array(self._refused) + 1)
            self._segments.over_limit += int(np.count_nonzero(found))
            self._segment_numbers[self._refused] = _UNKNOWN
            self._refused = []


def _with_room(numbers: NDArray[np.int32], names: Sequence[str]) -> NDArray[np.int32]:
    if len(names) <= len(numbers):
        return numbers
    longer = np.full(max(2 * len(names), 16), _UNKNOWN, np.int32)
    longer[: len(numbers)] = numbers
    return longer
