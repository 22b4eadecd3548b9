"""What a broker answers is read batch by batch: everything readable of it, and nothing in it raises."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.batches import codecs
from streamwatch.edge.sources.kafka.batches.codecs import CodecMissing
from streamwatch.edge.sources.kafka.batches.damage import Damage
from streamwatch.edge.sources.kafka.batches.reader import TAKEN_BYTES, PartitionReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.batches.scan import Scanned, compiled_scan, scan
from streamwatch.edge.sources.kafka.batches.scanner import Scanner
from tests.edge.sources.kafka.batches.raw_batches import (
    ABORT,
    APPEND_TIME,
    COMMIT,
    CONTROL,
    GZIP,
    LZ4,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    RawBatch,
    compressed,
    marker,
    message,
    of,
    record,
    sized,
    varint,
)
from tests.tiers import examples

HERE = Partition("events", 3)
MOST = 1 << 22
CODECS = [0, GZIP, SNAPPY, LZ4, ZSTD]


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    return Scanner(compiled_scan(), 512)


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


contents = st.one_of(st.none(), st.binary(max_size=40))
names = st.text(max_size=5).map(str.encode)
raw_records = st.lists(
    st.tuples(contents, contents, st.lists(st.tuples(names, contents), max_size=3), st.integers(-5, 99_999)),
    min_size=1,
    max_size=8,
)


@st.composite
def sound_batches(draw: st.DrawFn) -> bytes:
    """Batches of every codec, with gaps as compaction leaves them."""
    base, data = draw(st.integers(0, 10**12)), b""
    for _ in range(draw(st.integers(1, 4))):
        delta, written = -1, []
        for value, key, headers, ms in draw(raw_records):
            delta += draw(st.integers(1, 3))
            written.append(record(delta, value, key, headers, ms))
        batch = RawBatch(
            written,
            base,
            draw(st.sampled_from(CODECS)),
            draw(st.sampled_from([0, APPEND_TIME])),
            first_ms=draw(st.integers(0, 2**41)),
            max_ms=draw(st.integers(0, 2**41)),
            last_delta=delta + draw(st.integers(0, 2)),
        )
        data += batch.bytes()
        base += batch.last_delta + 1 + draw(st.integers(0, 5))  # type: ignore[operator]
    return data


@given(sound_batches(), st.integers(1, 10), st.data())
@settings(max_examples=examples(4))
def test_sound_batches_give_what_the_client_library_gives(data: bytes, room: int, draw: st.DataObject):
    (first,) = struct.unpack_from(">q", data)
    position = first + draw.draw(st.integers(0, 8))
    theirs, after = the_clients(data, position)
    reading = reader(data, position)
    if after <= position:  # the broker would not have answered so
        return
    ours = drained(reading, room)
    if reading.damage is None:
        assert (ours, reading.position) == (theirs, after)
    else:  # an answer may not begin with a batch that ends before what was asked for
        assert (ours, reading.damage.first) == ([], position)


@pytest.mark.slow
@given(sound_batches(), st.binary(max_size=30), st.data())
@settings(max_examples=examples(6))
def test_no_bytes_raise_and_every_step_goes_forward(data: bytes, noise: bytes, draw: st.DataObject):
    (position,) = struct.unpack_from(">q", data)
    mutated = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 3))):
        at = draw.draw(st.integers(0, len(mutated) - 1))
        how = draw.draw(st.sampled_from(["flip", "cut", "insert"]))
        if how == "flip":
            mutated[at] ^= draw.draw(st.integers(1, 255))
        elif how == "cut":
            del mutated[at:]
        else:
            mutated[at:at] = noise
        if not mutated:
            break
    reading = reader(bytes(mutated), position, high_watermark=position + 1_000)
    offsets = [each.offset for each in drained(reading, draw.draw(st.integers(1, 9)))]
    assert offsets == sorted(set(offsets))
    assert all(position <= offset < reading.position for offset in offsets)
    if reading.damage is not None:
        claimed = reading.damage.next_offset
        assert claimed == -1 or reading.position < claimed <= position + 1_000


@given(st.lists(st.binary(max_size=60), max_size=3), st.integers(0, 3), st.data())
@settings(max_examples=examples(6))
def test_records_of_any_bytes_under_a_right_checksum_never_raise(
    bodies: list[bytes], codec: int, draw: st.DataObject
):
    written = [body if draw.draw(st.booleans()) else sized(body) for body in bodies]
    data = RawBatch(written, 7, codec, count=draw.draw(st.integers(0, 5)), last_delta=9).bytes()
    reading = reader(data, 7)
    offsets = [each.offset for each in drained(reading)]
    assert offsets == sorted(set(offsets))
    assert reading.damage is not None or reading.position == 17


@given(sound_batches())
@settings(max_examples=examples(1))
def test_the_compiled_scan_gives_the_rows_of_the_plain_one(scanner: Scanner, data: bytes):
    (position,) = struct.unpack_from(">q", data)
    assert drained(reader(data, position, scanner)) == drained(reader(data, position))


@given(st.binary(max_size=80), st.integers(-(2**63), 2**63 - 1), st.integers(-1, 50))
@settings(max_examples=examples(6))
def test_the_compiled_scan_gives_the_rows_of_the_plain_one_for_any_bytes(
    scanner: Scanner, noise: bytes, first_ms: int, last_delta: int
):
    given = {"first_ms": first_ms, "last_delta": last_delta, "count": 1}
    for body in (noise, sized(noise), sized(b"\x00" + varint(2**62) + varint(0) + noise)):
        data = RawBatch([body], **given).bytes()  # type: ignore[arg-type]
        fast, slow = reader(data, 0, scanner), reader(data)
        assert drained(fast) == drained(slow)
        assert (fast.position, fast.damage) == (slow.position, slow.damage)


def test_a_header_whose_name_is_not_utf8_costs_its_record_only():
    written = [record(0), record(1, headers=[(b"\xff", b"x")]), record(2, headers=[(b"ok", None)])]
    assert all_of(RawBatch(written).bytes()) == [
        KafkaRecord(*HERE, 0, 1_000, None, b"v"),
        KafkaRecord(*HERE, 1, 1_000, fault="header_encoding"),
        KafkaRecord(*HERE, 2, 1_000, None, b"v", (("ok", None),)),
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"\x00" + varint(0) + varint(1) + varint(500) + b"key",
        b"\x00" + varint(0) + varint(1) + sized(None) + varint(2**31) + b"value",
        b"\x00" + varint(0) + varint(1) + sized(None) + sized(b"v") + varint(-1),
        b"\x00" + varint(0) + varint(1) + sized(None) + sized(b"v") + varint(2) + sized(b"one"),
        b"\x00" + varint(0) + varint(1) + sized(None) + sized(b"v") + varint(1) + varint(-1) + sized(b""),
        b"\x00" + varint(0) + varint(1) + sized(None) + sized(b"v") + varint(0) + b"left over",
        b"\x00" + varint(0) + varint(1) + b"\xff" * 11,
    ],
)
def test_a_record_whose_lengths_contradict_each_other_costs_itself_only(body: bytes):
    written = [record(0), sized(body), record(2)]
    faults = [(each.offset, each.fault) for each in all_of(RawBatch(written).bytes())]
    assert faults == [(0, None), (1, "record_structure"), (2, None)]


def test_more_headers_than_are_read_cost_their_record_only():
    written = [record(0, headers=[(b"", None)] * 1_001), record(1, headers=[(b"", None)] * 1_000)]
    assert [each.fault for each in all_of(RawBatch(written).bytes())] == ["too_many_headers", None]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (varint(500) + b"x", "do not fit"),
        (varint(-3), "do not fit"),
        (b"\xff" * 12, "do not fit"),
        (record(0), "do not fit"),
        (record(3), "do not fit"),
        (record(2**31 - 1), "do not fit"),
        (b"", "1 records of 3"),
    ],
)
@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_whose_records_do_not_fit_it_is_left_where_they_stop_fitting(
    second: bytes, reason: str, codec: int
):
    data = RawBatch([record(0), second], 10, codec, count=3, last_delta=2).bytes()
    after = of([b"next"], 13).bytes()
    offsets, damage = damage_of(data + after, 10)
    assert offsets == [10]
    assert damage[:3] == ("corrupt_batch", 11, 13)
    assert reason in damage.reason
    assert damage.certain
    assert damage.records == 2


@pytest.mark.parametrize("at", range(12, 90))
def test_a_flipped_byte_anywhere_behind_the_length_is_found(at: int):
    first, second, third = (of([b"abc", b"def"], base).bytes() for base in (0, 2, 4))
    broken = bytearray(second)
    if at >= len(broken) or 12 <= at < 16:  # nobody reads the leader epoch
        return
    broken[at] ^= 0x40
    offsets, damage = damage_of(first + bytes(broken) + third, 0, high_watermark=6)
    assert offsets == [0, 1]
    assert (damage.cause, damage.first, damage.next_offset) == ("corrupt_batch", 2, 4)
    assert not damage.certain


@pytest.mark.parametrize("at", range(12))
@pytest.mark.parametrize("bit", [1, 16, 128])
def test_a_flipped_bit_in_offset_or_length_gives_no_record_another_offset(at: int, bit: int):
    batches = [of([b"%d" % i for i in range(base, base + 2)], base).bytes() for base in (600, 602, 604)]
    broken = bytearray(batches[1])
    broken[at] ^= bit
    reading = reader(batches[0] + bytes(broken) + batches[2], 600, high_watermark=606)
    records = drained(reading)
    assert [(each.offset, each.value) for each in records[:2]] == [(600, b"600"), (601, b"601")]
    assert all(each.value == b"%d" % each.offset for each in records)
    if reading.done:  # a batch that ends beyond the answer: the next answer begins with it
        assert reading.position == 602
        reading = reader(bytes(broken) + batches[2], 602, high_watermark=606)
        assert drained(reading) == []
    assert reading.damage is not None
    assert reading.damage.first == 602


def test_an_answer_that_ends_within_a_batch_ends_before_it():
    first, second = of([b"a"], 0).bytes(), of([b"b"], 1).bytes()
    for cut in range(1, len(second)):
        assert [each.offset for each in all_of(first + second[:cut])] == [0]
    _, damage = damage_of(first[:-1])
    assert damage.next_offset == -1
    assert not damage.certain


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


def test_transactions_that_were_aborted_are_passed_until_their_marker():
    mine, other = {"flags": TRANSACTIONAL, "producer": 9}, {"flags": TRANSACTIONAL, "producer": 4}
    data = of([b"no"] * 2, 0, **mine).bytes() + of([b"yes"], 2, **other).bytes()
    data += marker(ABORT, 3, 9) + of([b"yes"], 4, **mine).bytes() + marker(COMMIT, 5, 9)
    data += of([b"no"], 6, **mine).bytes() + of([b"yes"], 7).bytes()
    aborted = [(9, 6), (9, 0)]
    reading = reader(data, aborted=aborted)
    ours = drained(reading)
    assert [(each.offset, each.value) for each in ours] == [(2, b"yes"), (4, b"yes"), (7, b"yes")]
    assert (ours, reading.position) == the_clients(data, 0, aborted)


def test_a_bomb_in_a_transaction_that_was_aborted_is_not_decompressed():
    bomb = RawBatch([record(0, bytes(MOST))], 0, ZSTD, TRANSACTIONAL, producer=9).bytes()
    assert all_of(bomb + of([b"after"], 1).bytes(), aborted=[(9, 0)])[0].offset == 1


def test_a_control_batch_of_any_content_is_passed():
    for body in (b"", b"\xff" * 20, record(0, key=None), record(0, key=b"\x00")):
        data = RawBatch([body], 0, flags=CONTROL | TRANSACTIONAL, producer=9).bytes()
        assert [each.offset for each in all_of(data + of([b"a"], 1).bytes(), aborted=[(9, 0)])] == [1]


def test_timestamps_of_any_size_are_numbers_of_64_bits():
    huge = 2**63 - 1
    written = [record(0, ms=huge), record(1, ms=-(2**63)), record(2, ms=-5), record(3, ms=2**62)]
    stamps = [each.timestamp for each in all_of(RawBatch(written, first_ms=5).bytes())]
    assert stamps == [-1, 5 - 2**63, 0, 5 + 2**62]
    assert all(-(2**63) <= stamp < 2**63 for stamp in stamps)
    append = RawBatch(written, flags=APPEND_TIME, max_ms=huge).bytes()
    assert {each.timestamp for each in all_of(append)} == {huge}


def test_compaction_leaves_gaps_and_batches_without_records():
    data = RawBatch([record(3), record(7)], 100, last_delta=9).bytes()
    data += RawBatch([], 110, last_delta=4).bytes() + of([b"a"], 200).bytes()
    reading = reader(data, 95, high_watermark=201)
    assert [each.offset for each in drained(reading)] == [103, 107, 200]
    assert reading.position == 201


def test_a_missing_codec_package_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(codecs, "_installed", lambda: None)
    assert len(all_of(of([b"a"], codec=GZIP).bytes())) == 1
    for codec, name in ((SNAPPY, "snappy"), (LZ4, "lz4"), (ZSTD, "zstd")):
        with pytest.raises(CodecMissing, match=rf"with {name}, .*pip install 'streamwatchd\[compression\]'"):
            drained(reader(of([b"a"], codec=codec).bytes()))


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


def test_contract_the_client_library_is_one_whose_inside_was_looked_at():
    # Requests, answers and connections are used as they are in these versions: see `answer` and `fetching`.
    from importlib.metadata import version  # noqa: PLC0415

    from aiokafka.client import AIOKafkaClient  # noqa: PLC0415
    from aiokafka.protocol.fetch import FetchRequest  # noqa: PLC0415

    assert version("aiokafka").startswith("0.14.")
    assert callable(AIOKafkaClient.send)
    assert callable(AIOKafkaClient.force_metadata_update)
    request = FetchRequest(0, 1, 2, READ_COMMITTED, [("t", [(0, 5, 1)])])
    built = {v: request.prepare({1: (v, v)}) for v in range(4, 12)}
    for number, struct_ in built.items():
        layout = [name for name, _ in _partition_schema(struct_.RESPONSE_TYPE)]
        assert layout[:3] == ["partition", "error_code", "highwater_offset"], number
        assert layout[3] == "last_stable_offset"
        assert layout[-1] == "message_set"
        assert layout[5 if number >= 11 else -2] == "aborted_transactions"


def _partition_schema(response: type) -> list[tuple[str, object]]:
    topics = dict(zip(response.SCHEMA.names, response.SCHEMA.fields, strict=True))["topics"]  # type: ignore[attr-defined]
    topic = SimpleNamespace(names=topics.array_of.names, fields=topics.array_of.fields)
    partitions = dict(zip(topic.names, topic.fields, strict=True))["partitions"]
    return list(zip(partitions.array_of.names, partitions.array_of.fields, strict=True))


def test_a_record_larger_than_allowed_costs_itself_only_and_is_not_copied():
    over = [
        record(0, b"v" * 60, b"k" * 40),
        record(1, b"v" * 60, b"k" * 41),
        record(2, b"v" * 101),
        record(3, None, b"k" * 101),
        record(4, b"v" * 50, headers=[(b"n" * 20, b"c" * 30)]),
        record(5, b"v" * 50, headers=[(b"n" * 20, b"c" * 31)]),
        record(6, b"v" * 50, headers=[(b"n" * 51, None)]),
        record(7),
    ]
    found = drained(PartitionReader(HERE, RawBatch(over).bytes(), 0, -1, (), SLOW, MOST, 100))
    too_large = "record_too_large"
    assert [each.fault for each in found] == [None, *[too_large] * 3, None, *[too_large] * 2, None]
    assert all((each.key, each.value, each.headers) == (None, None, ()) for each in found if each.fault)


def test_a_message_of_an_old_format_larger_than_allowed_costs_itself_only():
    builder = LegacyRecordBatchBuilder(1, 0, 1_000_000)
    for offset, size in enumerate((90, 101, 5)):
        builder.append(offset, 1_500, b"k" * 10, b"v" * (size - 10) if size > 10 else None)
    data = bytes(builder.build())
    found = drained(PartitionReader(HERE, data, 0, -1, (), SLOW, MOST, 100))
    assert [(each.offset, each.fault) for each in found] == [(0, None), (1, "record_too_large"), (2, None)]
