"""Pieces that readers send to id buckets: events as rows, and counts of records by time."""

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
    """Event of a record; a skipped record has none."""

    time_ms: int
    """Running maximum of the timestamps from the first record of the piece on; -1 before one is believed."""
    offset: int
    event: int
    """Number of the event within its record."""
    kind: int
    id: str | None = None
    model: str | None = None
    name: str = ""
    """Class, or reason why the record is invalid."""
    timestamp_ms: int | None = None
    scores: dict[str, float] | None = None
    segments: dict[str, str] | None = None
    withdraws: bool = False

    def event_at(self, partition: Partition, record_ms: int) -> Event:
        """Build the event, with `record_ms` as its record time."""
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
    """Build the row of an event; None for a skipped record."""
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
    """Counts of the records of one partition that have one time."""

    time_ms: int
    records: int = 0
    timed: int = 0
    """Number of these that could be decoded, which can therefore be out of order."""
    events: int = 0
    skipped: int = 0
    """Number of records from which no mapping makes an event."""
    tied: int = 0
    """Number of predictions whose class was one of several with the largest score."""
    corrected: dict[str, int] = {}
    """Number of timestamps that were not believed, by reason."""


class Piece(msgspec.Struct, array_like=True, frozen=True):
    """Share of one id bucket in the records of one range of one partition."""

    bucket: int
    topic: str
    partition: int
    first_offset: int
    newest_ms: int
    """Running maximum at the end of the range; -1 if no timestamp was believed."""
    rows: list[Row]
    moments: list[Moment]
    """Counts of all records of the range, in one bucket's piece; empty in the others."""


ENCODER: Final = msgspec.msgpack.Encoder()
PIECES: Final = msgspec.msgpack.Decoder(Piece)
