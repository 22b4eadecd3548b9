"""What a reader gives of raw batches until nothing is left, and what the client library gives of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.batches.frames import Damage
from streamwatch.edge.sources.kafka.batches.opened import Scanner
from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.batches.scan import Scanned, scan
from tests.edge.sources.kafka.batches.raw_batches import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
)

HERE = Partition("events", 3)
MOST = 1 << 22
CODECS = [0, GZIP, SNAPPY, LZ4, ZSTD]


def plain_scan(data: np.ndarray, *rest: object) -> Scanned:
    return scan(bytes(data), *rest)  # type: ignore[arg-type]


SLOW = Scanner(plain_scan, 512)


def reader(data: bytes, position: int = 0, scanner: Scanner = SLOW, **choices: object) -> PartitionReader:
    given: dict[str, object] = {"high_watermark": -1, "aborted": (), "max_batch_bytes": MOST} | choices
    return PartitionReader(
        HERE,
        data,
        position,
        given["high_watermark"],  # type: ignore[arg-type]
        given["aborted"],  # type: ignore[arg-type]
        scanner,
        given["max_batch_bytes"],  # type: ignore[arg-type]
    )


def drained(reading: PartitionReader, room: int = 500) -> list[KafkaRecord]:
    """Everything up to damage, as the fetching takes it."""
    found: list[KafkaRecord] = []
    while True:
        records = reading.take(room)
        assert len(records) <= room
        found += records
        if reading.heavy:
            reading.unpack()
        elif not records:
            assert reading.done or reading.damage
            return found


def all_of(data: bytes, position: int = 0, **choices: object) -> list[KafkaRecord]:
    reading = reader(data, position, **choices)
    records = drained(reading)
    assert reading.done, reading.damage
    return records


def damage_of(data: bytes, position: int = 0, **choices: object) -> tuple[list[int], Damage]:
    """Offsets before the damage, and that."""
    reading = reader(data, position, **choices)
    offsets = [each.offset for each in drained(reading)]
    assert reading.damage is not None
    return offsets, reading.damage


def the_clients(
    data: bytes, position: int = 0, aborted: Sequence[tuple[int, int]] = ()
) -> tuple[list[KafkaRecord], int]:
    """What the client library makes of it."""
    tp = TopicPartition(*HERE)
    theirs = PartitionRecords(
        tp, MemoryRecords(data), list(aborted), position, None, None, True, READ_COMMITTED
    )
    records = [
        KafkaRecord(*HERE, r.offset, r.timestamp, r.key, r.value, r.headers, timestamp_type=r.timestamp_type)
        for r in theirs
    ]
    return records, theirs.next_fetch_offset
