"""What a broker answers is read batch by batch: everything readable of it, and nothing in it raises."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest
from aiokafka.consumer.fetcher import READ_COMMITTED
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.edge.sources.kafka.batches.opened import Scanner
from streamwatch.edge.sources.kafka.batches.reader import PartitionReader
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from tests.edge.sources.kafka.batches.drained import (
    CODECS,
    HERE,
    MOST,
    SLOW,
    all_of,
    damage_of,
    drained,
    reader,
    the_clients,
)
from tests.edge.sources.kafka.batches.raw_batches import (
    ABORT,
    APPEND_TIME,
    COMMIT,
    CONTROL,
    TRANSACTIONAL,
    RawBatch,
    marker,
    of,
    record,
    sized,
    varint,
)
from tests.tiers import examples


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    return Scanner(compiled_scan(), 512)


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


def test_where_to_go_on_is_not_taken_from_a_batch_beyond_the_end_of_the_log():
    data = of([b"a"], 2**50).bytes() + of([b"b"], 2**57).bytes()
    assert damage_of(data, 0, high_watermark=1_000)[1].next_offset == -1
    sound = of([b"a"], 2**50).bytes() + of([b"b"], 7).bytes()
    assert damage_of(sound, 0, high_watermark=1_000)[1].next_offset == 7


def test_a_broken_header_that_no_batch_follows_is_believed_only_about_the_end_of_the_log():
    broken = bytearray(of([b"a"] * 10, 30).bytes())
    broken[-1] ^= 1
    for high_watermark, expected in ((40, 40), (41, -1), (200, -1)):
        _, damage = damage_of(bytes(broken), 30, high_watermark=high_watermark)
        assert damage.next_offset == expected


def test_an_answer_that_ends_within_a_batch_ends_before_it():
    first, second = of([b"a"], 0).bytes(), of([b"b"], 1).bytes()
    for cut in range(1, len(second)):
        assert [each.offset for each in all_of(first + second[:cut])] == [0]
    _, damage = damage_of(first[:-1])
    assert damage.next_offset == -1
    assert not damage.certain


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
