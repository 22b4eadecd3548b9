"""Records as the source fetches them: written in Kafka's format and parsed by its reader."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamwatch.core.records.events import Partition
from streamwatch.core.records.fetched import APPENDED, FAULT
from streamwatch.edge.sources.kafka.batches.record import KafkaRecords, gathered
from streamwatch.edge.sources.kafka.batches.scan import (
    BAD_STRUCTURE,
    RECORD_TOO_LARGE,
    TOO_MANY_HEADERS,
    compiled_scan,
    new_rows,
)
from tests.edge.decoders.records import AT_MS, FakeRecord
from tests.edge.sources.kafka.batches.raw_batches import record

HERE = Partition("predictions", 3)
FAULTS = {
    "record_structure": BAD_STRUCTURE,
    "too_many_headers": TOO_MANY_HEADERS,
    "record_too_large": RECORD_TOO_LARGE,
}


def fetched(records: Sequence[FakeRecord]) -> KafkaRecords:
    """Records with the values, keys, headers and faults of these; offsets count from 0."""
    written = b"".join(record(i, each.value, each.key, _headers(each), i) for i, each in enumerate(records))
    data, rows = np.frombuffer(written, np.uint8), new_rows(len(records))
    found, *_ = compiled_scan()(data, 0, len(records), 0, len(records), -1, AT_MS, -1, rows)
    assert found == len(records)
    rows[:, APPENDED] = 0
    rows[:, FAULT] = [FAULTS.get(each.fault or "", 0) for each in records]
    return gathered(HERE, [(rows, data, 0)])


def _headers(record: FakeRecord) -> list[tuple[bytes, bytes | None]]:
    if record.fault == "header_encoding":
        return [(b"\xff", b"")]
    return [(name.encode(), content) for name, content in record.headers]
