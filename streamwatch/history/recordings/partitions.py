"""Recordings as partitions: chunks of events with offsets and times.

A file is a partition of its own. The record time of a line is its event's `timestamp`; a line without one
comes a millisecond after the previous line, so a file without timestamps counts its lines as milliseconds.
Lines of kcat have topic, partition, offset and time; all of them are read before any is evaluated, as the
last line may be the first record of its partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias, cast

import numpy as np

from streamwatch.core.merge import Arrivals
from streamwatch.core.records.batch import batch_of
from streamwatch.core.records.events import (
    CARRIED_FIELDS,
    Decoded,
    Event,
    EventGroup,
    Invalid,
    Label,
    NullRecord,
    Outcome,
    Partition,
    Prediction,
    Side,
    is_decodable,
)
from streamwatch.history.recordings.lines import (
    BadLine,
    Both,
    Fitted,
    Fitting,
    LineRecord,
    RecordedTopic,
    UnusableLines,
    sample_of,
)
from streamwatch.history.recordings.recording import Recording

# Events of lines, as events of their partitions with times.


RecordedEvent: TypeAlias = "Decoded | RecordedOutcome"


class RecordedOutcome(Outcome, frozen=True, gc=False, array_like=True):
    """Outcome of a line with a prediction and its label, and the id of both."""

    id: str = ""


def each_of(found: Fitted) -> Sequence[Event | Both]:
    """Return the events of one line."""
    return found.events if isinstance(found, EventGroup) else (found,)


def side_of(events: Iterable[Fitted]) -> Side:
    """Guess from the events of its first lines what a file has; `both` if these do not show it."""
    kinds = {type(event) for found in events for event in each_of(found)} & {Prediction, Label, Both}
    if kinds == {Prediction}:
        return "prediction"
    return "label" if kinds == {Label} else "both"


def own_time_ms(event: Fitted) -> int | None:
    """Return the latest own time of a line's events; None without one."""
    events = event if isinstance(event, Both) else each_of(event)
    stamps = [each.timestamp_ms for each in events if isinstance(each, Prediction | Label)]
    return max((stamp for stamp in stamps if stamp is not None), default=None)


def recorded_event(event: Fitted, record: LineRecord, partition: Partition, at_ms: int) -> RecordedEvent:
    """Set an event's partition and offset; a prediction with its label becomes an outcome at `at_ms`."""
    if isinstance(event, Both):
        prediction, label = event
        made_ms, known_ms = prediction.timestamp_ms, label.timestamp_ms
        delay_ms = 0 if made_ms is None or known_ms is None else max(0, known_ms - made_ms)
        own_ms = known_ms if known_ms is not None else made_ms
        return RecordedOutcome(
            prediction.model,
            label.true_class,
            prediction.predicted_class,
            at_ms if own_ms is None else own_ms,
            delay_ms,
            scores=prediction.scores,
            segments=prediction.segments,
            **{name: getattr(prediction, name) for name in CARRIED_FIELDS},
            id=prediction.id,
        )
    for each in each_of(event):
        if isinstance(each, Invalid):
            each.partition, each.offset = partition.partition, record.offset
        if isinstance(each, Invalid | NullRecord):
            each.topic = partition.topic
    return event


CHUNK: Final = 1_000
"""Number of lines decoded at once, and of lines by which it is guessed what a file has."""
_MIXED: Final = "recording"


@dataclass(frozen=True, slots=True)
class RecordedPartition:
    """Partition of recordings, and its chunks in order."""

    partition: Partition
    side: Side
    chunks: Iterator[Arrivals]
    """Consecutive lines for the merge, through which outcomes pass like events."""


