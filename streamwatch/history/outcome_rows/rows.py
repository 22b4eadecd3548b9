"""Reads the rows of one file as outcomes in columns, and rows that are no outcome as events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge import Released
from streamwatch.core.merge.released import IN_ORDER
from streamwatch.core.merge.timestamps import LOOK_AHEAD
from streamwatch.core.records.batch import ROW as RECORD
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import Event, Partition, is_decodable
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.core.records.vocabulary import Names, Vocabulary
from streamwatch.edge.decoders.scanner.plan import Tables
from streamwatch.edge.decoders.scanner.tokens import Tokens
from streamwatch.history.outcome_rows.lines import CsvLines, JsonLines, Known, LineBuffer, Lines, Scanned
from streamwatch.history.outcome_rows.plan import RowTimes, line_plan, plan_of
from streamwatch.history.outcome_rows.scan import LABEL, MODEL, ORDINARY, PREDICTION, ROW
from streamwatch.history.recordings.lines import (
    BadLine,
    Both,
    Fitted,
    LineRecord,
    RecordedTopic,
    UnusableLines,
)
from streamwatch.history.recordings.partitions import PartitionReader, own_time_ms, recorded_event
from streamwatch.history.recordings.recording import Recording

# Rows of a file read together: outcomes in columns, and events of the other rows.


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive rows of a file; arrays have shape (n,)."""

    offsets: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    """Time of the partition at each row."""
    is_outcome: NDArray[np.bool_]
    outcomes: OutcomeBatch
    """Outcomes of the rows where `is_outcome`."""
    events: Sequence[Event]
    """Events of the other rows, in order."""
    stamps_ms: NDArray[np.int64]
    """Timestamps of the rows that could be decoded."""

    def released(self, partition: Partition) -> Released:
        """Convert to a stretch of the sequence with offsets and times only, to count its progress."""
        count = len(self.offsets)
        return Released(
            RecordBatch(np.zeros(count, RECORD), None, (), Vocabulary()),
            [partition],
            np.zeros(count, np.int64),
            self.offsets,
            self.times_ms,
            self.times_ms,
            np.full(count, IN_ORDER),
            np.zeros(count, np.uint8),
        )


# Numbers of the models and classes in a file, and the bytes with which their names are written there.


_NO_TOKENS: Final = Tokens()


class OutcomeNames:
    """Numbers the names of models and classes in order of first occurrence.

    Parameters
    ----------
    model
        Model of all rows; None if each row names its own.
    """

    def __init__(self, model: str | None) -> None:
        self._models, self._classes = Names(), Names()
        self._tokens = {role: Tokens() for role in (MODEL, PREDICTION, LABEL)}
        self._met = {role: set[bytes]() for role in (MODEL, PREDICTION, LABEL)}
        self._model = -1 if model is None else self._models.number(model)
        self.is_full = False
        """Whether a name got no number, as there are too many."""

    @property
    def models(self) -> Sequence[str]:
        """Names of models by number."""
        return self._models.names

    @property
    def classes(self) -> Sequence[str]:
        """Names of classes by number."""
        return self._classes.names

    def known(self) -> Known:
        """Return the names so far, for a compiled reader."""
        models, predicted, true = (self._tokens[role].table for role in (MODEL, PREDICTION, LABEL))
        return Known(Tables(models, _NO_TOKENS.table, predicted, true, _NO_TOKENS.table), self._model)

    def note(self, row: np.void, both: Both, tokens: Mapping[int, bytes]) -> bool:
        """Write the numbers of an outcome's names to its row; return whether a spelling of one was new."""
        prediction, label = both
        learned = False
        for role, column, names, name in (
            (MODEL, "model", self._models, prediction.model),
            (PREDICTION, "predicted_class", self._classes, prediction.predicted_class),
            (LABEL, "true_class", self._classes, label.true_class),
        ):
            row[column] = number = names.number(name)
            self.is_full |= number < 0
            token = tokens.get(role)
            if token is not None and token not in self._met[role] and number >= 0:
                self._met[role].add(token)
                self._tokens[role].learn(token, number)
                learned = True
        return learned


_ROWS: Final = 1 << 16
_FIRST_ROWS: Final = 1 << 11
"""Rows of the first part, which is small as most of its rows are read one by one until names are known."""
_ODD: Final = 64
"""Number of rows that are not ordinary at which a scan stops, to learn their names for the rows behind."""
_PATIENCE: Final = 16
"""Number of successive scans of a part that are repeated with newly learned names."""
_HEAD: Final = 1_000
"""Number of rows by which a file is recognised as one of outcomes."""


