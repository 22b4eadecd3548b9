"""Conversion of event objects, and of records in columns, to the rows that the compiled loop joins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.join.counted import OtherRecords
from streamwatch.core.join.layout import (
    LABEL,
    NO_TIME,
    NOTHING,
    PREDICTION,
    ROW,
    WITHDRAWAL,
    Records,
)
from streamwatch.core.join.names import JoinNames
from streamwatch.core.records.batch import LABEL as LABEL_RECORD
from streamwatch.core.records.batch import MOST_TOPICS, RecordBatch
from streamwatch.core.records.events import (
    Event,
    Invalid,
    Label,
    NullRecord,
    Prediction,
    Skipped,
    WrongFold,
    carried_by_all,
    segments_of,
)
from streamwatch.core.records.outcomes import SEGMENTS_FROM
from streamwatch.core.records.scores import lists_of
from streamwatch.core.records.vocabulary import Vocabulary

# Conversion of event objects to rows of the compiled join, in which names and ids are numbers.


Digests: TypeAlias = Callable[[Sequence[str]], bytes]
"""Function from ids to 128-bit digests, 16 bytes each, upper half first; equal digests mean equal ids."""

_SIDES: Final[dict[type[object], int]] = {
    Prediction: PREDICTION,
    Label: LABEL,
    NullRecord: NOTHING,
    Skipped: NOTHING,
    Invalid: NOTHING,
    WrongFold: NOTHING,
}


class JoinRows:
    """Builds rows, in which names are numbers, and counts records that are neither prediction nor label.

    Parameters
    ----------
    digests
        Function that computes the ids' digests.
    names
        Names and scores of the join; new ones get numbers.
    others
        Counters of null and invalid records.
    """

    __slots__ = ("_digests", "_names", "_numbering", "_others")

    def __init__(self, digests: Digests, names: JoinNames, others: OtherRecords) -> None:
        self._digests = digests
        self._names = names
        self._numbering = RecordNumbering(names)
        self._others = others

    def rows(self, events: Sequence[Event]) -> Records:
        """Build the rows of events, in order.

        Those that are neither prediction nor label are counted when the join reaches their row.
        """
        rows = self._rows(events)
        self._others.note(rows, range(len(events)), events)
        return rows

    def record_rows(self, records: RecordBatch) -> Records:
        """Build the rows of records in columns, as `rows` does.

        Event objects among them are converted one by one.
        """
        indices = records.object_rows()
        events = records.objects_at(indices)
        if events and len(events) == len(records):
            return self.rows(events)
        rows = self._numbering.rows(records.rows, records.vocabulary, records.topics)
        self._numbering.hold_scores(rows, records)
        self.convert_objects(rows, indices, events)
        return rows

    def convert_objects(self, rows: Records, indices: NDArray[np.intp], events: Sequence[Event]) -> None:
        """Convert these event objects, and replace the rows with these indices by theirs."""
        if events:
            built = self._rows(events)
            rows.view(np.int64).reshape(len(rows), -1)[indices] = built.view(np.int64).reshape(len(built), -1)
            self._others.note(built, indices.tolist(), events)

    def _rows(self, events: Sequence[Event]) -> Records:
        """Build the rows of events; those that are not joined contain only the time."""
        rows = np.zeros(len(events), ROW)
        sides = np.array([_SIDES[type(event)] for event in events], np.int32)
        rows["side"] = sides
        rows["record_ms"] = [event.record_ms for event in events]
        predictions = [event for event in events if type(event) is Prediction]
        labels = [event for event in events if type(event) is Label]
        if predictions:
            self._add_predictions(rows, sides == PREDICTION, predictions)
        if labels:
            self._add_labels(rows, sides == LABEL, labels)
        if len(predictions) + len(labels) < len(events):
            self._add_withdrawals(rows, events)
        return rows

    def _add_predictions(self, rows: Records, chosen: np.ndarray, predictions: list[Prediction]) -> None:
        models, classes = self._names.models, self._names.classes
        self._add_ids(rows, chosen, [event.id for event in predictions])
        rows["timestamp_ms"][chosen] = _times([event.timestamp_ms for event in predictions])
        rows["model"][chosen] = [models[event.model] for event in predictions]
        rows["class"][chosen] = [classes[event.predicted_class] for event in predictions]
        rows["topic"][chosen] = [self._names.topics[event.topic] for event in predictions]
        rows["carried"][chosen] = carried_by_all(predictions)
        scores = [event.scores for event in predictions]
        segments = [event.segments for event in predictions]
        if scores.count(None) == segments.count(None) == len(scores):
            rows["scores"][chosen] = -1
        else:
            rows["scores"][chosen] = self._carried(scores, segments)

    def _carried(
        self, scores: Sequence[dict[str, float] | None], segments: Sequence[dict[str, str] | None]
    ) -> NDArray[np.int32]:
        """Build the rows' field `scores`: the number of the block of scores, or of the segments, or -1."""
        names = self._names
        numbers = np.array([names.segments.number(each) if each else -1 for each in segments], np.int32)
        carried = np.where(numbers < 0, -1, SEGMENTS_FROM + numbers).astype(np.int32)
        scored = [row for row, each in enumerate(scores) if each is not None]
        given = [{names.classes[name]: score for name, score in (scores[k] or {}).items()} for k in scored]
        carried[scored] = names.scores.add(lists_of(given, numbers[scored]))
        return carried

    def _add_labels(self, rows: Records, chosen: np.ndarray, labels: list[Label]) -> None:
        models, classes = self._names.models, self._names.classes
        self._add_ids(rows, chosen, [event.id for event in labels])
        rows["timestamp_ms"][chosen] = _times([event.timestamp_ms for event in labels])
        named = [event.model for event in labels]
        nameless = named.count(None) == len(named)
        rows["model"][chosen] = -1 if nameless else [-1 if name is None else models[name] for name in named]
        rows["class"][chosen] = [classes[event.true_class] for event in labels]
        rows["topic"][chosen] = [self._names.topics[event.topic] for event in labels]

    def _add_withdrawals(self, rows: Records, events: Sequence[Event]) -> None:
        for position, event in enumerate(events):
            if type(event) is NullRecord and event.withdraws and event.id is not None:
                rows["side"][position] = WITHDRAWAL
                rows["model"][position] = -1 if event.model is None else self._names.models[event.model]
                self._add_ids(rows, np.array([position]), [event.id])

    def _add_ids(self, rows: Records, chosen: np.ndarray, ids: list[str]) -> None:
        halves = np.frombuffer(self._digests(ids), ">u8").reshape(-1, 2)
        rows["high"][chosen] = halves[:, 0]
        rows["low"][chosen] = halves[:, 1]