class PartitionReader:
    """Reads recordings as partitions.

    Parameters
    ----------
    topics
        Topics with their decoders, in the order of the settings.
    bad
        Counter of unusable lines.
    topic
        Topic of every line; None: lines of kcat have theirs, and for others the mapping that fits decides.
    closed
        Whether lines of kcat must be of one of `topics`; if not, the mapping that fits decides on the others.
    """

    def __init__(
        self, topics: Mapping[str, RecordedTopic], bad: UnusableLines, topic: str | None, *, closed: bool
    ) -> None:
        self._topics = topics
        self._fitting = Fitting(topics)
        self._bad = bad
        self._topic = topic
        self._closed = closed

    def partitions(
        self, recordings: Sequence[Recording], read: Callable[[], None]
    ) -> list[RecordedPartition]:
        """Return a partition per file, and for each one in lines of kcat.

        `read` is called after each further chunk of lines of kcat, which are all read here.
        """
        partitions: list[RecordedPartition] = []
        logs: dict[Partition, list[LineRecord]] = {}
        sources: dict[int, str] = {}
        numbers: Counter[str] = Counter()
        for recording in recordings:
            lines = recording.records()
            head = list(islice(lines, CHUNK))
            if recording.is_kcat:
                self._sort_in(head, logs, recording.name, sources)
                while head := list(islice(lines, CHUNK)):
                    self._sort_in(head, logs, recording.name, sources)
                    read()
                continue
            fitted = self._decoded(head, self._topic, recording.name)
            side = side_of(event for event, _ in fitted)
            topic = self._topic or self._named_by(side)
            chunks = self._chunks(fitted, lines, Partition(topic, numbers[topic]), recording.name)
            partitions.append(
                RecordedPartition(Partition(topic, numbers[topic]), self._side(topic, side), chunks)
            )
            numbers[topic] += 1
        for partition, records in sorted(logs.items()):
            records.sort(key=lambda record: record.offset)
            topic = self._topic or (partition.topic if partition.topic in self._topics else None)
            fitted = self._decoded(records, topic, sources)
            side = self._side(partition.topic, side_of(event for event, _ in fitted))
            partitions.append(RecordedPartition(partition, side, self._dated_chunks(fitted, partition)))
        return partitions

    def partition_of(self, side: Side) -> Partition:
        """Return the partition of the first file whose lines are all of this side."""
        return Partition(self._topic or self._named_by(side), 0)

    def fitted(self, records: Sequence[LineRecord]) -> list[Fitted]:
        """Decode lines, without counting invalid ones."""
        return self._fitting.decode(records, self._topic) if records else []

    def note(self, found: Fitted, record: LineRecord, source: str) -> None:
        """Count the invalid events of a line."""
        for event in each_of(found):
            if isinstance(event, Invalid):
                known = self._topic or (record.topic if record.topic in self._topics else None)
                why = "" if self._bad.full else self._fitting.explain(record, event.reason, known)
                self._bad.add(BadLine(record.number, event.reason, sample_of(record.value), source, why))

    def rest(self, recording: Recording, partition: Partition, side: Side, last_ms: int) -> RecordedPartition:
        """Read the rest of a file as the same partition; `last_ms` is the time of the previous line."""
        lines = recording.records()
        fitted = self._decoded(list(islice(lines, CHUNK)), self._topic, recording.name)
        return RecordedPartition(
            partition, side, self._chunks(fitted, lines, partition, recording.name, last_ms)
        )

    def _side(self, topic: str, found: Side) -> Side:
        known = self._topics.get(topic)
        return found if known is None else known.spec.side

    def _named_by(self, side: Side) -> str:
        """Return the first topic of this side; without one, a name that no topic has."""
        name = next((name for name, topic in self._topics.items() if topic.spec.side == side), None)
        if name is None:
            name = _MIXED
            while name in self._topics:
                name += "-mixed"
        return name

    def _sort_in(
        self,
        lines: Iterable[LineRecord | BadLine],
        logs: dict[Partition, list[LineRecord]],
        source: str,
        sources: dict[int, str],
    ) -> None:
        for line in lines:
            if isinstance(line, BadLine):
                self._bad.add(line)
            elif self._topic is None and self._closed and line.topic not in self._topics:
                self._bad.add(BadLine(line.number, "unknown_topic", sample_of(line.topic.encode()), source))
            else:
                sources[id(line)] = source
                logs.setdefault(Partition(self._topic or line.topic, line.partition), []).append(line)

    def _chunks(
        self,
        fitted: list[tuple[Fitted, LineRecord]],
        lines: Iterator[LineRecord | BadLine],
        partition: Partition,
        source: str,
        last_ms: int = 0,
    ) -> Iterator[Arrivals]:
        """Yield chunks of a file, whose record times are those of its events."""
        while True:
            found: list[RecordedEvent] = []
            stamps: list[int] = []
            for event, record in fitted:
                own_ms = own_time_ms(event)
                if isinstance(event, Both) or is_decodable(event):
                    last_ms = last_ms + 1 if own_ms is None else max(1, own_ms)  # 0 is no time of a record
                stamps.append(last_ms)
                found.append(recorded_event(event, record, partition, last_ms))
            yield _arrivals(found, [record.offset for _, record in fitted], stamps, appended=False)
            head = list(islice(lines, CHUNK))
            if not head:
                return
            fitted = self._decoded(head, self._topic, source)

    def _dated_chunks(
        self, fitted: Sequence[tuple[Fitted, LineRecord]], partition: Partition
    ) -> Iterator[Arrivals]:
        """Yield chunks of a log, whose records have timestamps."""
        for start in range(0, len(fitted), CHUNK):
            part = fitted[start : start + CHUNK]
            yield _arrivals(
                [recorded_event(event, record, partition, record.timestamp) for event, record in part],
                [record.offset for _, record in part],
                [record.timestamp for _, record in part],
                appended=all(record.timestamp_type == 1 for _, record in part),
            )

    def _decoded(
        self, lines: Sequence[LineRecord | BadLine], topic: str | None, source: str | Mapping[int, str]
    ) -> list[tuple[Fitted, LineRecord]]:
        """Decode each line that is a record; unusable lines and invalid events are counted."""
        records = [line for line in lines if isinstance(line, LineRecord)]
        fitted = self._fitting.decode(records, topic)
        found: Iterator[Fitted] = iter(fitted)
        for line in lines:
            if isinstance(line, BadLine):
                self._bad.add(line)
            else:
                self.note(next(found), line, source if isinstance(source, str) else source[id(line)])
        return list(zip(fitted, records, strict=True))


def _arrivals(
    found: Sequence[RecordedEvent], offsets: Sequence[int], stamps_ms: Sequence[int], *, appended: bool
) -> Arrivals:
    at = np.array(offsets, np.int64)
    return Arrivals(
        at,
        np.array(stamps_ms, np.int64),
        np.array([isinstance(each, Outcome) or is_decodable(each) for each in found], np.bool_),
        batch_of(cast("Sequence[Event]", found), at),
        appended=appended,
    )
