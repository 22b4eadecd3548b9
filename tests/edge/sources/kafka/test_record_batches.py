"""Batches for the producer: what the client's parser reads of them is what was written."""

from __future__ import annotations

import random

import numpy as np
import pytest
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from streamwatch.edge.sources.kafka.record_batches import PreparedBatch, batches_of, joined, texts_of

Records = list[tuple[bytes, bytes]]


def records_of(seed: int, count: int, longest: int) -> Records:
    chance = random.Random(seed)
    keys = [b"m%d" % n * chance.randrange(1, 40) for n in range(5)] + [b"k"]
    return [(chance.choice(keys), chance.randbytes(chance.randrange(longest))) for _ in range(count)]


def parsed(batch: PreparedBatch) -> Records:
    """What the client reads, with everything in the head looked at."""
    batch._set_producer_state(7, 3, 11)
    [read] = list(iter_batches(bytes(batch._build())))
    assert read.validate_crc()
    assert (read.is_transactional, read.producer_id, read.producer_epoch) == (True, 7, 3)
    assert read.base_offset == 0
    records = list(read)
    assert [record.offset for record in records] == list(range(batch.record_count()))
    assert {record.timestamp for record in records} <= {batch._time_ms}
    assert all(not record.headers for record in records)
    return [(record.key, record.value) for record in records]


def iter_batches(data: bytes):
    memory = MemoryRecords(data)
    while memory.has_next():
        yield memory.next_batch()


@pytest.mark.parametrize(
    ("seed", "count", "longest"), [(1, 1, 10), (2, 300, 200), (3, 3_000, 3), (4, 40, 70_000)]
)
@pytest.mark.parametrize("most_bytes", [1, 100, 65_536, 1 << 20])
def test_records_come_out_as_they_went_in(seed: int, count: int, longest: int, most_bytes: int) -> None:
    records = records_of(seed, count, longest)
    texts = texts_of(records)
    batches = list(batches_of(texts, np.arange(count), most_bytes))
    assert [record for batch in batches for record in parsed(batch)] == records
    for batch in batches:
        assert batch.record_count() == 1 or batch.size() <= most_bytes + 61
    if most_bytes == 1:
        assert len(batches) == count


def test_chosen_records_only_are_written_in_their_order() -> None:
    records = records_of(5, 100, 50)
    chosen = np.array([3, 4, 50, 99])
    [batch] = batches_of(texts_of(records), chosen, 1 << 20)
    assert parsed(batch) == [records[number] for number in chosen.tolist()]


def test_it_is_byte_for_byte_what_the_clients_builder_makes() -> None:
    records = records_of(6, 200, 300)
    [batch] = batches_of(texts_of(records), np.arange(len(records)), 1 << 20)
    builder = BatchBuilder(1 << 20, 0, is_transactional=1)
    for key, value in records:
        assert builder.append(timestamp=batch._time_ms, key=key, value=value) is not None
    for each in (batch, builder):
        each._set_producer_state(70_000, 9, 123_456)
    ours, theirs = bytes(batch._build()), bytes(builder._build())
    assert ours[16:] == theirs[16:]  # before it a leader epoch that brokers fill in
    assert ours[:12] == theirs[:12]


def test_it_has_what_the_client_asks_of_its_own_builder() -> None:
    assert {"append", "_build", "_set_producer_state", "close", "closed", "size", "record_count"} <= set(
        dir(BatchBuilder)
    )
    [batch] = batches_of(texts_of([(b"k", b"v")]), np.arange(1), 1 << 20)
    assert batch.closed()
    size = batch.size()
    assert len(batch._build()) == size
    assert batch._build() is batch._build()  # once more where it is sent again
    assert batch.size() == size


@pytest.mark.parametrize(("least_bytes", "expected"), [(1, 40), (1_000, 2), (1 << 20, 1)])
def test_texts_that_are_joined_have_all_records_in_order(least_bytes: int, expected: int) -> None:
    several = [records_of(seed, 5, 20) for seed in range(40)]
    made = list(joined(map(texts_of, several), least_bytes))
    assert len(made) == pytest.approx(expected, abs=1 if least_bytes == 1_000 else 0)
    batches = [each for texts in made for each in batches_of(texts, np.arange(len(texts.starts)), 1 << 20)]
    assert [record for batch in batches for record in parsed(batch)] == [r for each in several for r in each]
    assert list(joined([], least_bytes)) == []