def _times(timestamps_ms: Sequence[int | None]) -> list[int]:
    return [NO_TIME if timestamp_ms is None else timestamp_ms for timestamp_ms in timestamps_ms]


# Conversion of records in columns to rows of the compiled join, from one numbering of names to the other.


_UNKNOWN = -1


@entry
def number_rows(
    records: Any, models: Any, classes: Any, segments: Any, topics: Any, rows: Any, start: int
) -> int:
    """Write rows of records from `start` on, up to the first with an unknown name; return its position, or n.

    Parameters
    ----------
    records
        Records `core.records.batch.ROW`; of event objects only the time is used.
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
        for k in range(len(row.carried)):
            row.carried[k] = 0
        if record.side > LABEL_RECORD:
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
        "_scores",
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
        self._scores = names.scores
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
            Records `core.records.batch.ROW`, shape (n,).
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

    def hold_scores(self, rows: Records, records: RecordBatch) -> None:
        """Hold the scores of records in columns, and write the blocks' numbers to the field `scores` of rows.

        The field `carried` is written, too. `rows` must be those that `rows` built of these records last.
        """
        if not len(records.scores):
            return
        names, at = records.vocabulary.classes.names, 0
        while True:
            numbers = self._class_numbers
            at = self._scores.add_rows(records.scores, numbers, records.rows, rows, at)
            if at == len(rows):
                return
            listed = records.scores.only(records.rows["object"][at : at + 1]).classes
            unknown: list[int] = listed[numbers[listed] < 0].tolist()
            for number in unknown:
                numbers[number] = self._classes[names[number]]

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
