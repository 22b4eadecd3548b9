"""Ordinary records pass from a broker's answer to their release without an object each; copies are small."""

from __future__ import annotations

import gc
import sys
import tracemalloc

import numpy as np
import pytest

from streamwatch.core.merge import Arrivals, Merge, MergeProgress, MergeSpec, Released
from streamwatch.core.records.events import Partition
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import COPIED_BYTES, FEWEST_AT_ONCE, JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.keys import id_keys
from streamwatch.edge.sources.kafka.batches.opened import Scanner
from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, KafkaRecords
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from tests.edge.decoders.records import FakeRecord
from tests.edge.sources.kafka.batches.raw_batches import RawBatch, record

HERE = Partition("predictions", 0)
AT_MS = 1_700_000_000_000
SCANNER = Scanner(compiled_scan(), 512)


def answer(records: int) -> bytes:
    """What a broker answers: one batch of predictions."""
    value = b'{"id":"id-%08d","model":"m%d","prediction":"yes","timestamp":%d}'
    written = [record(n, value % (n, n % 3, AT_MS + n), b"key-%d" % n, (), n) for n in range(records)]
    return RawBatch(written, first_ms=AT_MS).bytes()


def passed(data: bytes, decoder: JsonDecoder, room: int = 512) -> list[Released]:
    """From bytes to the merged sequence, in turns of so many records."""
    merge = Merge(MergeSpec(settle_ms=0), {HERE.topic: "prediction"}, MergeProgress())
    merge.set_partitions([HERE])
    reader = PartitionReader(HERE, data, 0, -1, (), SCANNER, 1 << 26)
    released: list[Released] = []
    while not reader.done:
        records = reader.take(room)
        batch = decoder.decode_batch(records)
        assert not batch.objects
        decodable = np.ones(len(batch), np.bool_)
        merge.add({HERE: Arrivals(batch.rows["offset"], batch.rows["record_ms"], decodable, batch)}, 0)
        released.append(merge.release(0, AT_MS))
    released.append(merge.drain(AT_MS))
    return released


@pytest.mark.slow
@pytest.mark.parametrize("digest", [False, True])
def test_ten_times_the_records_in_as_many_turns_take_no_more_objects(
    *, digest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = JsonDecoder(
        DecoderSpec("predictions", "prediction", TopicMapping(), id_keys("", digest=digest))
    )
    decoder.decode_batch(PartitionReader(HERE, answer(50), 0, -1, (), SCANNER, 1 << 26).take(512))

    def refuse(_records: KafkaRecords, row: int) -> KafkaRecord:
        raise AssertionError(f"an object was made of record {row}")

    monkeypatch.setattr(KafkaRecords, "record", refuse)
    blocks: dict[int, int] = {}
    for records in (50, 50, 500):
        data = answer(records)
        gc.collect()
        gc.disable()
        before = sys.getallocatedblocks()
        released = passed(data, decoder)
        blocks[records] = sys.getallocatedblocks() - before
        gc.enable()
        assert sum(map(len, released)) == records
    assert blocks[500] - blocks[50] < 45, "not one for every tenth record"


def test_copies_of_long_records_take_no_more_memory_however_many_are_decoded_together() -> None:
    decoder = JsonDecoder(DecoderSpec("predictions", "prediction", TopicMapping()))
    value = b'{"id":"a","model":"m","prediction":"yes","other":"%b"}' % (b"y" * 50_000)
    records = [FakeRecord(value, offset=n) for n in range(FEWEST_AT_ONCE)]
    decoder.decode_all(records, [AT_MS] * len(records))  # its names are learnt
    tracemalloc.start()
    found = decoder.decode_all(records, [AT_MS] * len(records))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == len(records)
    assert len(value) * len(records) > 5 * COPIED_BYTES
    assert most < 15 * COPIED_BYTES, "ten bytes are set aside for each byte of a copy, for scores"
