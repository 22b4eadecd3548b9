"""Pieces that readers send to id buckets: events in rows, and how many records there were at which time."""

from __future__ import annotations

from typing import Final

import msgspec

from streamwatch.core.events import Event, Invalid, Label, NullRecord, Partition, Prediction, WrongFold

PREDICTION: Final = 0
LABEL: Final = 1
NULL: Final = 2
WRONG_FOLD: Final = 3
INVALID: Final = 4


class Row(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One event of a record; a record that was skipped has none."""

    time_ms: int
    """Running maximum of the timestamps, from the first record of the piece on; -1 before one is believed."""
    offset: int
    event: int
    """Number among the record's events."""
    kind: int
    id: str | None = None
    model: str | None = None
    name: str = ""
    """Its class; or why the record is invalid."""
    timestamp_ms: int | None = None
    scores: dict[str, float] | None = None
    segments: dict[str, str] | None = None
    withdraws: bool = False

    def event_at(self, partition: Partition, record_ms: int) -> Event:
        """Make the event, with the clock at its place."""
        if self.kind == PREDICTION:
            return Prediction(
                self.id or "",
                self.model or "",
                self.name,
                record_ms,
                self.timestamp_ms,
                self.scores,
                self.segments,
                partition.topic,
            )
        if self.kind == LABEL:
            return Label(self.id or "", self.name, record_ms, self.model, self.timestamp_ms, partition.topic)
        if self.kind == NULL:
            return NullRecord(partition.topic, self.id, self.model, record_ms, self.withdraws)
        if self.kind == WRONG_FOLD:
            return WrongFold(record_ms)
        return Invalid(partition.topic, partition.partition, self.offset, self.name, record_ms, self.model)


def row_of(found: Event, time_ms: int, offset: int, event: int) -> Row | None:
    """Make the row of an event; None of a record that was skipped."""
    if isinstance(found, Prediction):
        return Row(
            time_ms,
            offset,
            event,
            PREDICTION,
            found.id,
            found.model,
            found.predicted_class,
            found.timestamp_ms,
            found.scores,
            found.segments,
        )
    if isinstance(found, Label):
        return Row(time_ms, offset, event, LABEL, found.id, found.model, found.true_class, found.timestamp_ms)
    if isinstance(found, NullRecord):
        return Row(time_ms, offset, event, NULL, found.id, found.model, withdraws=found.withdraws)
    if isinstance(found, WrongFold):
        return Row(time_ms, offset, event, WRONG_FOLD)
    if isinstance(found, Invalid):
        return Row(time_ms, offset, event, INVALID, None, found.model, found.reason)
    return None


class Moment(msgspec.Struct, array_like=True, gc=False):
    """The records of one partition that have one time, and what they hold."""

    time_ms: int
    records: int = 0
    timed: int = 0
    """Of these, the ones that could be decoded, and so can come too late."""
    events: int = 0
    skipped: int = 0
    """Of the records, those from which no mapping makes an event."""
    tied: int = 0
    """Predictions whose class was one of several with the largest score."""
    corrected: dict[str, int] = {}
    """Timestamps that were not believed, by reason."""


class Piece(msgspec.Struct, array_like=True, frozen=True):
    """Share of one id bucket in the records of one range of one partition."""

    bucket: int
    topic: str
    partition: int
    first_offset: int
    newest_ms: int
    """Running maximum at the end of the range; -1 if nothing was believed."""
    rows: list[Row]
    moments: list[Moment]
    """All records of the range, in one bucket; empty in the others."""


ENCODER: Final = msgspec.msgpack.Encoder()
PIECES: Final = msgspec.msgpack.Decoder(Piece)
