"""Records whose values were written anew: as JSON text, or as the reason why they have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from streamwatch.core.events import Decoded
from streamwatch.core.fetched import (
    FAULT,
    HEADER_COUNT,
    OFFSET,
    PADDING,
    TIMESTAMP,
    VALUE,
    VALUE_BYTES,
    FetchedRecords,
)
from streamwatch.core.ports import Record
from streamwatch.core.records import OBJECT, ROW, RecordBatch
from streamwatch.edge.decoders.schemas.schema import SchemaRef
from streamwatch.edge.decoders.schemas.wire import in_header, named_in


class TranscodedRecord(msgspec.Struct, frozen=True, gc=False):
    """A record whose value is JSON text, whatever it was; implements `core.ports.Record`."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    fault: str | None
    timestamp_type: int


def refs_of(records: Sequence[Record]) -> set[SchemaRef]:
    """Collect the schemas that records name."""
    refs: set[SchemaRef] = set()
    if isinstance(records, FetchedRecords):
        rows = records.rows
        plain = (rows[:, HEADER_COUNT] == 0) & (rows[:, VALUE_BYTES] >= 5) & (rows[:, FAULT] == 0)
        starts = rows[plain, VALUE]
        numbered = starts[records.data[starts] == 0]
        if len(numbered):
            digits = records.data[numbered[:, None] + np.arange(1, 5)].astype(np.int64)
            refs.update(np.unique(digits @ np.array([1 << 24, 1 << 16, 1 << 8, 1])).tolist())
        others = np.flatnonzero(~plain & (rows[:, VALUE_BYTES] >= 0))
        glob = np.flatnonzero(plain)[records.data[starts] == 1]
        records = [records.record(place) for place in (*others.tolist(), *glob.tolist())]
    for record in records:
        if record.value is not None:
            header = in_header(record.headers)
            named = named_in(record.value if header is None else header)
            if named is not None:
                refs.add(named[0])
    return refs


def faulty(record: Record, reason: str) -> TranscodedRecord:
    """Leave out a record's value, and say why; key and headers may still name its model."""
    return TranscodedRecord(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        record.key,
        None,
        record.headers,
        reason,
        record.timestamp_type,
    )


def with_values(records: FetchedRecords, texts: Sequence[bytes | None]) -> FetchedRecords:
    """Put these values in place of the records' own, where there is one."""
    end = len(records.data) - PADDING
    rows = records.rows.copy()
    places: list[int] = []
    starts: list[int] = []
    sizes: list[int] = []
    for place, text in enumerate(texts):
        if text is not None:
            places.append(place)
            starts.append(end)
            sizes.append(len(text))
            end += len(text)
    rows[places, VALUE], rows[places, VALUE_BYTES] = starts, sizes
    written = np.frombuffer(b"".join(text for text in texts if text is not None), np.uint8)
    return records.over(np.concatenate([records.data[:-PADDING], written, records.data[-PADDING:]]), rows)


def joined(batch: RecordBatch, records: FetchedRecords, refused: Mapping[int, Decoded]) -> RecordBatch:
    """Put the events of refused records into a batch, at their places."""
    rows = np.zeros(len(refused), ROW)
    places = list(refused)
    rows["side"], rows["object"] = OBJECT, len(batch.objects) + np.arange(len(refused))
    rows["model"] = rows["class"] = -1
    rows["offset"], rows["record_ms"] = records.rows[places, OFFSET], records.rows[places, TIMESTAMP]
    both = np.concatenate([batch.rows, rows])
    order = np.argsort(both["offset"], kind="stable")
    return RecordBatch(both[order], batch.texts, [*batch.objects, *refused.values()], batch.vocabulary)
