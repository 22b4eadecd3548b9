"""Batches that are compressed: codecs that are unknown, missing or contradicted, bombs, large batches."""

from __future__ import annotations

import pytest

from streamwatch.edge.sources.kafka.batches import opened as codecs
from streamwatch.edge.sources.kafka.batches.opened import CodecMissing
from streamwatch.edge.sources.kafka.batches.reader import TAKEN_BYTES
from tests.edge.sources.kafka.batches.drained import (
    CODECS,
    MOST,
    all_of,
    damage_of,
    drained,
    reader,
)
from tests.edge.sources.kafka.batches.raw_batches import (
    GZIP,
    LZ4,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    RawBatch,
    compressed,
    of,
    record,
)


def test_an_unknown_codec_is_passed_with_its_batch():
    for codec in (5, 6, 7):
        offsets, damage = damage_of(of([b"a"] * 3, 5, codec=codec).bytes(), 5)
        assert (offsets, damage[:3]) == ([], ("corrupt_batch", 5, 8))
        assert "unknown codec" in damage.reason


@pytest.mark.parametrize("codec", CODECS[1:])
def test_what_is_not_in_the_format_of_its_codec_is_passed_with_its_batch(codec: int):
    sound = compressed(codec, record(0) * 50)
    for body in (b"", b"\x00", b"junk" * 40, sound[:-3], sound[: len(sound) // 2]):
        data = RawBatch([], 5, codec, body=body, count=1, last_delta=0).bytes()
        offsets, damage = damage_of(data, 5)
        assert (offsets, damage.first, damage.next_offset, damage.certain) == ([], 5, 6, True)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_batch_may_decompress_to_as_much_as_allowed_and_not_to_a_byte_more(codec: int):
    plain = record(0, bytes(5_000))
    data = RawBatch([plain], codec=codec).bytes()
    assert len(all_of(data, max_batch_bytes=len(plain))) == 1
    offsets, damage = damage_of(data, max_batch_bytes=len(plain) - 1)
    assert (offsets, damage[:3]) == ([], ("oversized_batch", 0, 1))
    assert str(len(plain) - 1) in damage.reason


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_large_batch_waits_to_be_decompressed_elsewhere(codec: int):
    written = [record(i, bytes(100_000)) for i in range(20)]
    data = of([b"before"]).bytes() + RawBatch(written, 1, codec).bytes()
    reading = reader(data)
    assert [each.offset for each in reading.take(500)] == [0]
    assert reading.heavy
    assert len(reading.take(500)) == 0
    reading.unpack()
    assert [each.offset for each in reading.take(7)] == list(range(1, 8))
    reading.release()
    assert reading.held_bytes == 0
    assert reading.heavy
    reading.unpack()
    assert [each.offset for each in drained(reading)] == list(range(8, 21))
    assert reading.done


@pytest.mark.slow
@pytest.mark.parametrize("codec", [0, *CODECS[1:2]])
def test_large_records_are_given_a_few_at_a_time_from_wherever_reading_begins(codec: int):
    written = [record(i, bytes([i]) * 1_000_000) for i in range(20)]
    data = RawBatch(written, codec=codec).bytes() + of([b"after"] * 3, 20).bytes()
    reading, found, sizes = reader(data, 2, max_batch_bytes=8 * MOST), [], []
    while not reading.done:
        assert reading.damage is None
        if reading.heavy:
            reading.unpack()
        taken = list(reading.take(500))
        sizes.append(sum(len(each.value) for each in taken))
        found += [(each.offset, each.value[:1]) for each in taken]
    assert found == [(i, bytes([i])) for i in range(2, 20)] + [(i, b"a") for i in range(20, 23)]
    assert max(sizes) <= TAKEN_BYTES + 1_000_000


def test_a_bomb_in_a_transaction_that_was_aborted_is_not_decompressed():
    bomb = RawBatch([record(0, bytes(MOST))], 0, ZSTD, TRANSACTIONAL, producer=9).bytes()
    assert all_of(bomb + of([b"after"], 1).bytes(), aborted=[(9, 0)])[0].offset == 1


def test_a_missing_codec_package_is_reported_with_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(codecs, "_installed", lambda: None)
    assert len(all_of(of([b"a"], codec=GZIP).bytes())) == 1
    for codec, name in ((SNAPPY, "snappy"), (LZ4, "lz4"), (ZSTD, "zstd")):
        with pytest.raises(CodecMissing, match=rf"with {name}, .*pip install 'streamwatchd\[compression\]'"):
            drained(reader(of([b"a"], codec=codec).bytes()))