class OutcomeRows:
    """Reads a file of outcomes up to its end, or up to a row that needs the reader of single rows.

    Parameters
    ----------
    recording
        Recording of which at most a header has been read.
    lines
        Lines of the recording.
    model
        Model of all rows; None if each row names its own.
    reader
        Reader of single rows, for rows that are not ordinary.
    bad
        Counter of unusable lines.
    max_future_ms
        Largest advance of a timestamp over earlier ones that is believed without a check.
    """

    def __init__(
        self,
        recording: Recording,
        lines: Lines,
        model: str | None,
        reader: PartitionReader,
        bad: UnusableLines,
        max_future_ms: int,
    ) -> None:
        self._recording = recording
        self._lines = lines
        self._reader = reader
        self._bad = bad
        self._names = OutcomeNames(model)
        self.times = RowTimes(max_future_ms)
        self.partition: Partition = reader.partition_of("both")
        """Partition whose records the rows are."""
        self._buffer = LineBuffer(recording)
        self._before = recording.number
        self._rows = np.zeros(_ROWS, ROW)

    def parts(self, host_ms: Callable[[], int]) -> Iterator[Part]:
        """Yield parts of the file in order; then call `rest` for the lines that are left."""
        room, most_odd, tried, first = _FIRST_ROWS, _ODD, 0, True
        self._buffer.fill()
        while True:
            count, at, line, foreign = self._scanned(room, most_odd)
            rows = self._rows[:count]
            others, learned, scored = self._read_singly(rows)
            if scored < count:  # from this row on, the reader of single rows is needed
                at, line, foreign = int(rows["start"][scored]), int(rows["line"][scored]) - 1, True
                count, rows = scored, rows[:scored]
            if self._names.is_full:
                return
            if learned and tried < _PATIENCE:
                tried += 1
                continue  # scan again with the learned names
            ended = self._buffer.at_end and at == self._buffer.end and not foreign
            ready = count if ended else _followed(count, others)
            if ready == 0 and not ended:
                if int((rows["status"] != ORDINARY).sum()) >= most_odd:
                    most_odd *= 4
                elif foreign or not self._buffer.fill():
                    return
                continue
            if first and others.keys() >= set(range(min(count, _HEAD))):
                return
            part, taken = self._part(rows, others, ready, host_ms())
            if taken < count:
                at, line = int(rows["start"][taken]), int(rows["line"][taken]) - 1
            self._buffer.advance(at, line)
            self._recording.lines += taken
            if taken or ended:
                yield part
            if ended or taken == 0:
                return
            room, most_odd, tried, first = _ROWS, _ODD, 0, False

    def rest(self) -> bool:
        """Return unread lines to the recording, which continues with them; tell whether there are any."""
        left = self._buffer.left()
        self._lines.resume(left, self._buffer.line)
        return bool(left) or not self._buffer.at_end

    @property
    def untouched(self) -> bool:
        """Tell whether no row was read, so that `rest` returns all of them."""
        return self._buffer.line == self._before

    def _scanned(self, room: int, most_odd: int) -> Scanned:
        return self._lines.scan(self._buffer.stretch(), self._names.known(), most_odd, self._rows[:room])

    def _read_singly(self, rows: NDArray[np.void]) -> tuple[dict[int, Fitted | BadLine], bool, int]:
        """Read the rows that are not ordinary.

        Returns
        -------
        others, learned, scored
            Rows that are no outcome, by index; whether spellings of names were new; the index of the first
            outcome with scores or segments, which columns cannot represent, or else the number of rows.
            Outcomes before it are written to `rows`.
        """
        others: dict[int, Fitted | BadLine] = {}
        learned = False
        indices = np.flatnonzero(rows["status"] != ORDINARY).tolist()
        lines = [self._buffer.bytes_of(*ends) for ends in rows[["start", "stop"]][indices].tolist()]
        numbers = rows["line"][indices].tolist()
        records = [self._lines.record(line, number) for line, number in zip(lines, numbers, strict=True)]
        fitted = iter(self._reader.fitted([each for each in records if isinstance(each, LineRecord)]))
        for index, line, record in zip(indices, lines, records, strict=True):
            if isinstance(record, BadLine):
                others[index] = record
                continue
            found, row = next(fitted), rows[index]
            own_ms = own_time_ms(found)
            row["own_ms"] = -1 if own_ms is None else own_ms
            if isinstance(found, Both):
                if found.prediction.scores is not None or found.prediction.segments is not None:
                    return others, learned, index
                learned |= self._names.note(row, found, self._lines.tokens(line))
            else:
                others[index] = found
        return others, learned, len(rows)

    def _part(
        self, rows: NDArray[np.void], others: Mapping[int, Fitted | BadLine], ready: int, host_ms: int
    ) -> tuple[Part, int]:
        """Build a part of the first `ready` rows, or of those before one whose time needs a check.

        Returns the part and its number of rows.
        """
        is_record, timed = np.ones(len(rows), np.bool_), np.ones(len(rows), np.bool_)
        for index, other in others.items():
            if isinstance(other, BadLine):
                is_record[index] = False
            else:
                timed[index] = is_decodable(other) if not isinstance(other, Both) else True
        indices = np.flatnonzero(is_record)
        own_ms = np.ascontiguousarray(rows["own_ms"][indices])
        dated = self.times.dated(own_ms, timed[indices], host_ms)
        taken = ready if dated.believed == len(indices) else min(ready, int(indices[dated.believed]))
        count = int(np.searchsorted(indices, taken))
        indices, own_ms, stamps_ms, times_ms = (
            column[:count] for column in (indices, own_ms, dated.stamps_ms, dated.times_ms)
        )
        self.times.take(stamps_ms, times_ms)
        events: list[Event] = []
        is_outcome = np.ones(count, np.bool_)
        for index, other in sorted(others.items()):
            if index >= taken:
                break
            if isinstance(other, BadLine):
                self._bad.add(other)
                continue
            at = int(np.searchsorted(indices, index))
            is_outcome[at] = False
            record = self._record(rows[index])
            self._reader.note(other, record, self._recording.name)
            events.append(cast("Event", recorded_event(other, record, self.partition, int(stamps_ms[at]))))
        chosen = slice(0, count) if not others else indices[is_outcome]
        outcomes = np.zeros(int(is_outcome.sum()), OUTCOME)
        for column in ("model", "true_class", "predicted_class"):
            outcomes[column] = rows[column][chosen]
        outcomes["label_at_prediction"] = outcomes["scores"] = -1
        outcomes["event_ms"] = np.where(own_ms < 0, stamps_ms, own_ms)[is_outcome]
        outcomes["resolved_ms"] = times_ms[is_outcome]
        outcomes["waited_ms"] = np.maximum(0, outcomes["resolved_ms"] - outcomes["event_ms"])
        batch = OutcomeBatch(outcomes, self._names.models, self._names.classes)
        decoded = stamps_ms[timed[indices]]
        return Part(rows["line"][indices], times_ms, is_outcome, batch, events, decoded), taken

    def _record(self, row: np.void) -> LineRecord:
        """Convert the line of a row to a record again."""
        line = self._buffer.bytes_of(int(row["start"]), int(row["stop"]))
        record = self._lines.record(line, int(row["line"]))
        assert isinstance(record, LineRecord)  # noqa: S101 - it was one
        return record


def _followed(count: int, others: Mapping[int, Fitted | BadLine]) -> int:
    """Number of rows that have `LOOK_AHEAD` records behind them, which the check of times needs."""
    bad = [index for index, other in others.items() if isinstance(other, BadLine)]
    records = np.delete(np.arange(count), bad)
    return int(records[-LOOK_AHEAD]) if len(records) >= LOOK_AHEAD else 0


def outcome_rows(
    recording: Recording,
    topics: Mapping[str, RecordedTopic],
    reader: PartitionReader,
    bad: UnusableLines,
    max_future_ms: int,
) -> OutcomeRows | None:
    """Prepare to read a recording in columns; None if that is impossible, and then nothing of it is read."""
    if (header := recording.csv_header()) is not None:
        if (plan := plan_of(header, topics)) is None:
            recording.resume(None, recording.header_bytes, 0)
            return None
        lines: Lines = CsvLines(recording, plan)
    elif recording.are_json_lines() and (found := line_plan(topics)) is not None:
        plan, fields = found
        lines = JsonLines(recording, plan, fields)
    else:
        return None
    return OutcomeRows(recording, lines, plan.model, reader, bad, max_future_ms)
