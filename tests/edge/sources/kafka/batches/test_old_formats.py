"""Messages of the formats before batches: what the client library gives, and no bytes that raise."""

from __future__ import annotations

import struct

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from tests.edge.sources.kafka.batches.drained import (
    HERE,
    MOST,
    SLOW,
    drained,
    reader,
    the_clients,
)
from tests.edge.sources.kafka.batches.raw_batches import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    compressed,
    message,
    of,
)
from tests.tiers import examples


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY])
def test_messages_of_old_formats_give_what_the_client_library_gives(magic: int, codec: int):
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for i in range(5):
        builder.append(i, timestamp=1_000 + i, key=b"k%d" % i if i % 2 else None, value=b"v" * i)
    data = bytes(builder.build())
    if codec:
        data = struct.pack(">q", 4) + data[8:]  # as the broker places the message around the others
    for position in (0, 3) if codec else (0,):  # a broker answers from the message that is asked for
        theirs, after = the_clients(data, position)
        ours = reader(data, position)
        records = drained(ours)
        stamps = [-1 if each.timestamp is None else each.timestamp for each in theirs]
        assert [(r.offset, r.timestamp, r.key, r.value) for r in records] == [
            (r.offset, stamp, r.key, r.value) for r, stamp in zip(theirs, stamps, strict=True)
        ]
        assert ours.position == after == 5


@given(
    st.binary(min_size=1, max_size=60), st.sampled_from([0, 1]), st.sampled_from([0, GZIP, SNAPPY, LZ4, ZSTD])
)
@settings(max_examples=examples(4))
def test_old_messages_of_any_bytes_never_raise(noise: bytes, magic: int, codec: int):
    inner = message(0, noise, magic=magic) + noise + message(1, noise, magic=magic)
    for value in (noise, compressed(codec, noise), compressed(codec, inner)):
        data = message(4, value, magic=magic, attributes=codec)
        reading = reader(data, 4)
        drained(reading)
        assert reading.damage is not None or reading.position == 5


def test_a_message_of_an_old_format_larger_than_allowed_costs_itself_only():
    builder = LegacyRecordBatchBuilder(1, 0, 1_000_000)
    for offset, size in enumerate((90, 101, 5)):
        builder.append(offset, 1_500, b"k" * 10, b"v" * (size - 10) if size > 10 else None)
    data = bytes(builder.build())
    found = drained(PartitionReader(HERE, data, 0, -1, (), SLOW, MOST, 100))
    assert [(each.offset, each.fault) for each in found] == [(0, None), (1, "record_too_large"), (2, None)]


def test_a_message_of_an_old_format_whose_offset_lies_behind_the_next_batch_is_damage():
    shifted = message(796, b"a", magic=0)  # the offset was 780
    data = shifted + of([b"b"] * 20, 781).bytes()
    reading = PartitionReader(HERE, data, 780, 801, (), SLOW, MOST)
    assert drained(reading) == []
    assert reading.damage is not None
    assert (reading.damage.first, reading.damage.next_offset) == (780, 781)
