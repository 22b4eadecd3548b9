"""Pieces of records that tests make up, as the reader makes them of batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamwatch.core.records.fetched import APPENDED, COLUMNS, FAULT, KEY, OFFSET, TIMESTAMP, VALUE
from streamwatch.edge.sources.kafka.batches.record import FAULTS, KafkaRecord, Piece

_CODES = {reason: code for code, reason in FAULTS.items()}


def piece_of(records: Sequence[KafkaRecord]) -> Piece:
    """Make a piece of records that have no headers, with a copy of their contents."""
    rows = np.zeros((len(records), COLUMNS), np.int64)
    written = bytearray()
    for row, record in zip(rows, records, strict=True):
        row[OFFSET], row[TIMESTAMP], row[APPENDED] = record.offset, record.timestamp, record.timestamp_type
        row[FAULT] = 0 if record.fault is None else _CODES[record.fault]
        for column, content in ((KEY, record.key), (VALUE, record.value)):
            row[column], row[column + 1] = len(written), -1 if content is None else len(content)
            written += content or b""
    return rows, np.frombuffer(bytes(written), np.uint8), 0
